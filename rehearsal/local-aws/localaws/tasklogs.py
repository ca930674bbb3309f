"""The awslogs driver: one stream `prefix/container/task-id`, written under the execution role."""

import time

from . import iam, lateness
from .seam import get_account_id, get_region, logs, request_scope


BUFFER = 16 * 1024  # bytes


class LogsUnavailable(Exception):
    """Why the task cannot start."""


def open_stream(definition, task_id, execution_role):
    """Creates the stream and returns a function that takes a line; one that drops it when nothing is configured."""
    configuration = definition.get("logConfiguration") or {}
    if configuration.get("logDriver") != "awslogs":
        return lambda line: None
    options = configuration["options"]
    group, account, region = options["awslogs-group"], get_account_id(), options.get("awslogs-region") or get_region()
    stream = f"{options.get('awslogs-stream-prefix', 'ecs')}/{definition['name']}/{task_id}"
    with request_scope(account, region):
        if str(options.get("awslogs-create-group")).lower() == "true" and group not in logs._log_groups:
            _require(execution_role, "logs:CreateLogGroup", group)
            logs._create_log_group({"logGroupName": group})
        _require(execution_role, "logs:CreateLogStream", group, stream)
        if group not in logs._log_groups:
            raise LogsUnavailable(_retried("ResourceNotFoundException: The specified log group does not exist."))
        logs._create_log_stream({"logGroupName": group, "logStreamName": stream})

    def write(line):
        with request_scope(account, region):
            now = int(time.time() * 1000)
            lateness.put(group, stream, [{"timestamp": now, "message": part} for part in _parts(line)])

    return write


def _parts(line):
    """A line as the driver sends it: one event, or as many as its buffer makes of it; a letter on the seam is lost."""
    data = line.encode()
    pieces = [data[at : at + BUFFER] for at in range(0, len(data), BUFFER)] or [b""]
    return [piece.decode("utf-8", "replace") for piece in pieces]


def _require(role, action, group, stream="*"):
    resource = f"arn:aws:logs:{get_region()}:{get_account_id()}:log-group:{group}:log-stream:{stream}"
    if not role or not iam.may(role, action, resource):
        raise LogsUnavailable(
            _retried(f"AccessDeniedException: {role} is not authorized to perform: {action} on resource: {resource}")
        )


def _retried(why):
    return (
        "ResourceInitializationError: failed to validate logger args: create stream has been retried 1 times: "
        f"failed to create Cloudwatch log stream: {why} : exit status 1"
    )
