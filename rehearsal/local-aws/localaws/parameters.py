"""What SSM's PutParameter refuses beyond what ministack already does."""

import re

from . import keys, model
from .seam import Refused, refusable, ssm

_put_parameter = ssm._put_parameter


@refusable
def put_parameter(request):
    """PutParameter."""
    try:
        model.check("ssm", "PutParameter", request)
    except model.BadShape as bad:
        raise Refused("ValidationException", f"1 validation error detected: {bad}") from None
    name, value = request["Name"], request["Value"]
    if not re.fullmatch(r"[a-zA-Z0-9_.\-/]+", name) or ("/" in name and not name.startswith("/")):
        raise Refused(
            "ValidationException",
            'Parameter name: can\'t be prefixed with "ssm" (case-insensitive). If formed as a path, it can consist of '
            "sub-paths divided by slash symbol; each sub-path can be formed as a mix of letters, numbers and the "
            "following 3 symbols .-_",
        )
    if not value:
        raise Refused(
            "ValidationException",
            "1 validation error detected: Value at 'value' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1.",
        )
    if re.search(r"\{\{.*\}\}", value, re.DOTALL):
        raise Refused("ValidationException", 'Parameter value can\'t nest another parameter. Do not use "{{}}" in the value.')
    tier, limit = ("Standard", 4096) if request.get("Tier", "Standard") == "Standard" else ("Advanced", 8192)
    if len(value.encode()) > limit:
        message = f"{tier} tier parameters support a maximum parameter value of {limit} characters."
        raise Refused("ValidationException", message)
    existing = ssm._parameters.get(name)
    if existing and request.get("Overwrite") and request.get("Type", existing["Type"]) != existing["Type"]:
        raise Refused(
            "HierarchyTypeMismatchException",
            "Parameter Store doesn't support changing a parameter type in a hierarchy. "
            "You must create a new, unique parameter.",
        )
    if request.get("Type", (existing or {}).get("Type")) == "SecureString":
        keys.check_encrypt(request.get("KeyId"))
    return _put_parameter(request)


def install():
    """Stands in front of ministack's own."""
    ssm._put_parameter = put_parameter
