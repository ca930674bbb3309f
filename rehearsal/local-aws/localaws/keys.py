"""A little of KMS: the key that a SecureString was given. ministack keeps keys and aliases, but its SSM never asks for them."""

from . import iam
from .seam import Refused, get_region, kms

AWS_OWN = "alias/aws/ssm"


class Unusable(Exception):
    """In KMS's words: (code, message)."""


def find(reference):
    """The key's record; None for AWS's own, which everybody may use through SSM."""
    if not reference or reference.endswith(AWS_OWN):
        return None
    record = kms._resolve_key(reference)
    if record is None:
        kind = "Alias" if "alias/" in reference else "Key"
        raise Unusable("NotFoundException", f"{kind} '{reference}' does not exist")
    if record["KeyState"] == "PendingDeletion":
        raise Unusable("KMSInvalidStateException", f"{record['Arn']} is pending deletion.")
    if record["KeyState"] == "Disabled":
        raise Unusable("DisabledException", f"{record['Arn']} is disabled.")
    return record


def context(record):
    """What a policy's condition may ask of a key that SSM uses in somebody's name."""
    aliases = [arn.split(":", 5)[5] for arn, key in kms._aliases.items() if key == record["KeyId"]]
    return {"kms:ViaService": f"ssm.{get_region()}.amazonaws.com", "kms:ResourceAliases": aliases}


def check_encrypt(reference):
    """Refuses a PutParameter whose key cannot be used, as SSM passes on what KMS says."""
    try:
        record = find(reference)
    except Unusable as unusable:
        code, message = unusable.args
        raise Refused(
            "InvalidKeyId", f"{message} (Service: AWSKMS; Status Code: 400; Error Code: {code}; Request ID: local-aws; Proxy: null)"
        ) from None
    if record:
        iam.check_allowed("kms:Encrypt", record["Arn"], **context(record))
