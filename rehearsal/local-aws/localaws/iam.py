"""May this principal do that? Does this role trust that service? And: has the news arrived yet?

Policies and trust policies are evaluated by ministack's evaluator, conditions included. What it leaves out is here:
service principals in trust policies, iam:PassRole, and the delay with which a new role becomes assumable.
"""

import contextlib
import contextvars
import json
import threading

from . import faults
from .seam import Refused, evaluator, get_account_id, get_region, iam

_acting = contextvars.ContextVar("acting_as", default=None)


def may(principal, action, resource, **keys):
    """Whether the identity policies of a role or user allow the action; root may everything."""
    account, tail = principal.split(":")[4], principal.split(":", 5)[5]
    kind, name = tail.split("/")[0], tail.split("/")[-1]
    if kind == "root":
        return True
    if kind == "assumed-role":
        kind, name = "role", tail.split("/")[1]
    gather = evaluator._gather_role_policies if kind == "role" else evaluator._gather_user_policies
    context = evaluator.EvalContext(
        principal_arn=principal,
        principal_type="AssumedRole" if kind == "role" else "User",
        principal_account=account,
        action=action,
        resource_arn=resource,
        region=get_region(),
        service_context={key.lower(): value for key, value in keys.items()},
    )
    return evaluator.evaluate(context, gather(name, account)).decision == "Allow"


def role(arn):
    """The role's record, or None."""
    parts = arn.split(":")
    return iam._roles.get_scoped(parts[4], None, arn.split("/")[-1]) if len(parts) == 6 else None


def trusts(role_arn, service, source_arn):
    """Whether `service`, acting for the resource `source_arn`, can assume the role *now*.

    `aws:SourceAccount` and `aws:SourceArn` are what the service says about whom it acts for; for EventBridge Scheduler
    that is the schedule *group*, so a condition that names a schedule refuses.
    """
    record = role(role_arn)
    if record is None or not propagation.arrived(role_arn):
        return False
    document = record["AssumeRolePolicyDocument"]
    document = json.loads(document) if isinstance(document, str) else document
    statements = document.get("Statement", [])
    context = evaluator.EvalContext(
        principal_arn=service,
        principal_type="Service",
        principal_account=get_account_id(),
        action="sts:AssumeRole",
        resource_arn=role_arn,
        region=get_region(),
        service_context={"aws:sourceaccount": get_account_id(), "aws:sourcearn": source_arn},
    )
    allowed = False
    for statement in [statements] if isinstance(statements, dict) else statements:
        principals = statement.get("Principal")
        named = principals.get("Service", []) if isinstance(principals, dict) else principals
        if named != "*" and service not in ([named] if isinstance(named, str) else named or []):
            continue
        actions = statement.get("Action", [])
        if not evaluator._action_matches("sts:AssumeRole", [actions] if isinstance(actions, str) else actions, []):
            continue
        if not evaluator._conditions_met(statement.get("Condition", {}), context):
            continue
        if statement["Effect"] == "Deny":
            return False
        allowed = True
    return allowed


def check_trust_policy(text):
    """Refuses a trust policy that IAM would call malformed."""
    try:
        statements = json.loads(text)["Statement"]
        for statement in [statements] if isinstance(statements, dict) else statements:
            if statement["Effect"] not in ("Allow", "Deny") or not statement["Principal"] or not statement["Action"]:
                raise ValueError("a statement without effect, principal or action")
            if "Resource" in statement:
                raise ValueError("Has prohibited field Resource")
    except (KeyError, TypeError, ValueError) as bad:
        raise Refused("MalformedPolicyDocument", f"This policy contains invalid Json or misses an element: {bad}") from None


@contextlib.contextmanager
def acting_as(role_arn):
    """Within the block the caller is this role: how EventBridge Scheduler calls its target."""
    token = _acting.set(role_arn)
    try:
        yield
    finally:
        _acting.reset(token)


def check_allowed(action, resource, **keys):
    """Refuses unless the caller may perform the action; a caller other than root has only what its policies say."""
    caller = _acting.get() or evaluator.caller_arn()
    denied = not _acting.get() and faults.denied(action)
    if denied or not may(caller, action, resource, **keys):
        raise Refused(
            "AccessDeniedException",
            f"User: {_session(caller)} is not authorized to perform: {action} on resource: {resource} "
            f"because no identity-based policy allows the {action} action",
        )


def check_pass_role(role_arn, service):
    """Refuses unless the caller may pass the role to the service."""
    check_allowed("iam:PassRole", role_arn, **{"iam:PassedToService": service})


def _session(caller):
    """How a role's session shows in a message."""
    if ":role/" not in caller:
        return caller
    return caller.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/") + "/local-aws"


class Propagation:
    """IAM is eventually consistent: a new or changed role is not assumable at once.

    No wall clock: a role arrives after a number of attempts to assume it, or when the gate is opened.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._attempts = 0  # for roles that change from now on; None: until `release`
        self._pending = {}  # role ARN -> attempts left, or None

    def delay(self, attempts):
        """Roles created or changed from now on fail `attempts` times (None: until released)."""
        with self._lock:
            self._attempts = attempts

    def release(self):
        """Everything has arrived, and nothing is delayed any more."""
        with self._lock:
            self._attempts = 0
            self._pending.clear()

    def changed(self, role_arn):
        """A role was created or its trust policy replaced."""
        with self._lock:
            if self._attempts is None or self._attempts > 0:
                self._pending[role_arn] = self._attempts

    def arrived(self, role_arn):
        """One attempt to assume the role."""
        with self._lock:
            left = self._pending.get(role_arn, 0)
            if left is None:
                return False
            if left > 0:
                self._pending[role_arn] = left - 1
                return False
            self._pending.pop(role_arn, None)
            return True


propagation = Propagation()
