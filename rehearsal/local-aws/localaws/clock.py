"""The scheduler's clock: the real one plus an offset, so that a month passes when a test says so."""

import datetime
import threading
import time

UTC = datetime.timezone.utc


class Clock:
    """Runs at the real pace; can be moved, never back."""

    def __init__(self):
        self._lock = threading.Lock()
        self._offset = 0.0

    def now(self):
        """Epoch seconds."""
        with self._lock:
            return time.time() + self._offset

    def move_to(self, moment):
        """The clock shows `moment` and goes on from there; what has passed already changes nothing."""
        with self._lock:
            self._offset = max(self._offset, moment - time.time())


def parse(text):
    """RFC 3339 -> epoch seconds; without a zone it is UTC."""
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def render(moment):
    """Epoch seconds -> `2026-12-05T18:00:00Z`, as in <aws.scheduler.scheduled-time>."""
    return datetime.datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


clock = Clock()
