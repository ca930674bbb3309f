"""When a schedule is due."""

import unittest

from localaws import expressions
from localaws.clock import parse, render


def fires(expression, timezone, after, count=1, **members):
    """The next moments at which such a schedule is due."""
    schedule = {
        "ScheduleExpression": expression,
        "ScheduleExpressionTimezone": timezone,
        "CreationDate": parse(after),
        **members,
    }
    moment, found = parse(after), []
    for _ in range(count):
        moment = expressions.next_fire(schedule, moment)
        found.append(moment and render(moment))
        if moment is None:
            break
    return found


class Expressions(unittest.TestCase):
    """at(), rate(), cron()."""

    def test_monthly_in_seoul(self):
        self.assertEqual(
            fires("cron(0 3 5 * ? *)", "Asia/Seoul", "2026-11-29T00:00:00Z", 2),
            ["2026-12-04T18:00:00Z", "2027-01-04T18:00:00Z"],
        )

    def test_the_moment_itself_is_over(self):
        self.assertEqual(fires("cron(0 3 5 * ? *)", "UTC", "2026-12-05T03:00:00Z"), ["2027-01-05T03:00:00Z"])

    def test_last_day_and_nth_weekday(self):
        self.assertEqual(fires("cron(0 0 L * ? *)", "UTC", "2027-02-01T00:00:00Z"), ["2027-02-28T00:00:00Z"])
        self.assertEqual(fires("cron(0 0 ? * 2#1 *)", "UTC", "2026-12-01T00:00:00Z"), ["2026-12-07T00:00:00Z"])

    def test_a_skipped_local_time_does_not_fire(self):
        # New York, 14 March 2027: 01:59 is followed by 03:00.
        self.assertEqual(
            fires("cron(30 2 * * ? *)", "America/New_York", "2027-03-13T00:00:00Z", 2),
            ["2027-03-13T07:30:00Z", "2027-03-15T06:30:00Z"],
        )

    def test_a_repeated_local_time_fires_once(self):
        # New York, 7 November 2027: 01:30 comes twice.
        self.assertEqual(
            fires("cron(30 1 * * ? *)", "America/New_York", "2027-11-07T00:00:00Z", 2),
            ["2027-11-07T05:30:00Z", "2027-11-08T06:30:00Z"],
        )

    def test_at_fires_once_in_its_zone(self):
        self.assertEqual(
            fires("at(2026-12-05T03:00:00)", "Asia/Seoul", "2026-11-29T00:00:00Z", 2), ["2026-12-04T18:00:00Z", None]
        )

    def test_rate_counts_from_creation_or_start(self):
        self.assertEqual(fires("rate(2 hours)", "UTC", "2026-11-29T00:30:00Z"), ["2026-11-29T02:30:00Z"])
        start = parse("2026-12-01T00:00:00Z")
        self.assertEqual(
            fires("rate(2 hours)", "UTC", "2026-11-29T00:30:00Z", 2, StartDate=start),
            ["2026-12-01T00:00:00Z", "2026-12-01T02:00:00Z"],
        )

    def test_nothing_after_the_end(self):
        end = parse("2026-12-31T00:00:00Z")
        self.assertEqual(
            fires("cron(0 3 5 * ? *)", "UTC", "2026-11-29T00:00:00Z", 3, EndDate=end), ["2026-12-05T03:00:00Z", None]
        )

    def test_what_is_refused(self):
        for expression in (
            "cron(0 3 5 * *)",
            "cron(0 3 5 * * *)",
            "cron(61 3 5 * ? *)",
            "rate(0 days)",
            "rate(1 weeks)",
            "at(2026-12-05)",
            "at(2026-13-05T00:00:00)",
            "0 3 5 * *",
            "",
        ):
            with self.subTest(expression), self.assertRaisesRegex(ValueError, "Invalid Schedule Expression"):
                expressions.check(expression, "UTC")
        for timezone in ("Asia/Soul", "", "../etc", "KST+9"):
            with self.subTest(timezone), self.assertRaisesRegex(ValueError, "Invalid ScheduleExpressionTimezone"):
                expressions.check("rate(1 days)", timezone)
