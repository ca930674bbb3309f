"""What a call needs to be allowed to do, resource and condition keys as AWS documents them; and IAM's simulator.

ministack authenticates and evaluates, but names many resources only roughly: every schedule is in the group `default`, a
RunTask is about a cluster. Here the call is asked about exactly what AWS asks about, and also about what it does besides:
whoever creates something with tags must be allowed to tag it.
"""

import contextvars
import json
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

from . import iam, taskdefs
from .seam import AuthError, ecs, evaluator, get_account_id, get_region, iam_service

_asked = contextvars.ContextVar("asked", default=None)
_refused = contextvars.ContextVar("refused", default=None)
_enforce = evaluator.enforce


def install():
    """Stands in front of ministack's own authorization and simulator."""
    evaluator.enforce = enforce
    iam_service._IAM_HANDLERS["SimulatePrincipalPolicy"] = simulate


def ask(name, path, body, query):
    """Remembers the call that is about to be authorized."""
    try:
        request = json.loads(body or b"{}")
    except ValueError:
        request = {key: values[0] for key, values in parse_qs(body.decode(), keep_blank_values=True).items()}
    _asked.set((name, path, request if isinstance(request, dict) else {}, query))
    _refused.set(None)


def refused():
    """(action, resource) that the call lacks, when it was refused here."""
    return _refused.get()


def enforce(access_key, action, service, region, resource_arn="*", service_context=None):
    """None when allowed; else what ministack's own would answer."""
    asked = _asked.get()
    if asked is None or asked[0] != action:
        return _enforce(access_key, action, service, region, resource_arn, service_context)
    for needed, resource, keys in _needs(*asked, resource_arn):
        denied = _enforce(access_key, needed, service, region, resource, {**(service_context or {}), **keys})
        if denied:
            if not isinstance(denied, AuthError):
                _refused.set((needed, resource))
            return denied
    return None


def _needs(name, path, request, query, roughly):
    """Every (action, resource, keys) that the call must be allowed."""
    service, action = name.split(":")
    exact = {"scheduler": _scheduler, "ecs": _ecs, "logs": _logs, "iam": _iam}.get(service)
    resource, keys = exact(action, path, request, query) if exact else (None, {})
    resource = resource or roughly
    needs = [(name, resource, keys)]
    if name == "ssm:GetParameters":
        needs = [(name, _arn("ssm", f"parameter/{one.lstrip('/')}"), {}) for one in request.get("Names", [])]
    tagging = {
        "ssm:PutParameter": ("Tags", "ssm:AddTagsToResource"),
        "scheduler:CreateScheduleGroup": ("Tags", "scheduler:TagResource"),
        "iam:CreateRole": ("Tags.member.1.Key", "iam:TagRole"),
        "ecs:RegisterTaskDefinition": ("tags", "ecs:TagResource"),
    }.get(name)
    if tagging and request.get(tagging[0]):
        of = _arn("ecs", f"task-definition/{request.get('family')}:*") if service == "ecs" else resource
        needs.append((tagging[1], of, {"ecs:CreateAction": action} if service == "ecs" else {}))
    return needs


def _arn(service, tail):
    return f"arn:aws:{service}:{get_region()}:{get_account_id()}:{tail}"


def _scheduler(action, path, request, query):
    parts = [unquote(part) for part in path.split("/") if part]
    if parts[0] == "schedules" and len(parts) > 1:
        group = request.get("GroupName") or (query.get("groupName") or ["default"])[0]
        return _arn("scheduler", f"schedule/{group}/{parts[1]}"), {}
    if parts[0] == "schedule-groups" and len(parts) > 1:
        return _arn("scheduler", f"schedule-group/{parts[1]}"), {}
    if parts[0] == "tags":
        return unquote(path.split("/tags/", 1)[1]), {}
    return "*", {}


def _ecs(action, _path, request, _query):
    name = ecs._resolve_cluster_name(request.get("cluster", "default"))
    cluster = ecs._clusters.get(name, {}).get("clusterArn", _arn("ecs", f"cluster/{name}"))
    keys = {"ecs:cluster": cluster}
    if action == "RunTask":
        definition = taskdefs.find(request.get("taskDefinition", ""))
        return (definition or {}).get("taskDefinitionArn", "*"), keys
    if action in ("DescribeTasks", "StopTask"):
        tasks = request.get("tasks") or [request.get("task", "")]
        return tasks[0] if tasks[0].startswith("arn:") else _arn("ecs", f"task/{name}/{tasks[0]}"), keys
    if action == "DescribeClusters":
        wanted = (request.get("clusters") or ["default"])[0]
        return wanted if wanted.startswith("arn:") else _arn("ecs", f"cluster/{wanted}"), {}
    if action == "DescribeServices":
        return _arn("ecs", f"service/{name}/{(request.get('services') or ['*'])[0].split('/')[-1]}"), keys
    return "*", keys


def _logs(action, _path, request, _query):
    if "logGroupName" in request:
        return _arn("logs", f"log-group:{request['logGroupName']}:log-stream:{request.get('logStreamName', '')}"), {}
    return (_arn("logs", "log-group::log-stream:") if action == "DescribeLogGroups" else None), {}


def _iam(action, _path, request, _query):
    if action == "SimulatePrincipalPolicy":
        return request.get("PolicySourceArn"), {}
    record = iam.role(f"arn:aws:iam::{get_account_id()}:role/{request.get('RoleName')}")
    if action == "CreateRole":
        record = {"Arn": f"arn:aws:iam::{get_account_id()}:role{request.get('Path', '/')}{request.get('RoleName')}"}
    boundary = request.get("PermissionsBoundary")
    return record["Arn"] if record else None, {"iam:PermissionsBoundary": boundary} if boundary else {}


def simulate(form):
    """SimulatePrincipalPolicy: with every resource and the caller's own condition keys."""

    def members(prefix):
        found = {name: value for name, value in form.items() if name.startswith(f"{prefix}.member.")}
        return [(value[0] if isinstance(value, list) else value) for _, value in sorted(found.items())]

    keys = {}
    for i in range(1, 21):
        name = form.get(f"ContextEntries.member.{i}.ContextKeyName")
        value = form.get(f"ContextEntries.member.{i}.ContextKeyValues.member.1")
        if name and value:
            keys[name[0] if isinstance(name, list) else name] = value[0] if isinstance(value, list) else value
    principal = form.get("PolicySourceArn", "")
    principal = principal[0] if isinstance(principal, list) else principal
    results = "".join(
        f"<member><EvalActionName>{escape(action)}</EvalActionName><EvalResourceName>{escape(resource)}</EvalResourceName>"
        f"<EvalDecision>{'allowed' if iam.may(principal, action, resource, **keys) else 'implicitDeny'}</EvalDecision></member>"
        for action in members("ActionNames")
        for resource in members("ResourceArns") or ["*"]
    )
    body = (
        '<SimulatePrincipalPolicyResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><SimulatePrincipalPolicyResult>'
        f"<IsTruncated>false</IsTruncated><EvaluationResults>{results}</EvaluationResults></SimulatePrincipalPolicyResult>"
        "<ResponseMetadata><RequestId>local-aws</RequestId></ResponseMetadata></SimulatePrincipalPolicyResponse>"
    )
    return 200, {"Content-Type": "text/xml"}, body.encode()
