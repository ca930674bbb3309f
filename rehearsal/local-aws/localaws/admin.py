"""The stage manager's door: plain HTTP and JSON on a loopback port of its own. README.md lists the requests."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from . import fates, faults, firing, iam, lateness, redact, tasks, world
from .clock import clock, parse, render
from .seam import ACCOUNT, REGION, request_scope


class Admin:
    """The requests, as methods of (verb, path)."""

    def __init__(self, engine, endpoint):
        self._engine, self._endpoint = engine, endpoint
        self.routes = {
            ("GET", "/calls"): lambda _: {"calls": faults.calls()},
            ("GET", "/counts"): lambda _: faults.counts(),
            ("DELETE", "/calls"): lambda _: faults.forget_calls(),
            ("GET", "/faults"): lambda _: faults.pending(),
            ("POST", "/faults"): faults.add,
            ("DELETE", "/faults"): lambda _: (faults.clear(), fates.clear(), lateness.clear())[0],
            ("POST", "/slow"): lambda body: faults.slow(body["seconds"]),
            ("POST", "/deny"): lambda body: faults.deny(body["action"]),
            ("POST", "/allow"): lambda body: faults.allow(body["action"]),
            ("POST", "/run-task-failures"): lambda body: faults.fail_run_task(body["failures"]),
            ("POST", "/tasks/hide"): lambda body: faults.hide_tasks(body["calls"]),
            ("POST", "/tasks/fate"): fates.add,
            ("POST", "/logs/late"): lambda body: lateness.late(body["calls"], body.get("every", 1)),
            ("POST", "/logs/hide"): lambda body: lateness.hide(body["calls"]),
            ("POST", "/logs/page"): lambda body: lateness.page(body["events"]),
            ("POST", "/iam/delay"): lambda body: iam.propagation.delay(body["attempts"]),
            ("POST", "/iam/release"): lambda _: iam.propagation.release(),
            ("GET", "/clock"): lambda _: {"now": render(clock.now())},
            ("POST", "/clock"): _move_clock,
            ("POST", "/tick"): lambda _: {"now": render(clock.now()), "invocations": firing.tick()},
            ("POST", "/deliver-again"): lambda body: firing.deliver_again(*body["schedule"].split("/")),
            ("GET", "/invocations"): lambda _: {"invocations": firing.invocations()},
            ("DELETE", "/invocations"): lambda _: firing.forget_invocations(),
            ("POST", "/tasks/wait"): _wait_for_task,
            ("POST", "/images"): lambda body: self._engine.images.update(body),
            ("POST", "/world"): lambda body: world.make(self._endpoint, body),
            ("POST", "/users"): lambda body: world.user(self._endpoint, body["name"], body["policy"]),
            ("GET", "/state"): lambda _: redact.state(),
        }

    def serve(self):
        """Starts on a port from the kernel and returns the base URL."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.routes))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"


def _move_clock(body):
    """{"now": RFC 3339} | {"advance": seconds} | {"advance_to_next_fire": "group/name"}"""
    if "advance_to_next_fire" in body:
        moment = firing.next_of(*body["advance_to_next_fire"].split("/"))
        if moment is None:
            raise ValueError(f"{body['advance_to_next_fire']} never fires again")
    elif "advance" in body:
        moment = clock.now() + body["advance"]
    else:
        moment = parse(body["now"])
    if moment < clock.now() - 1:
        raise ValueError(f"the clock shows {render(clock.now())} and does not go back")
    fired = firing.advance(moment)
    return {"now": render(clock.now()), "invocations": fired}


def _wait_for_task(body):
    with request_scope(ACCOUNT, REGION):
        stopped = tasks.wait_stopped(body["task"], body.get("timeout", 60))
    if stopped is None:
        raise ValueError(f"{body['task']} is still running")
    return stopped


def _handler(routes):
    class Handler(BaseHTTPRequestHandler):
        def _answer(self):
            length = int(self.headers.get("Content-Length") or 0)
            try:
                body = json.loads(self.rfile.read(length) or b"{}")
                result, status = routes[self.command, self.path](body) or {}, 200
            except (KeyError, ValueError, TypeError) as error:
                known = ", ".join(f"{verb} {path}" for verb, path in routes)
                reason = str(error) if (self.command, self.path) in routes else f"no such request; there are: {known}"
                result, status = {"error": reason}, 400
            data = json.dumps(result, ensure_ascii=False, default=str).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _answer

        def log_message(self, *_):
            pass

    return Handler
