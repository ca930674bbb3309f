"""EventBridge Scheduler: its twelve operations, with its refusals and its defaults.

Replaces ministack's whole: that one accepts anything, fills in nothing and never fires a universal target.
Firing is in `firing.py`.
"""

import copy
import json
import re
from email.utils import formatdate
from urllib.parse import unquote

from . import expressions, iam, model, universal
from .clock import clock
from .seam import Refused, ScopedDict, answer, get_account_id, get_region
from .seam import scheduler as ministack_scheduler

DEFAULT_RETRY = {"MaximumEventAgeInSeconds": 86400, "MaximumRetryAttempts": 185}
CANNOT_ASSUME = "The execution role you provide must allow AWS EventBridge Scheduler to assume the role."

schedules = ScopedDict()  # (group, name) -> schedule as GetSchedule shows it
groups = ScopedDict()  # name -> group as GetScheduleGroup shows it
tags = ScopedDict()  # group ARN -> {key: value}
_tokens = ScopedDict()  # (operation, name, client token) -> (request, result)


def install():
    """Takes the service over from ministack."""
    ministack_scheduler.handle_request = handle_request


async def handle_request(method, path, _headers, body, query):
    """One HTTP request, already known to be for this service. Its answer is dated by the clock that schedules are due by."""
    status, headers, content = _handle(method, path, body, query)
    return status, {**headers, "Date": formatdate(clock.now(), usegmt=True)}, content


def _handle(method, path, body, query):
    request = json.loads(body) if body else {}
    try:
        for pattern, verb, operation in ROUTES:
            if method == verb and (match := re.fullmatch(pattern, path)):
                return answer(operation(*(unquote(part) for part in match.groups()), request, query) or {})
        raise Refused("ValidationException", f"No such operation: {method} {path}")
    except Refused as refused:
        if refused.code == "AccessDeniedException":
            refused.status = 403
        return refused.response()


def create_schedule(name, request, _query):
    """CreateSchedule."""
    key = (request.get("GroupName", "default"), name)
    return _once("create", name, request, lambda: _store(key, request, _new(key), "CreateSchedule"))


def update_schedule(name, request, _query):
    """UpdateSchedule: a full PUT; what is omitted gets the system's default, State becomes ENABLED."""
    key = (request.get("GroupName", "default"), name)
    return _once("update", name, request, lambda: _store(key, request, _existing(key), "UpdateSchedule"))


def get_schedule(name, _request, query):
    """GetSchedule."""
    return _existing((_one(query, "groupName", "default"), name))


def delete_schedule(name, _request, query):
    """DeleteSchedule."""
    key = (_one(query, "groupName", "default"), name)
    _existing(key)
    del schedules[key]


def list_schedules(_request, query):
    """ListSchedules: a summary, without Input or expression."""
    group, prefix, state = (_one(query, key) for key in ("ScheduleGroup", "NamePrefix", "State"))
    summary = ("Arn", "Name", "GroupName", "State", "CreationDate", "LastModificationDate")
    found = [
        {**{member: one[member] for member in summary}, "Target": {"Arn": one["Target"]["Arn"]}}
        for one in schedules.values()
        if (not group or one["GroupName"] == group)
        and one["Name"].startswith(prefix or "")
        and (not state or one["State"] == state)
    ]
    return _page("Schedules", found, query)


def create_group(name, request, _query):
    """CreateScheduleGroup: the only thing here that can be tagged."""
    _check_shape("CreateScheduleGroup", {**request, "Name": name})

    def make():
        if name == "default" or name in groups:
            raise Refused("ConflictException", f"Schedule group {name} already exists.", 409)
        now, arn = clock.now(), group_arn(name)
        groups[name] = {"Arn": arn, "Name": name, "State": "ACTIVE", "CreationDate": now, "LastModificationDate": now}
        tags[arn] = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
        return {"ScheduleGroupArn": arn}

    return _once("group", name, request, make)


def get_group(name, _request, _query):
    """GetScheduleGroup."""
    return _group(name)


def delete_group(name, _request, _query):
    """DeleteScheduleGroup: with every schedule in it."""
    if name == "default":
        raise Refused("ValidationException", "The default schedule group cannot be deleted.")
    arn = _group(name)["Arn"]
    for key in [key for key in schedules if key[0] == name]:
        del schedules[key]
    del groups[name]
    tags.pop(arn, None)


def list_groups(_request, query):
    """ListScheduleGroups."""
    prefix = _one(query, "NamePrefix", "")
    found = [one for one in [_group("default"), *groups.values()] if one["Name"].startswith(prefix)]
    return _page("ScheduleGroups", found, query)


def list_tags(arn, _request, _query):
    """ListTagsForResource."""
    return {"Tags": [{"Key": key, "Value": value} for key, value in _tagged(arn).items()]}


def tag(arn, request, _query):
    """TagResource."""
    _tagged(arn).update({tag["Key"]: tag["Value"] for tag in request["Tags"]})


def untag(arn, _request, query):
    """UntagResource."""
    for key in query.get("TagKeys", []):
        _tagged(arn).pop(key, None)


ROUTES = [
    (r"/schedules", "GET", list_schedules),
    (r"/schedules/([^/]+)", "POST", create_schedule),
    (r"/schedules/([^/]+)", "PUT", update_schedule),
    (r"/schedules/([^/]+)", "GET", get_schedule),
    (r"/schedules/([^/]+)", "DELETE", delete_schedule),
    (r"/schedule-groups", "GET", list_groups),
    (r"/schedule-groups/([^/]+)", "POST", create_group),
    (r"/schedule-groups/([^/]+)", "GET", get_group),
    (r"/schedule-groups/([^/]+)", "DELETE", delete_group),
    (r"/tags/(.+)", "GET", list_tags),
    (r"/tags/(.+)", "POST", tag),
    (r"/tags/(.+)", "DELETE", untag),
]


def group_arn(name):
    """The ARN that a role's trust policy may name in aws:SourceArn."""
    return f"arn:aws:scheduler:{get_region()}:{get_account_id()}:schedule-group/{name}"


def _group(name):
    if name == "default":
        return {"Arn": group_arn(name), "Name": name, "State": "ACTIVE", "CreationDate": 0, "LastModificationDate": 0}
    if name not in groups:
        raise Refused("ResourceNotFoundException", f"Schedule group {name} does not exist.", 404)
    return groups[name]


def _existing(key):
    if key not in schedules:
        raise Refused("ResourceNotFoundException", f"Schedule {key[1]} does not exist.", 404)
    return schedules[key]


def _new(key):
    group, name = key
    _group(group)
    if key in schedules:
        raise Refused("ConflictException", f"Schedule {name} already exists.", 409)
    arn = f"arn:aws:scheduler:{get_region()}:{get_account_id()}:schedule/{group}/{name}"
    return {"Arn": arn, "Name": name, "GroupName": group, "CreationDate": clock.now()}


def _tagged(arn):
    match = re.fullmatch(r"arn:aws(?:-[a-z]+)?:scheduler:[a-z0-9-]+:\d{12}:schedule-group/([0-9a-zA-Z_.-]+)", arn)
    if not match:
        raise Refused(
            "ValidationException",
            f"1 validation error detected: Value '{arn}' at 'resourceArn' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern of a schedule group ARN",
        )
    _group(match[1])
    if arn not in tags:
        tags[arn] = {}
    return tags[arn]


def _store(key, request, identity, operation):
    _check_shape(operation, {**request, "Name": key[1]})
    _check_schedule(request, key[0])
    kept = ("ScheduleExpression", "FlexibleTimeWindow", "Description", "StartDate", "EndDate", "KmsKeyArn")
    target = copy.deepcopy(request["Target"])
    target["RetryPolicy"] = {**DEFAULT_RETRY, **target.get("RetryPolicy", {})}
    schedules[key] = {
        **{member: identity[member] for member in ("Arn", "Name", "GroupName", "CreationDate")},
        **{member: request[member] for member in kept if request.get(member) is not None},
        "ScheduleExpressionTimezone": request.get("ScheduleExpressionTimezone", "UTC"),
        "State": request.get("State", "ENABLED"),
        "ActionAfterCompletion": request.get("ActionAfterCompletion", "NONE"),
        "Target": target,
        "LastModificationDate": clock.now(),
    }
    return {"ScheduleArn": identity["Arn"]}


def _check_schedule(request, group):
    window = request["FlexibleTimeWindow"]
    if (window["Mode"] == "FLEXIBLE") != ("MaximumWindowInMinutes" in window):
        raise Refused(
            "ValidationException", "MaximumWindowInMinutes must be provided when FlexibleTimeWindow is FLEXIBLE, and only then."
        )
    try:
        expressions.check(request["ScheduleExpression"], request.get("ScheduleExpressionTimezone", "UTC"))
    except ValueError as bad:
        raise Refused("ValidationException", str(bad)) from None
    if (start := request.get("StartDate")) and start < clock.now() - 300:
        raise Refused("ValidationException", "The StartDate you specify cannot be earlier than 5 minutes ago.")
    universal.parse(request["Target"])
    role = request["Target"]["RoleArn"]
    iam.check_pass_role(role, "scheduler.amazonaws.com")
    if not iam.trusts(role, "scheduler.amazonaws.com", group_arn(group)):
        raise Refused("ValidationException", CANNOT_ASSUME)


def _check_shape(operation, request):
    try:
        model.check("scheduler", operation, request)
    except model.BadShape as bad:
        raise Refused("ValidationException", f"1 validation error detected: {bad}") from None


def _once(operation, name, request, action):
    """The same client token with the same request is the same call: it gets the same answer."""
    key = (operation, name, request.get("ClientToken"))
    if request.get("ClientToken") and key in _tokens:
        seen, result = _tokens[key]
        if seen != request:
            raise Refused("ConflictException", "The client token was used before with different parameters.", 409)
        return result
    result = action()
    if request.get("ClientToken"):
        _tokens[key] = (copy.deepcopy(request), result)
    return result


def _page(member, found, query):
    limit, start = int(_one(query, "MaxResults", 100)), int(_one(query, "NextToken", 0))
    more = {"NextToken": str(start + limit)} if start + limit < len(found) else {}
    return {member: found[start : start + limit], **more}


def _one(query, key, default=None):
    return query[key][0] if query.get(key) else default
