"""When lines can be seen: on AWS a stream appears seconds after its container, and lines arrive late, not always in order.

Nothing here depends on the wall clock: what is late becomes visible at the n-th GetLogEvents of its stream.
"""

import threading

from .seam import Refused, logs, refusable

_lock = threading.Lock()
_settings = {"calls": 0, "every": 1, "page": None, "hidden": 0}
_waiting = []  # [calls left, group, stream, event]
_written = {}  # (group, stream) -> lines so far
_get_log_events = logs._get_log_events


def install():
    """Takes GetLogEvents over from ministack."""
    logs._get_log_events = refusable(get_log_events)


def late(calls, every=1):
    """From now on every `every`-th line of a stream is visible only from its `calls`-th GetLogEvents on; 0: at once."""
    with _lock:
        _settings.update(calls=calls, every=every)


def hide(calls):
    """The next GetLogEvents calls find no stream."""
    with _lock:
        _settings["hidden"] = calls


def page(events):
    """No page of GetLogEvents has more events than that; None: as many as AWS sends."""
    with _lock:
        _settings["page"] = events


def clear():
    """Every line is visible at once."""
    with _lock:
        _settings.update(calls=0, every=1, page=None, hidden=0)


def put(group, stream, events):
    """PutLogEvents of the log driver."""
    with _lock:
        now = []
        for event in events:
            n = _written[group, stream] = _written.get((group, stream), 0) + 1
            if _settings["calls"] and n % _settings["every"] == 0:
                _waiting.append([_settings["calls"], group, stream, event])
            else:
                now.append(event)
        if now:
            _put(group, stream, now)


def get_log_events(request):
    """GetLogEvents, after what has waited long enough has arrived."""
    group, stream = request.get("logGroupName"), request.get("logStreamName")
    with _lock:
        if _settings["hidden"] > 0:
            _settings["hidden"] -= 1
            raise Refused("ResourceNotFoundException", "The specified log stream does not exist.")
        for waiting in [one for one in _waiting if one[1:3] == [group, stream]]:
            waiting[0] -= 1
            if waiting[0] <= 0:
                _waiting.remove(waiting)
                _put(group, stream, [waiting[3]])
        limit = _settings["page"]
    if limit:
        request = {**request, "limit": min(limit, request.get("limit", limit))}
    return _get_log_events(request)


def _put(group, stream, events):
    logs._put_log_events({"logGroupName": group, "logStreamName": stream, "logEvents": events})
