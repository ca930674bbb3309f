"""Starts the local AWS: one JSON line on stdout says where it is; it ends when its standard input does.

python main.py --images images.json [--engine process|docker|podman] [--folder FOLDER] < /dev/tty
"""

import argparse
import asyncio
import json
import logging
import os
import socket
import sys
import tempfile
import threading

sys.dont_write_bytecode = True  # the repository stays as it was


def main():
    """Parses the command line, serves until stdin ends, leaves nothing behind."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--images", help='JSON file: {"name:tag": {"entrypoint": [...], "cmd": [...], "env": {...}}}')
    arguments.add_argument("--engine", choices=("process", "docker", "podman"), default="process")
    arguments.add_argument("--folder", help="where the run folder is made (default: the temporary folder)")
    options = arguments.parse_args()

    folder = tempfile.mkdtemp(prefix="local-aws-", dir=options.folder)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    port = listener.getsockname()[1]
    os.environ["GATEWAY_PORT"] = str(port)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s [%(name)s] %(message)s")

    from localaws import authority, engine, guardian, lateness, parameters, scheduler, seam, server, taskdefs, tasks
    from localaws.admin import Admin

    watcher = guardian.Guardian(folder)
    if options.engine == "process":
        images = json.load(open(options.images, encoding="utf-8")) if options.images else {}
        runner = engine.ProcessEngine(images, folder, watcher)
    else:
        runner = engine.CommandLineEngine(options.engine, folder, watcher)
    endpoint = f"http://127.0.0.1:{port}"
    authority.install()
    lateness.install()
    parameters.install()
    scheduler.install()
    taskdefs.install()
    tasks.install(runner, endpoint)
    ready = {"endpoint": endpoint, "admin": Admin(runner, endpoint).serve(), "account": seam.ACCOUNT, "region": seam.REGION}

    threading.Thread(target=server.end_with_stdin, args=(watcher,), daemon=True).start()
    asyncio.run(server.serve(listener, lambda: print(json.dumps(ready), flush=True)))


if __name__ == "__main__":
    main()
