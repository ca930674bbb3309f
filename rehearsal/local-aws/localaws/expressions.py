"""Schedule expressions: at(), rate() and cron(), in the schedule's time zone.

Cron fields are parsed by ministack; what it leaves out is daylight saving: a local time that the clocks skip does not
fire, and one that they repeat fires once.
"""

import datetime
import re
import zoneinfo

from .seam import eventbridge

UTC = datetime.timezone.utc
# minute, hour, day of month, month, day of week, year
_CRON_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (1, 7), (1970, 2199))
_RATE_SECONDS = {"minute": 60, "hour": 3600, "day": 86400}


def check(expression, timezone):
    """Raises ValueError with Scheduler's words for an expression or a time zone that it would refuse."""
    try:
        zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, IsADirectoryError):
        raise ValueError("Invalid ScheduleExpressionTimezone.") from None
    if not (_at(expression) or _rate(expression) or _cron(expression)):
        raise ValueError(f"Invalid Schedule Expression {expression}.")


def next_fire(schedule, after):
    """The first moment later than `after` (epoch seconds) at which the schedule is due, or None."""
    expression, zone = schedule["ScheduleExpression"], zoneinfo.ZoneInfo(schedule["ScheduleExpressionTimezone"])
    if moment := _at(expression):  # one-time: StartDate and EndDate do not apply
        due = moment.replace(tzinfo=zone).timestamp()
        return due if due > after else None
    start, end = schedule.get("StartDate") or 0, schedule.get("EndDate") or float("inf")
    after = max(after, start - 1)
    if seconds := _rate(expression):
        anchor = schedule.get("StartDate") or schedule["CreationDate"]
        due = anchor + seconds * max(0, int((after - anchor) // seconds) + 1)
    else:
        due = _next_cron(_cron(expression), zone, after)
    return due if due is not None and due <= end else None


def is_one_time(expression):
    """Whether the schedule is over once it has fired."""
    return _at(expression) is not None


def _at(expression):
    match = re.fullmatch(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)", expression)
    try:
        return datetime.datetime.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _rate(expression):
    match = re.fullmatch(r"rate\(([1-9]\d*) (minute|hour|day)s?\)", expression)
    return int(match[1]) * _RATE_SECONDS[match[2]] if match else None


def _cron(expression):
    fields = eventbridge._parse_cron_fields(expression)
    if fields is None:
        return None
    # The parser does not look at ranges. What follows / or # is a step or an ordinal.
    for text, (low, high) in zip(expression[len("cron(") : -1].split(), _CRON_RANGES, strict=True):
        if not all(low <= int(number) <= high for number in re.findall(r"(?<![/#\d])\d+", text)):
            return None
    return fields


def _next_cron(fields, zone, after):
    # The parser walks wall-clock time and does not know zones: it is given local time, labelled as UTC.
    wall = datetime.datetime.fromtimestamp(after, zone).replace(tzinfo=UTC)
    while (wall := eventbridge._cron_next_fire(fields, wall)) is not None:
        due = wall.replace(tzinfo=zone).timestamp()
        skipped = datetime.datetime.fromtimestamp(due, zone).replace(tzinfo=UTC) != wall
        if not skipped and due > after:
            return due
    return None
