"""The front door: every API call is named, recorded, and failed when told so, before ministack sees it."""

import asyncio
import json
import uuid
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from . import authority, faults, iam, redact
from .seam import Refused, actions, app, evaluator, get_account_id, router

QUERY_PROTOCOL = {"iam", "sts", "ec2"}
OWN = {"x-local-aws-own": "1"}  # our own calls (world.py) are not part of the story


async def gateway(scope, receive, send):
    """The ASGI application."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
        return
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    if scope["type"] != "http" or headers.get("x-local-aws-own") or "authorization" not in headers:
        await app.app(scope, receive, send)
        return

    body = await _read(receive)
    query = parse_qs(scope["query_string"].decode(), keep_blank_values=True)
    name, service, resource = _name(scope["method"], scope["path"], headers, body, query)
    request = redact.request(name, headers, body, query)
    call = faults.begin(*name.split(":", 1), request)
    reply = _Reply()
    if faults.denied(name):
        await _send(send, call, _denied(service, name, resource, headers))
    elif fault := faults.hit(call["service"], call["action"], "before") or (service == "iam" and _malformed(name, request)):
        await _send(send, call, _error(service, fault))
    else:
        authority.ask(name, scope["path"], body, query)
        await app.app(scope, _replay(body), reply)
        if missing := authority.refused():
            await _send(send, call, _denied(service, *missing, headers))
            return
        _learn(name, request, reply.status)
        if fault := faults.hit(call["service"], call["action"], "after"):
            await _send(send, call, _error(service, fault))
        else:
            call.update(status=reply.status, error=_code(reply.body()) if reply.status >= 400 else None)
            await asyncio.sleep(faults.slowness())
            faults.end(call)
            for message in reply.messages:
                await send(message)


class _Reply:
    """Holds ministack's answer back until we know whether it is to be sent."""

    def __init__(self):
        self.messages, self.status = [], None

    async def __call__(self, message):
        self.status = message.get("status", self.status)
        self.messages.append(message)

    def body(self):
        """The answer's body."""
        return b"".join(message.get("body", b"") for message in self.messages)


def _name(method, path, headers, body, query):
    """("scheduler:CreateSchedule", "scheduler", resource ARN) of a request."""
    parameters = app._routing_params(method, path, headers, body, query)
    service = router.detect_service(method, path, headers, parameters)
    name = actions.extract_iam_action(service, method, path, headers, body, parameters) or f"{service}:Unknown"
    try:
        resource = actions.extract_resource_arn(
            service, method, path, headers, body, parameters, router.extract_region(headers), get_account_id()
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        resource = "*"  # a malformed request: whoever handles it will say so
    return name, service, resource or "*"


def _malformed(name, form):
    """Trust policies are checked here: ministack stores any text."""
    document = form.get(
        {"iam:CreateRole": "AssumeRolePolicyDocument", "iam:UpdateAssumeRolePolicy": "PolicyDocument"}.get(name)
    )
    try:
        return document and iam.check_trust_policy(document)
    except Refused as refused:
        return {"status": 400, "code": refused.code, "message": refused.message}


def _learn(name, form, status):
    """A role that changed is news, and news travels slowly when the admin says so."""
    if status == 200 and name in ("iam:CreateRole", "iam:UpdateAssumeRolePolicy"):
        iam.propagation.changed(f"arn:aws:iam::{get_account_id()}:role/{form['RoleName']}")


def _denied(service, name, resource, headers):
    message = (
        f"User: {evaluator.caller_arn()} is not authorized to perform: {name} on resource: {resource} "
        f"because no identity-based policy allows the {name} action"
    )
    if service in QUERY_PROTOCOL:
        return actions.access_denied_response(
            service, name, evaluator.caller_arn(), str(uuid.uuid4()), headers=headers, message=message
        )
    return Refused("AccessDeniedException", message, 403 if service == "scheduler" else 400).response()


def _error(service, fault):
    """The fault in the service's own protocol."""
    if service not in QUERY_PROTOCOL:
        return Refused(fault["code"], fault["message"], fault["status"]).response()
    kind = "Sender" if fault["status"] < 500 else "Receiver"
    error = (
        f"<Error><Type>{kind}</Type><Code>{escape(fault['code'])}</Code><Message>{escape(fault['message'])}</Message></Error>"
    )
    if service == "ec2":
        text = f"<Response><Errors>{error}</Errors><RequestID>{uuid.uuid4()}</RequestID></Response>"
    else:
        text = f"<ErrorResponse>{error}<RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>"
    return fault["status"], {"Content-Type": "text/xml"}, text.encode()


async def _send(send, call, answer):
    status, headers, body = answer
    call.update(status=status, error=_code(body))
    lines = {**headers, "content-length": str(len(body)), "x-amzn-requestid": str(uuid.uuid4())}
    encoded = [(name.lower().encode(), value.encode()) for name, value in lines.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def _code(body):
    try:
        return json.loads(body).get("__type")
    except ValueError:
        return body.decode().partition("<Code>")[2].partition("</Code>")[0] or None


async def _read(receive):
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body):
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    return receive


async def _lifespan(receive, send):
    """Ours instead of ministack's, which would look for init scripts and Docker, and start its own schedulers."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
