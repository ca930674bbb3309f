"""What was called, and what is made to fail.

Every API call passes `begin`, and its answer passes `end`; the admin endpoint fills and reads the tables. Nothing here
depends on the wall clock: a fault hits the n-th matching call.
"""

import threading

_lock = threading.Lock()
_calls = []
_faults = []
_denied = set()
_failures = []
_missing = 0
_slowness = 0.0
_last_round = 0


def begin(service, action, request):
    """Records a call; returns its record."""
    with _lock:
        call = {"service": service, "action": action, "request": request, "status": None, "error": None, "round": _last_round + 1}
        _calls.append(call)
        return call


def end(call):
    """The answer goes out. Whoever calls from now on may have waited for it: that is another round."""
    global _last_round
    with _lock:
        _last_round = max(_last_round, call["round"])


def slow(seconds):
    """From now on every answer is held back that long: calls that are made together are then seen to be, and rounds can be counted."""
    global _slowness
    with _lock:
        _slowness = float(seconds)


def slowness():
    """How long an answer is held back."""
    return _slowness


def calls():
    """Every call since the last reset, oldest first."""
    with _lock:
        return list(_calls)


def counts():
    """How often each action was called: {"ecs:RunTask": 2}."""
    with _lock:
        totals = {}
        for call in _calls:
            name = f"{call['service']}:{call['action']}"
            totals[name] = totals.get(name, 0) + 1
        return dict(sorted(totals.items()))


def forget_calls():
    """Starts counting anew."""
    global _last_round
    with _lock:
        _calls.clear()
        _last_round = 0


def add(fault):
    """{"service", "action", "when": "before"|"after", "skip": n, "times": n, "status", "code", "message"}; "*" is any."""
    unknown = set(fault) - {"service", "action", "when", "skip", "times", "status", "code", "message"}
    if unknown or not {"service", "action"} <= set(fault) or fault.get("when", "before") not in ("before", "after"):
        raise ValueError(f"not a fault: {fault}")
    with _lock:
        _faults.append(
            {
                "when": "before",
                "skip": 0,
                "times": 1,
                "status": 500,
                "code": "InternalServerException",
                "message": "the rehearsal made this call fail",
                **fault,
            }
        )


def pending():
    """Faults that have not hit yet, denied actions, and waiting RunTask failures."""
    with _lock:
        return {"faults": list(_faults), "denied": sorted(_denied), "run_task_failures": list(_failures)}


def clear():
    """Nothing fails any more."""
    global _missing
    with _lock:
        _faults.clear()
        _denied.clear()
        _failures.clear()
        _missing = 0


def hit(service, action, when):
    """The fault that this call runs into, or None; uses the fault up."""
    with _lock:
        for fault in _faults:
            if fault["service"] not in ("*", service) or fault["action"] not in ("*", action) or fault["when"] != when:
                continue
            if fault["skip"] > 0:
                fault["skip"] -= 1
                continue
            fault["times"] -= 1
            if fault["times"] <= 0:
                _faults.remove(fault)
            return fault
    return None


def deny(action):
    """From now on the caller may not perform `service:Action`."""
    with _lock:
        _denied.add(action)


def allow(action):
    """Takes a denial back."""
    with _lock:
        _denied.discard(action)


def denied(action):
    """Whether `service:Action` is denied to the caller; a denied `service:*` denies all of it."""
    with _lock:
        return action in _denied or f"{action.split(':')[0]}:*" in _denied


def fail_run_task(failures):
    """The next RunTask answers 200 with these `failures` and no task; called several times, they queue up."""
    with _lock:
        _failures.append(failures)


def take_run_task_failures():
    """The failures that this RunTask must answer with, or None."""
    with _lock:
        return _failures.pop(0) if _failures else None


def hide_tasks(calls):
    """The next DescribeTasks calls find nothing: ECS is eventually consistent."""
    global _missing
    with _lock:
        _missing = calls


def tasks_are_hidden():
    """Whether this DescribeTasks finds nothing."""
    global _missing
    with _lock:
        hidden = _missing > 0
        _missing = max(0, _missing - 1)
        return hidden
