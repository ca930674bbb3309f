"""The world that was there before: what a team has when it first hears of `deploy`.

A cluster, a log group, an execution role that may not read parameters, a task role, a VPC, and a task-definition family
with everything a real one has, except the secret. Made through the API, as anybody would.
"""

import json
import urllib.request
from urllib.parse import urlencode
from xml.etree import ElementTree

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from .gateway import OWN
from .seam import ACCOUNT, REGION, ec2, request_scope

TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "ecs-tasks.amazonaws.com"}, "Action": "sts:AssumeRole"}],
    }
)
# AmazonECSTaskExecutionRolePolicy as an inline policy: no ssm, no kms, no logs:CreateLogGroup.
EXECUTION = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": [
                    "ecr:GetAuthorizationToken",
                    "ecr:BatchCheckLayerAvailability",
                    "ecr:GetDownloadUrlForLayer",
                    "ecr:BatchGetImage",
                    "logs:CreateLogStream",
                    "logs:PutLogEvents",
                ],
                "Resource": "*",
            }
        ],
    }
)
_keys = {}  # user -> [access key id, secret access key]
TARGETS = {"ecs": "AmazonEC2ContainerServiceV20141113", "logs": "Logs_20140328"}
DEFAULTS = {
    "cluster": "geuneul",
    "family": "geuneul",
    "container": "app",
    "sidecar": None,
    "environment": {},
    "command": None,
    "readonly_root": False,
}


def make(endpoint, spec):
    """Makes the world of a spec {"image", "environment", "cluster", "family", "container", "command", "sidecar", "readonly_root"}.

    `command` is what the family's container does by itself; `sidecar` is the command of a second container, if there is one.
    """
    if unknown := set(spec) - set(DEFAULTS) - {"image"}:
        raise ValueError(f"not part of a world: {', '.join(sorted(unknown))}")
    spec = {**DEFAULTS, **spec}
    call = _Caller(endpoint)
    cluster = call.json("ecs", "CreateCluster", {"clusterName": spec["cluster"]})["cluster"]
    log_group = f"/ecs/{spec['family']}"
    call.json("logs", "CreateLogGroup", {"logGroupName": log_group})
    execution, task = (_role(call, f"{spec['family']}-{kind}") for kind in ("execution", "task"))
    call.form(
        "iam",
        "PutRolePolicy",
        RoleName=f"{spec['family']}-execution",
        PolicyName="ecs-task-execution",
        PolicyDocument=EXECUTION,
    )
    definition = _definition(spec, execution, task, log_group)
    registered = call.json("ecs", "RegisterTaskDefinition", definition)["taskDefinition"]
    with request_scope(ACCOUNT, REGION):
        ec2._ensure_defaults_initialized()
        subnets, security_groups = list(ec2._subnets), list(ec2._security_groups)
    return {
        "account": ACCOUNT,
        "region": REGION,
        "cluster": spec["cluster"],
        "cluster_arn": cluster["clusterArn"],
        "family": spec["family"],
        "container": spec["container"],
        "task_definition": registered["taskDefinitionArn"],
        "log_group": log_group,
        "execution_role": execution,
        "task_role": task,
        "subnets": subnets,
        "security_groups": security_groups,
    }


def _definition(spec, execution, task, log_group):
    def logging(prefix):
        options = {"awslogs-group": log_group, "awslogs-region": REGION, "awslogs-stream-prefix": prefix}
        return {"logDriver": "awslogs", "options": {**options, "mode": "blocking"}}

    main = {
        "name": spec["container"],
        "image": spec["image"],
        "essential": True,
        "environment": [{"name": name, "value": value} for name, value in spec["environment"].items()],
        "portMappings": [{"containerPort": 8080, "name": "http", "appProtocol": "http"}],
        "healthCheck": {"command": ["CMD-SHELL", "exit 0"], "interval": 30, "timeout": 5, "retries": 3, "startPeriod": 10},
        "ulimits": [{"name": "nofile", "softLimit": 65536, "hardLimit": 65536}],
        "linuxParameters": {"initProcessEnabled": True},
        "dockerLabels": {"team": "places"},
        "readonlyRootFilesystem": spec["readonly_root"],
        "stopTimeout": 30,
        "logConfiguration": logging(spec["container"]),
        **({"command": spec["command"]} if spec["command"] else {}),
    }
    sidecar = {
        "name": "sidecar",
        "image": spec["image"],
        "essential": False,
        "command": spec["sidecar"],
        "memoryReservation": 64,
        "logConfiguration": logging("sidecar"),
    }
    return {
        "family": spec["family"],
        "requiresCompatibilities": ["FARGATE"],
        "networkMode": "awsvpc",
        "cpu": "256",
        "memory": "512",
        "executionRoleArn": execution,
        "taskRoleArn": task,
        "runtimePlatform": {"cpuArchitecture": "X86_64", "operatingSystemFamily": "LINUX"},
        "ephemeralStorage": {"sizeInGiB": 21},
        "volumes": [{"name": "scratch"}],
        "containerDefinitions": [main, sidecar] if spec["sidecar"] is not None else [main],
        "tags": [{"key": "team", "value": "places"}, {"key": "env", "value": "production"}],
    }


def _role(call, name):
    call.form("iam", "CreateRole", RoleName=name, AssumeRolePolicyDocument=TRUST)
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def user(endpoint, name, policy):
    """A caller who may do what the policy says and nothing else; a known name keeps its key and gets the new policy."""
    call = _Caller(endpoint)
    if name not in _keys:
        call.form("iam", "CreateUser", UserName=name)
        answer = ElementTree.fromstring(call.form("iam", "CreateAccessKey", UserName=name))
        _keys[name] = [answer.find(f".//{{*}}{member}").text for member in ("AccessKeyId", "SecretAccessKey")]
    call.form("iam", "PutUserPolicy", UserName=name, PolicyName="all", PolicyDocument=json.dumps(policy))
    return dict(zip(("access_key_id", "secret_access_key"), _keys[name]))


class _Caller:
    """AWS calls as root, without an SDK."""

    def __init__(self, endpoint):
        self._endpoint = endpoint

    def json(self, service, action, body):
        headers = {"X-Amz-Target": f"{TARGETS[service]}.{action}", "Content-Type": "application/x-amz-json-1.1"}
        return json.loads(self._post(service, headers, json.dumps(body).encode()) or b"{}")

    def form(self, service, action, **parameters):
        body = urlencode({"Action": action, "Version": "2010-05-08", **parameters}).encode()
        return self._post(service, {"Content-Type": "application/x-www-form-urlencoded"}, body)

    def _post(self, service, headers, body):
        signed = AWSRequest("POST", f"{self._endpoint}/", data=body, headers=headers)
        SigV4Auth(Credentials("test", "test"), service, REGION).add_auth(signed)
        request = urllib.request.Request(signed.url, body, {**dict(signed.headers), **OWN})
        try:
            with urllib.request.urlopen(request) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            raise ValueError(f"the world could not be made: {error.read().decode()}") from error
