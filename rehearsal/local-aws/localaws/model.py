"""Amazon's own service models (from botocore) as the judge of a request's shape."""

import functools
import re

from botocore.exceptions import UnknownServiceError
from botocore.loaders import Loader
from botocore.model import ServiceModel

_loader = Loader()
_KINDS = {"string": str, "integer": int, "boolean": bool, "map": dict, "list": list, "structure": dict}


class BadShape(Exception):
    """The request does not have the shape that the model gives it."""


class MissingFields(BadShape):
    """Required members are absent; `fields` are their names as the request spells them."""

    def __init__(self, path, fields):
        super().__init__(f"{path}: missing required field(s): {', '.join(fields)}")
        self.fields = fields


def input_shape(service, operation):
    """The input shape of an operation, or None when the service has no such operation."""
    try:
        model = _service(service)
    except UnknownServiceError:
        return None
    return model.operation_model(operation).input_shape if operation in model.operation_names else None


@functools.cache
def _service(name):
    return ServiceModel(_loader.load_service_model(name, "service-2"), name)


def convert(shape, value, path, pascal=False):
    """The value with the API's own member names; refuses what the model refuses.

    With `pascal`, members are spelled as EventBridge Scheduler wants them: the first letter in upper case, at every level.
    """
    kind = shape.type_name
    expected = _KINDS.get(kind)
    if expected and (not isinstance(value, expected) or (expected is int and isinstance(value, bool))):
        raise BadShape(f"{path}: expected {kind}")
    if kind == "structure":
        names = {(name[0].upper() + name[1:] if pascal else name): name for name in shape.members}
        if missing := [key for key, name in names.items() if name in shape.required_members and key not in value]:
            raise MissingFields(path, missing)
        if unknown := [key for key in value if key not in names]:
            raise BadShape(f"{path}: unknown field {unknown[0]}")
        return {names[key]: convert(shape.members[names[key]], item, f"{path}.{key}", pascal) for key, item in value.items()}
    _check_limits(shape, value, path)
    if kind == "list":
        return [convert(shape.member, item, f"{path}[{index}]", pascal) for index, item in enumerate(value)]
    return value


def check(service, operation, request):
    """Refuses a request whose shape the operation's model does not allow."""
    convert(input_shape(service, operation), request, operation)


def _check_limits(shape, value, path):
    limits = shape.metadata
    if limits.get("enum") and value not in limits["enum"]:
        raise BadShape(f"{path}: Member must satisfy enum value set: [{', '.join(limits['enum'])}]")
    if isinstance(value, bool):
        return
    size = value if isinstance(value, (int, float)) else len(value)
    if not limits.get("min", size) <= size <= limits.get("max", size):
        raise BadShape(f"{path}: {size} is not within {limits.get('min')}..{limits.get('max')}")
    if isinstance(value, str) and (pattern := _pattern(limits.get("pattern"))) and not pattern.search(value):
        raise BadShape(f"{path}: Member must satisfy regular expression pattern: {pattern.pattern}")


@functools.cache
def _pattern(text):
    """The models' patterns are Java's; the few that Python cannot read (`\\p{Graph}`) are not checked."""
    try:
        return re.compile(text) if text else None
    except re.error:
        return None
