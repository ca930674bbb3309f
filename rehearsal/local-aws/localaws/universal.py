"""The universal target: `arn:aws:scheduler:::aws-sdk:SERVICE:action` with an Input in PascalCase."""

import json
import re

from . import model
from .seam import Refused

READ_ONLY = (
    "get",
    "describe",
    "list",
    "poll",
    "receive",
    "search",
    "scan",
    "query",
    "select",
    "read",
    "lookup",
    "discover",
    "validate",
    "batchGet",
    "batchDescribe",
    "batchRead",
    "transactGet",
    "adminGet",
    "adminList",
    "testMigration",
    "retrieve",
    "testConnection",
    "translateDocument",
    "isAuthorized",
    "invokeModel",
)


def parse(target):
    """(service, operation, parameters as the API spells them) of a target; refuses what CreateSchedule refuses."""
    match = re.fullmatch(r"arn:aws(?:-[a-z]+)*:scheduler:::aws-sdk:([a-z0-9-]+):([a-z][A-Za-z0-9]*)", target["Arn"])
    if not match:
        raise Refused("ValidationException", f"Provided Arn is not in correct format. Arn: {target['Arn']}")
    service, action = match.groups()
    operation = action[0].upper() + action[1:]
    shape = model.input_shape(service, operation)
    if shape is None or action.startswith(READ_ONLY):
        raise Refused("ValidationException", f"{service}:{action} is not a supported service for a target.")
    try:
        value = json.loads(target.get("Input") or "{}")
        return service, operation, model.convert(shape, value, "Input", pascal=True)
    except model.MissingFields as missing:
        raise _invalid(f"Request payload is missing the following field(s): {', '.join(missing.fields)}.") from None
    except (model.BadShape, ValueError) as bad:
        raise _invalid(str(bad)) from None


def fill(text, schedule_arn, scheduled_time, execution_id, attempt):
    """Replaces the context attributes, textually and only where the angle brackets are literal, as AWS does."""
    for name, value in {
        "schedule-arn": schedule_arn,
        "scheduled-time": scheduled_time,
        "execution-id": execution_id,
        "attempt-number": str(attempt),
    }.items():
        text = text.replace(f"<aws.scheduler.{name}>", value)
    return text


def _invalid(reason):
    return Refused("ValidationException", f"Invalid RequestJson provided. Reason {reason}")
