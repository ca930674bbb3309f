"""Everything that we take from ministack, in one place.

ministack serves IAM, STS, SSM, EC2, CloudWatch Logs, and the parts of ECS that only store things. We use functions and
tables that it does not promise to keep, so each one is named here and looked for at start: another version fails with
one sentence instead of misbehaving in the middle of a run.
"""

import importlib
import json
import logging
import os

PINNED = "1.5.33"

# Read by ministack when it is imported. No broker, no SFTP, no state on disk, our own account and region.
SETTINGS = {
    "BIND_HOST": "127.0.0.1",
    "IOT_MTLS_ENABLED": "0",
    "SFTP_ENABLED": "0",
    "PERSIST_STATE": "0",
    "LOG_LEVEL": "WARNING",
    "MINISTACK_ACCOUNT_ID": "123456789012",
    "MINISTACK_REGION": "ap-northeast-2",
}
ACCOUNT, REGION = SETTINGS["MINISTACK_ACCOUNT_ID"], SETTINGS["MINISTACK_REGION"]
os.environ.update(SETTINGS)
# It warns that it cannot sign; a SecureString's key only encrypts.
logging.getLogger("kms").setLevel(logging.ERROR)

NAMES = {
    "ministack.app": ["app", "_routing_params"],
    "ministack.core.iam_evaluator": [
        "EvalContext",
        "evaluate",
        "enforce",
        "AuthError",
        "caller_arn",
        "parse_policy_document",
        "_action_matches",
        "_conditions_met",
        "_gather_role_policies",
        "_gather_user_policies",
    ],
    "ministack.core.iam_actions": ["extract_iam_action", "extract_resource_arn", "access_denied_response"],
    "ministack.core.responses": ["get_account_id", "get_region", "request_scope", "AccountRegionScopedDict"],
    "ministack.core.router": ["detect_service", "extract_region"],
    "ministack.services.cloudwatch_logs": [
        "_log_groups",
        "_create_log_group",
        "_create_log_stream",
        "_put_log_events",
        "_get_log_events",
    ],
    "ministack.services.ec2": ["_subnets", "_security_groups", "_ensure_defaults_initialized"],
    "ministack.services.ecs": [
        "_ACTION_MAP",
        "_clusters",
        "_task_defs",
        "_tasks",
        "_tags",
        "_next_task_def_revision",
        "_resolve_td_key",
        "_resolve_cluster_name",
        "_resolve_task",
        "_recount_cluster",
    ],
    "ministack.services.ecs_metadata": ["register_container", "unregister_token", "set_task_status"],
    "ministack.services.eventbridge": ["_parse_cron_fields", "_cron_next_fire"],
    "ministack.services.iam": ["_roles", "_IAM_HANDLERS"],
    "ministack.services.kms": ["_resolve_key", "_aliases"],
    "ministack.services.scheduler": ["handle_request"],
    "ministack.services.secretsmanager": ["resolve_secret_string"],
    "ministack.services.sqs": ["_queue_by_arn", "_queue_url", "_act_send_message"],
    "ministack.services.ssm": ["resolve_parameter_value", "_parameters", "_parameter_history", "_tags", "_put_parameter"],
}


def _load():
    from importlib.metadata import version

    found = version("ministack")
    modules, missing = {}, []
    for module, names in NAMES.items():
        try:
            modules[module] = importlib.import_module(module)
        except ImportError as error:
            missing.append(f"{module} ({error})")
            continue
        missing += [f"{module}.{name}" for name in names if not hasattr(modules[module], name)]
    if missing or found != PINNED:
        raise SystemExit(
            f"local-aws is written against ministack {PINNED} and found {found}; "
            f"not there: {', '.join(missing) or 'nothing'}. Install the versions in requirements.txt, "
            "or adapt localaws/seam.py and what uses the names."
        )
    return modules


_modules = _load()
app = _modules["ministack.app"]
evaluator = _modules["ministack.core.iam_evaluator"]
actions = _modules["ministack.core.iam_actions"]
router = _modules["ministack.core.router"]
logs = _modules["ministack.services.cloudwatch_logs"]
ec2 = _modules["ministack.services.ec2"]
ecs = _modules["ministack.services.ecs"]
metadata = _modules["ministack.services.ecs_metadata"]
eventbridge = _modules["ministack.services.eventbridge"]
iam = _modules["ministack.services.iam"]
iam_service = iam
AuthError = evaluator.AuthError
scheduler = _modules["ministack.services.scheduler"]
kms = _modules["ministack.services.kms"]
secretsmanager = _modules["ministack.services.secretsmanager"]
sqs = _modules["ministack.services.sqs"]
ssm = _modules["ministack.services.ssm"]

get_account_id = _modules["ministack.core.responses"].get_account_id
get_region = _modules["ministack.core.responses"].get_region
request_scope = _modules["ministack.core.responses"].request_scope
ScopedDict = _modules["ministack.core.responses"].AccountRegionScopedDict

JSON = "application/x-amz-json-1.1"


def answer(body, status=200):
    """A JSON response as ministack's handlers return it."""
    return status, {"Content-Type": JSON}, json.dumps(body).encode()


class Refused(Exception):
    """What the real service would answer instead of doing it."""

    def __init__(self, code, message, status=400):
        super().__init__(message)
        self.code, self.message, self.status = code, message, status

    def response(self):
        """The error as JSON services send it: the code in the body and in the header, as SDKs read either."""
        body = {"__type": self.code, "message": self.message, "Message": self.message}
        return self.status, {"Content-Type": JSON, "x-amzn-errortype": self.code}, json.dumps(body).encode()


def refusable(handler):
    """Turns a `Refused` raised by a handler into its error response."""

    def handle(*args):
        try:
            return handler(*args)
        except Refused as refused:
            return refused.response()

    handle.__name__ = handler.__name__
    return handle
