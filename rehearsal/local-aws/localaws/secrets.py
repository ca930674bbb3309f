"""A container's `secrets`, read under the execution role as the ECS agent does."""

import json

from . import iam, keys
from .seam import get_account_id, get_region, secretsmanager, ssm


class SecretUnavailable(Exception):
    """Why the task cannot start."""


def resolve(definition, execution_role):
    """{name: plaintext} for a container definition; nothing is decrypted that the role may not read."""
    return {secret["name"]: _value(secret["valueFrom"], execution_role) for secret in definition.get("secrets", [])}


def _value(reference, role):
    if ":secretsmanager:" in reference:
        return _from_secrets_manager(reference, role)
    name = reference.split(":parameter", 1)[1] if ":parameter/" in reference else reference
    arn = (
        reference
        if reference.startswith("arn:")
        else (f"arn:aws:ssm:{get_region()}:{get_account_id()}:parameter/{name.lstrip('/')}")
    )
    _require(role, "ssm:GetParameters", arn, "ssm")
    value = ssm.resolve_parameter_value(reference, decrypt=True)
    if value is None:
        raise SecretUnavailable(_retrieval("ssm", f"invalid ssm parameters: {name}"))
    key = (ssm._parameters.get(name) or ssm._parameters.get(name.lstrip("/")) or {}).get("KeyId", "")
    try:
        record = keys.find(key)
    except keys.Unusable as unusable:
        raise SecretUnavailable(_retrieval("ssm", ": ".join(unusable.args))) from None
    if record and not (role and iam.may(role, "kms:Decrypt", record["Arn"], **keys.context(record))):
        message = (
            "AccessDeniedException: The ciphertext refers to a customer master key that does not exist, does not exist in this "
            "region, or you are not allowed to access."
        )
        raise SecretUnavailable(_retrieval("ssm", message))
    return value


def _from_secrets_manager(reference, role):
    parts = reference.split(":")
    arn, field = ":".join(parts[:7]), parts[7] if len(parts) > 7 else ""
    _require(role, "secretsmanager:GetSecretValue", arn, "secretsmanager")
    value = secretsmanager.resolve_secret_string(arn)
    if value is None:
        raise SecretUnavailable(
            _retrieval("asm", "ResourceNotFoundException: Secrets Manager can't find the specified secret.")
        )
    return str(json.loads(value)[field]) if field else value


def _require(role, action, resource, store):
    if not role or not iam.may(role, action, resource):
        who = role.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/") + "/ecs" if role else "no execution role"
        raise SecretUnavailable(
            _retrieval(
                store,
                f"AccessDeniedException: User: {who} is not authorized to perform: {action} on resource: {resource} "
                f"because no identity-based policy allows the {action} action",
            )
        )


def _retrieval(store, why):
    return (
        "ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: "
        f"unable to retrieve secrets from {store}: service call has been retried 1 time(s): {why}"
    )
