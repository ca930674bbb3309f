"""Runs one container: as a local process, or through the command line of docker or podman.

An engine maps an image name to something that can be started. A `Container` is one started process whose output is read
line by line; for docker and podman that process is the client, which exits with the container's code. The container itself is
somebody else's child, so that it has to be stopped and removed by name.
"""

import hashlib
import os
import signal
import subprocess
import threading
import uuid

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ImageNotFound(Exception):
    """No such image in the registry that we stand in for."""


class Container:
    """A started container."""

    def __init__(self, argv, env, folder, guardian, client=None):
        self.id = uuid.uuid4().hex
        self._guardian, self._client = guardian, client
        self._process = guardian.spawn(
            argv,
            cleanup=client and client.remove(),
            env=env,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run_to_end(self, on_line):
        """Hands every line to `on_line`, then returns the exit code as a shell would show it (128 + signal).

        The container ends with its first process: what that one left behind is killed, so the output ends too.
        """
        reader = threading.Thread(target=self._read, args=(on_line,), daemon=True)
        reader.start()
        code = self._process.wait()
        self._signal_group(signal.SIGKILL)
        reader.join(5)  # a process that left the group may hold the pipe; no container could
        self._guardian.forget(self._process.pid)
        return 128 - code if code < 0 else code

    def stop(self, grace):
        """SIGTERM, and SIGKILL after `grace` seconds; `run_to_end` returns what became of it."""
        if self._process.poll() is not None:
            return
        # The engine's own `stop` where there is one; it fails while the container is still being made.
        if self._client is None or subprocess.run(self._client.stop(grace), capture_output=True, check=False).returncode:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self):
        """SIGKILL, as the kernel does when memory runs out."""
        if self._client:
            subprocess.run(self._client.remove(), capture_output=True, check=False)
        self._signal_group(signal.SIGKILL)

    def _read(self, on_line):
        for line in self._process.stdout:
            on_line(line.decode("utf-8", "replace").rstrip("\r\n"))

    def _signal_group(self, number):
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass


class ProcessEngine:
    """Images are entries of a table: name -> {"entrypoint": [...], "cmd": [...], "env": {...}}."""

    def __init__(self, images, folder, guardian):
        self.images, self._folder, self._guardian = images, folder, guardian
        self._digests = {}

    def start(self, definition, env):
        """Starts the container of an (overridden) container definition with exactly this environment added."""
        image = self._image(definition["image"])
        argv = [
            *(definition.get("entryPoint") or image.get("entrypoint", [])),
            *(definition.get("command") or image.get("cmd", [])),
        ]
        if not argv:
            raise OSError("no command specified")
        folder = os.path.join(self._folder, f"task-{uuid.uuid4().hex[:12]}")
        os.mkdir(folder)
        return Container(argv, {"PATH": PATH, **image.get("env", {}), **env}, folder, self._guardian)

    def digest(self, name):
        """A stable sha256 of what the name stands for: a rebuilt entry point is another image."""
        image = self._image(name)
        program = (image.get("entrypoint") or [""])[0]
        seen = os.stat(program) if os.path.isfile(program) else None
        key = (name, repr(image), seen and (seen.st_mtime_ns, seen.st_size, seen.st_ino))
        if key not in self._digests:
            digest = hashlib.sha256(repr((name, image.get("entrypoint"), image.get("cmd"))).encode())
            if seen:
                with open(program, "rb") as file:
                    while block := file.read(1 << 20):
                        digest.update(block)
            self._digests[key] = f"sha256:{digest.hexdigest()}"
        return self._digests[key]

    def _image(self, name):
        if name not in self.images:
            raise ImageNotFound(f"failed to resolve ref {name}: not found")
        return self.images[name]


class Client:
    """The command lines that manage one container of docker or podman."""

    def __init__(self, program, name):
        self._program, self._name = program, name

    def stop(self, grace):
        """SIGTERM, and SIGKILL after `grace` seconds."""
        return [self._program, "stop", f"--time={int(grace)}", self._name]

    def remove(self):
        """Kills and forgets it, whatever it does."""
        return [self._program, "rm", "--force", self._name]


class CommandLineEngine:
    """docker or podman, with the host's network; the images are the real ones."""

    def __init__(self, program, folder, guardian):
        self.images, self._program, self._folder, self._guardian = {}, program, folder, guardian

    def start(self, definition, env):
        """Starts `run --rm`; the environment goes by name, so that no value shows in a process list."""
        self.digest(definition["image"])
        name = f"geuneul-{uuid.uuid4().hex[:12]}"
        argv = [self._program, "run", "--rm", "--network=host", f"--name={name}", *(f"--env={key}" for key in env)]
        if definition.get("readonlyRootFilesystem"):
            argv.append("--read-only")
            if self._program == "podman":  # which would put a writable /tmp into it; Fargate does not
                argv.append("--read-only-tmpfs=false")
        if definition.get("user"):
            argv.append(f"--user={definition['user']}")
        if definition.get("workingDirectory"):
            argv.append(f"--workdir={definition['workingDirectory']}")
        if definition.get("entryPoint"):
            argv.append(f"--entrypoint={definition['entryPoint'][0]}")
        argv += [definition["image"], *definition.get("entryPoint", [])[1:], *definition.get("command", [])]
        return Container(argv, {**os.environ, **env}, self._folder, self._guardian, Client(self._program, name))

    def digest(self, name):
        """The image id that the engine knows."""
        inspect = [self._program, "image", "inspect", "--format={{.Id}}", name]
        found = subprocess.run(inspect, capture_output=True, text=True, check=False)
        if found.returncode:
            raise ImageNotFound(f"failed to resolve ref {name}: not found")
        return "sha256:" + found.stdout.strip().removeprefix("sha256:")
