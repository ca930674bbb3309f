"""ECS task definitions: what registration refuses, what it fills in, and what describing shows.

Every member that the request has is kept (ministack keeps a list of its own), so that a tool which adopts a family can
be caught losing one.
"""

import copy
import re
import time

from . import iam, model
from .seam import Refused, answer, ecs, evaluator, get_account_id, get_region, refusable

# CPU units -> MiB that Fargate offers with them.
FARGATE_SIZES = {
    256: (512, 1024, 2048),
    512: range(1024, 4097, 1024),
    1024: range(2048, 8193, 1024),
    2048: range(4096, 16385, 1024),
    4096: range(8192, 30721, 1024),
    8192: range(16384, 61441, 4096),
    16384: range(32768, 122881, 8192),
}
AWSLOGS_ON_FARGATE = {"awslogs-group", "awslogs-region", "awslogs-stream-prefix"}


@refusable
def register(request):
    """RegisterTaskDefinition: always a new revision, even of an identical definition."""
    try:
        model.check("ecs", "RegisterTaskDefinition", request)
    except model.BadShape as bad:
        raise Refused("ClientException", str(bad)) from None
    wanted = copy.deepcopy(request)
    tags = wanted.pop("tags", None)
    if tags == []:
        raise Refused("InvalidParameterException", "Tags can not be empty.")
    _normalise_size(wanted)
    _check(wanted)
    for role in filter(None, (wanted.get("executionRoleArn"), wanted.get("taskRoleArn"))):
        iam.check_pass_role(role, "ecs-tasks.amazonaws.com")
    definition = _stored(wanted)
    ecs._task_defs[f"{definition['family']}:{definition['revision']}"] = definition
    if tags:
        ecs._tags[definition["taskDefinitionArn"]] = tags
    return answer({"taskDefinition": definition, **({"tags": tags} if tags else {})})


@refusable
def describe(request):
    """DescribeTaskDefinition: tags stand beside the object, and only when asked for."""
    reference = request.get("taskDefinition", "")
    definition = find(reference)
    if definition is None:
        raise Refused("ClientException", "Unable to describe task definition.")
    body = {"taskDefinition": definition}
    if "TAGS" in request.get("include", []):
        body["tags"] = ecs._tags.get(definition["taskDefinitionArn"], [])
    return answer(body)


def find(reference):
    """The definition by ARN, family:revision, or family (its newest ACTIVE revision); None when there is none."""
    key = reference.rsplit("task-definition/", 1)[-1]
    if ":" in key:
        return ecs._task_defs.get(key)
    active = [one for one in ecs._task_defs.values() if one["family"] == key and one["status"] == "ACTIVE"]
    return max(active, key=lambda one: one["revision"], default=None)


def _normalise_size(wanted):
    """cpu "1 vCPU" -> "1024", memory "1GB" -> "1024"."""
    for member, pattern in (("cpu", r"([\d.]+)\s*v?cpu"), ("memory", r"([\d.]+)\s*gb")):
        if match := re.fullmatch(pattern, wanted.get(member, "").strip(), re.IGNORECASE):
            wanted[member] = str(int(float(match[1]) * 1024))


def _check(wanted):
    def refuse(message):
        raise Refused("ClientException", message)

    containers = wanted["containerDefinitions"]
    fargate = "FARGATE" in wanted.get("requiresCompatibilities", [])
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", wanted["family"]):
        refuse("Family contains invalid characters.")
    if not containers:
        refuse("Container list cannot be empty.")
    if fargate:
        if wanted.get("networkMode") != "awsvpc":
            refuse("Fargate only supports network mode 'awsvpc'.")
        sizes = FARGATE_SIZES.get(int(wanted["cpu"]) if wanted.get("cpu", "").isdigit() else 0, ())
        if int(wanted["memory"]) not in sizes if wanted.get("memory", "").isdigit() else True:
            refuse("No Fargate configuration exists for given values.")
    names = [container.get("name") for container in containers]
    if len(names) != len(set(names)):
        refuse("Container names must be unique within a task definition.")
    if all(container.get("essential") is False for container in containers):
        refuse("At least one container in the task definition must be essential.")
    for container in containers:
        if not container.get("name") or not container.get("image"):
            refuse("Container.name and Container.image should not be null or empty.")
        _check_container(container, fargate, wanted.get("executionRoleArn"), refuse)


def _check_container(container, fargate, execution_role, refuse):
    if container.get("secrets") and not execution_role:
        refuse("When you are specifying container secrets, you must also specify a value for 'executionRoleArn'.")
    taken = [entry["name"] for entry in container.get("environment", [])]
    for secret in container.get("secrets", []):
        if secret["name"] in taken:
            refuse(
                "The secret name must be unique and not shared with any new or existing environment variables "
                f"set on the container, such as '{secret['name']}'."
            )
        taken.append(secret["name"])
    logging = container.get("logConfiguration") or {}
    if fargate and logging.get("logDriver") == "awslogs":
        if not execution_role:
            refuse("Fargate requires task definition to have execution role ARN to support log driver awslogs.")
        if missing := AWSLOGS_ON_FARGATE - set(logging.get("options", {})):
            refuse(f"Log driver awslogs requires options: {', '.join(sorted(missing))}")
    for mapping in container.get("portMappings", []):
        if fargate and mapping.get("hostPort", mapping["containerPort"]) != mapping["containerPort"]:
            refuse("When networkMode=awsvpc, the host ports and container ports in port mappings must match.")


def _stored(wanted):
    """The definition as the server keeps it: defaults filled in, read-only members added."""
    compatibilities = wanted.get("requiresCompatibilities", ["EC2"])
    for container in wanted["containerDefinitions"]:
        container.setdefault("cpu", 0)
        container.setdefault("essential", True)
        for member in ("environment", "mountPoints", "volumesFrom", "portMappings", "systemControls"):
            container.setdefault(member, [])
        for mapping in container["portMappings"]:
            mapping.setdefault("protocol", "tcp")
            if wanted.get("networkMode") == "awsvpc":
                mapping.setdefault("hostPort", mapping["containerPort"])
    revision = ecs._next_task_def_revision(wanted["family"])
    return {
        "volumes": [],
        "placementConstraints": [],
        "networkMode": "bridge",
        **wanted,
        "taskDefinitionArn": f"arn:aws:ecs:{get_region()}:{get_account_id()}:task-definition/{wanted['family']}:{revision}",
        "revision": revision,
        "status": "ACTIVE",
        "registeredAt": time.time(),
        "registeredBy": evaluator.caller_arn(),
        "compatibilities": sorted({"EC2", *compatibilities}),
        "requiresAttributes": [{"name": "com.amazonaws.ecs.capability.docker-remote-api.1.18"}],
    }


def install():
    """Takes these actions over from ministack."""
    ecs._ACTION_MAP.update(RegisterTaskDefinition=register, DescribeTaskDefinition=describe)
