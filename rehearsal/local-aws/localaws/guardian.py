"""The last one to leave: ends every container process and removes the run folder, however the server died.

A child process that holds the read end of a pipe. The server writes `+PID CLEANUP` and `-PID` lines as containers come and go;
when the pipe ends - also because the server was killed - whatever is still on the list is killed with its group, and its
CLEANUP, a command line as JSON, is run: killing the client of docker or podman does not end the container.
PR_SET_PDEATHSIG would be wrong here: it fires when the *thread* that started the process ends.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading

# What the command line of docker or podman needs to find its containers.
CLEANUP_ENV = ("PATH", "HOME", "DOCKER_HOST", "XDG_RUNTIME_DIR", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF")


class Guardian:
    """The server's end of the pipe."""

    def __init__(self, folder):
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", os.path.abspath(__file__), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
            env={name: value for name, value in os.environ.items() if name in CLEANUP_ENV},
        )

    def spawn(self, argv, cleanup=None, **options):
        """Starts a process, in a group of its own, that ends with the server; not any more once the server is ending."""
        with self._lock:  # so that `close` cannot fall between the start and the news of it
            if self._process.stdin.closed:
                raise OSError("the server is ending")
            process = subprocess.Popen(argv, start_new_session=True, **options)
            self._tell(f"+{process.pid} {json.dumps(cleanup)}")
            return process

    def forget(self, pid):
        """`pid` has ended."""
        with self._lock:
            if not self._process.stdin.closed:
                self._tell(f"-{pid}")

    def close(self):
        """Let the guardian do its work, and wait for it."""
        with self._lock:
            self._process.stdin.close()
        self._process.wait()

    def _tell(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


def main(folder):
    """The guardian's life: listen until the pipe ends, then clean up."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    alive = {}
    for line in sys.stdin:
        pid, _, cleanup = line[1:].partition(" ")
        if line[0] == "+":
            alive[int(pid)] = json.loads(cleanup)
        else:
            alive.pop(int(pid), None)
    for pid, cleanup in alive.items():
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if cleanup:
            subprocess.run(cleanup, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
