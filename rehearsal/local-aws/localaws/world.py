"""The world that was there before: what a team has when it first hears of `deploy`.

A cluster, a log group, an execution role that may not read parameters, a task role, a VPC, and a task-definition family
with everything a real one has, except the secret. Made through the API, as anybody would.
"""

import json
import urllib.request
from urllib.parse import urlencode

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
TARGETS = {"ecs": "AmazonEC2ContainerServiceV20141113", "logs": "Logs_20140328"}
DEFAULTS = {"cluster": "geuneul", "family": "geuneul", "container": "app", "sidecar": None, "environment": {}, "command": None}


def make(endpoint, spec):
    """Makes the world of a spec {"image", "environment", "cluster", "family", "container", "command", "sidecar"}.

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
        "readonlyRootFilesystem": False,
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


class _Caller:
    """AWS calls without an SDK: the server does not verify signatures, only who and where."""

    def __init__(self, endpoint):
        self._endpoint = endpoint

    def json(self, service, action, body):
        headers = {"X-Amz-Target": f"{TARGETS[service]}.{action}", "Content-Type": "application/x-amz-json-1.1"}
        return json.loads(self._post(service, headers, json.dumps(body).encode()) or b"{}")

    def form(self, service, action, **parameters):
        body = urlencode({"Action": action, "Version": "2010-05-08", **parameters}).encode()
        self._post(service, {"Content-Type": "application/x-www-form-urlencoded"}, body)

    def _post(self, service, headers, body):
        scope = f"AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=0"
        request = urllib.request.Request(self._endpoint, body, {**headers, **OWN, "Authorization": scope})
        try:
            with urllib.request.urlopen(request) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            raise ValueError(f"the world could not be made: {error.read().decode()}") from error
