"""What we keep of a request, and what a state dump shows: everything except the values of secrets."""

import json
from urllib.parse import parse_qs

from . import faults, firing, scheduler
from .seam import ec2, ecs, iam, logs, ssm

HIDDEN = "(secret value)"


def request(name, headers, body, query):
    """The request as data; the value of a SecureString never enters the record."""
    if headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        form = {**parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True), **query}
        return {key: values[0] for key, values in form.items()}
    try:
        value = json.loads(body) if body else {key: values[0] for key, values in query.items()}
    except ValueError:
        value = body.decode("utf-8", "replace")
    if name == "ssm:PutParameter" and isinstance(value, dict) and not _is_plain(value):
        value["Value"] = HIDDEN
    return value


def state():
    """Every byte stored, except the values of SecureString parameters: what a search for a leaked secret looks through."""
    tables = {
        "roles": iam._roles,
        "task_definitions": ecs._task_defs,
        "tasks": ecs._tasks,
        "clusters": ecs._clusters,
        "ecs_tags": ecs._tags,
        "schedules": scheduler.schedules,
        "schedule_groups": scheduler.groups,
        "schedule_tags": scheduler.tags,
        "log_groups": logs._log_groups,
        "subnets": ec2._subnets,
    }
    stored = {name: {str(key): value for key, value in list(table._data.items())} for name, table in tables.items()}
    stored["parameters"] = {str(key): _parameter(value) for key, value in list(ssm._parameters._data.items())}
    stored["parameter_history"] = {
        str(key): [_parameter(version) for version in versions] for key, versions in list(ssm._parameter_history._data.items())
    }
    stored["parameter_tags"] = {str(key): value for key, value in list(ssm._tags._data.items())}
    return {**stored, "calls": faults.calls(), "invocations": firing.invocations()}


def _is_plain(put_parameter):
    kind = put_parameter.get("Type") or (ssm._parameters.get(put_parameter.get("Name")) or {}).get("Type")
    return kind in ("String", "StringList")


def _parameter(record):
    if record["Type"] != "SecureString":
        return record
    return {**record, "Value": HIDDEN, "OriginalValue": HIDDEN}
