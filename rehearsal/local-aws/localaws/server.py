"""Serving, and ending: the process lives as long as its standard input is open."""

import asyncio
import os
import sys
import threading

from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config

from . import firing
from .gateway import gateway


async def serve(listener, when_ready):
    """Serves the API on the listening socket for ever; calls `when_ready` once requests are answered."""
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.keep_alive_timeout = 75
    config.loglevel = "WARNING"
    config.errorlog = "-"
    threading.Thread(target=firing.keep_ticking, args=(threading.Event(),), daemon=True).start()
    # The socket listens already: a request that comes before hypercorn accepts waits in the backlog.
    asyncio.get_running_loop().call_soon(when_ready)
    await hypercorn_serve(gateway, config, shutdown_trigger=asyncio.Event().wait)


def end_with_stdin(guardian):
    """Blocks until standard input ends, lets the guardian clean up, and ends the process at once."""
    while sys.stdin.buffer.read(4096):
        pass
    guardian.close()
    os._exit(0)
