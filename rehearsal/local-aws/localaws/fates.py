"""What becomes of the next task, whatever its own program would do: the ends that a container does not bring about itself.

A fate is met once the first container of the task has printed its first line, so that no clock is needed to tell when.
"""

import threading

_lock = threading.Lock()
_next = []

# Stop code and words, as ECS writes them.
TAKEN = {
    "spot-interruption": ("SpotInterruption", "Your Spot Task was interrupted."),
    "host-lost": ("TerminationNotice", "ECS is performing maintenance on the underlying infrastructure hosting the task."),
}
OUT_OF_MEMORY = "OutOfMemoryError: Container killed due to memory usage"


def add(fate):
    """{"fate": "out-of-memory"} | {"fate": "spot-interruption"} | {"fate": "host-lost"} | {"fate": "no-start" | "lost", "reason": words}."""
    if fate.get("fate") not in ("out-of-memory", "no-start", "lost", *TAKEN):
        raise ValueError(f"not a fate: {fate}")
    with _lock:
        _next.append(fate)


def take():
    """The fate of the task that is about to start, or None; several queue up."""
    with _lock:
        return _next.pop(0) if _next else None


def clear():
    """Every task ends by itself."""
    with _lock:
        _next.clear()
