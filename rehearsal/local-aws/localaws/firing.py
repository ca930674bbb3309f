"""Schedules that fire: what is due, in the order of time, under the schedule's own role.

Every occurrence is one invocation record. RunTask answering 200 with `failures` is a delivery like any other: Scheduler
does not look inside an answer, so such a run is lost, and the record is the only place where it shows. An occurrence that is
refused is tried again as often as the retry policy says, without the pauses; then it goes to the dead-letter queue.
"""

import copy
import json
import logging
import threading
import uuid

from . import deadletters, expressions, iam, scheduler, tasks, universal
from .clock import clock, render
from .seam import Refused, request_scope

log = logging.getLogger("localaws.firing")
_lock = threading.RLock()  # one sweep at a time
_next = {}  # (account, region, (group, name)) -> (version, next due moment)
_invocations = []
_last = {}  # (account, region, (group, name)) -> (the schedule as it was, the moment it was due)


def invocations():
    """What was fired so far, oldest first."""
    with _lock:
        return list(_invocations)


def deliver_again(group, name):
    """Scheduler delivers at least once: the last occurrence of a schedule a second time, also of one that is gone by now."""
    with _lock:
        for (account, region, key), (schedule, due) in list(_last.items()):
            if key == (group, name):
                with request_scope(account, region):
                    _invocations.append(_fire(schedule, due))
                return _invocations[-1]
    raise KeyError(f"schedule {group}/{name} has not fired")


def forget_invocations():
    """Starts the list anew."""
    with _lock:
        _invocations.clear()


def next_of(group, name):
    """When the schedule is due next, whether or not it is ENABLED; None when never."""
    for (_, _, key), schedule in list(scheduler.schedules._data.items()):
        if key == (group, name):
            return expressions.next_fire(schedule, clock.now())
    raise KeyError(f"no schedule {group}/{name}")


def advance(moment):
    """Moves the clock, fires everything that became due on the way, and returns those invocations."""
    with _lock:
        before = len(_invocations)
        _sweep(clock.now())
        while (due := _earliest(moment)) is not None:
            clock.move_to(due)
            _sweep(due)
        clock.move_to(moment)
        return _invocations[before:]


def tick():
    """Fires what is due now; returns those invocations."""
    with _lock:
        before = len(_invocations)
        while (due := _earliest(clock.now())) is not None:
            _sweep(due)
        return _invocations[before:]


def keep_ticking(stop, interval=0.5):
    """The scheduler's own heartbeat, until `stop` is set."""
    while not stop.wait(interval):
        try:
            tick()
        except Exception:  # one broken schedule must not stop the others for ever
            log.exception("the scheduler's sweep failed")


def _watched():
    """(key, schedule, next due moment) of every ENABLED schedule; a changed schedule is computed anew."""
    for key, schedule in list(scheduler.schedules._data.items()):
        if schedule["State"] != "ENABLED":
            _next.pop(key, None)
            continue
        version = schedule["LastModificationDate"]
        if _next.get(key, (None,))[0] != version:
            _next[key] = (version, expressions.next_fire(schedule, version))
        yield key, schedule, _next[key][1]


def _earliest(limit):
    return min((due for _, _, due in _watched() if due is not None and due <= limit), default=None)


def _sweep(moment):
    for key, schedule, due in list(_watched()):
        if due is None or due > moment:
            continue
        _next[key] = (schedule["LastModificationDate"], expressions.next_fire(schedule, due))
        account, region, name = key
        _last[key] = (copy.deepcopy(schedule), due)
        with request_scope(account, region):
            _invocations.append(_fire(schedule, due))
            over = _next[key][1] is None and schedule["ActionAfterCompletion"] == "DELETE"
            if over:
                del scheduler.schedules[name]


def _fire(schedule, due):
    """One occurrence, with as many attempts as its retry policy allows."""
    for attempt in range(1, schedule["Target"]["RetryPolicy"]["MaximumRetryAttempts"] + 2):
        record = _attempt(schedule, due, attempt)
        if record["delivered"]:
            return record
    log.warning("schedule %s was not delivered: %s", record["schedule"], record["error"])
    record["dead_lettered"] = deadletters.send(schedule, record)
    return record


def _attempt(schedule, due, attempt):
    target, role = schedule["Target"], schedule["Target"]["RoleArn"]
    execution = uuid.uuid4().hex[:16]
    text = universal.fill(target.get("Input", "{}"), schedule["Arn"], render(due), execution, attempt)
    record = {
        "schedule": f"{schedule['GroupName']}/{schedule['Name']}",
        "scheduled_time": render(due),
        "execution_id": execution,
        "attempts": attempt,
        "input": text,
        "delivered": False,
        "dead_lettered": False,
        "error": None,
        "tasks": [],
        "failures": [],
    }
    try:
        service, operation, request = universal.parse({**target, "Input": text})
        if (service, operation) != ("ecs", "RunTask"):
            raise Refused("NotModelled", f"{service}:{operation} is not emulated")
        if not iam.trusts(role, "scheduler.amazonaws.com", scheduler.group_arn(schedule["GroupName"])):
            raise Refused("AccessDeniedException", scheduler.CANNOT_ASSUME)
        with iam.acting_as(role):
            status, _, body = tasks.run_task(request)
        result = json.loads(body)
        if status != 200:
            raise Refused(result["__type"], result["message"])
        record.update(delivered=True, failures=result["failures"], tasks=[task["taskArn"] for task in result["tasks"]])
    except Refused as refused:
        record["error"] = f"{refused.code}: {refused.message}"
    return record
