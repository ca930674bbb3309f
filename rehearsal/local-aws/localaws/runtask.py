"""What RunTask refuses before anything starts, and what a repeated clientToken means."""

import json
from dataclasses import dataclass

from . import iam, model, taskdefs
from .seam import Refused, ec2, ecs, get_account_id, get_region

OVERRIDES_LIMIT = 8192
_tokens = {}  # (account, region, cluster, token) -> (request, task ARNs)


@dataclass(frozen=True)
class Checked:
    """What a valid request refers to."""

    cluster: str
    definition: dict
    launch_type: str
    capacity_provider: str | None


def check(request):
    """Refuses the request, or says what it refers to."""
    try:
        model.check("ecs", "RunTask", request)
    except model.BadShape as bad:
        raise Refused("InvalidParameterException", str(bad)) from None
    cluster = ecs._resolve_cluster_name(request.get("cluster", "default"))
    if cluster not in ecs._clusters or ecs._clusters[cluster].get("status", "ACTIVE") != "ACTIVE":
        raise Refused("ClusterNotFoundException", "Cluster not found.")
    definition = taskdefs.find(request["taskDefinition"])
    if definition is None:
        raise Refused("ClientException", "TaskDefinition not found.")
    if definition["status"] != "ACTIVE":
        raise Refused("ClientException", "TaskDefinition is inactive")
    iam.check_allowed("ecs:RunTask", definition["taskDefinitionArn"], **{"ecs:cluster": ecs._clusters[cluster]["clusterArn"]})
    if request.get("tags") or request.get("propagateTags"):
        resource = f"arn:aws:ecs:{get_region()}:{get_account_id()}:task/{cluster}/*"
        iam.check_allowed("ecs:TagResource", resource, **{"ecs:CreateAction": "RunTask"})
    launch_type, provider = _capacity(request, definition, ecs._clusters[cluster])
    _check_network(request, definition)
    _check_overrides(request.get("overrides", {}), definition)
    if len(request.get("startedBy", "")) > 128:
        raise Refused("InvalidParameterException", "startedBy can only be at most 128 characters long.")
    if not 1 <= request.get("count", 1) <= 10:
        raise Refused("InvalidParameterException", "count must be between 1 and 10")
    if request.get("propagateTags") == "SERVICE":
        raise Refused("InvalidParameterException", "Invalid value for propagateTags")
    _check_roles(request, definition, cluster)
    return Checked(cluster, definition, launch_type, provider)


def earlier(checked, request):
    """The task ARNs that this clientToken started before, or None."""
    seen = _tokens.get(_key(checked, request))
    if not request.get("clientToken") or seen is None:
        return None
    if seen[0] != request:
        raise Refused("ConflictException", "The request token was used before with different parameters.")
    return seen[1]


def remember(checked, request, arns):
    """From now on this clientToken answers with these tasks."""
    if request.get("clientToken"):
        _tokens[_key(checked, request)] = (request, arns)


def _key(checked, request):
    return get_account_id(), get_region(), checked.cluster, request.get("clientToken")


def _capacity(request, definition, cluster):
    if request.get("launchType") and request.get("capacityProviderStrategy"):
        raise Refused(
            "InvalidParameterException",
            "Specifying both a launch type and capacity provider strategy is not supported. Remove one and try again.",
        )
    default = [] if request.get("launchType") else cluster.get("defaultCapacityProviderStrategy")
    if strategy := request.get("capacityProviderStrategy") or default:
        return "FARGATE" if strategy[0]["capacityProvider"].startswith("FARGATE") else "EC2", strategy[0]["capacityProvider"]
    launch_type = request.get("launchType", "EC2")
    if launch_type == "FARGATE" and "FARGATE" not in definition["compatibilities"]:
        raise Refused("InvalidParameterException", "Task definition does not support launch_type FARGATE.")
    if launch_type == "EC2":
        raise Refused("InvalidParameterException", "No Container Instances were found in your cluster.")
    return launch_type, None


def _check_network(request, definition):
    network = (request.get("networkConfiguration") or {}).get("awsvpcConfiguration")
    if definition.get("networkMode") != "awsvpc":
        if network:
            raise Refused(
                "InvalidParameterException",
                "Network Configuration is not valid for the given networkMode of this task definition.",
            )
        return
    if not network:
        raise Refused(
            "InvalidParameterException", "Network Configuration must be provided when networkMode 'awsvpc' is specified."
        )
    if not network.get("subnets"):
        raise Refused("InvalidParameterException", "subnets can not be empty.")
    ec2._ensure_defaults_initialized()
    for kind, limit, table in (("subnets", 16, ec2._subnets), ("securityGroups", 5, ec2._security_groups)):
        listed = network.get(kind, [])
        if len(listed) > limit:
            raise Refused("InvalidParameterException", f"{kind} can have at most {limit} items.")
        for name in listed:
            if name not in table:
                what, error = ("subnet", "InvalidSubnetID") if kind == "subnets" else ("security group", "InvalidGroup")
                raise Refused(
                    "InvalidParameterException",
                    f"Error retrieving {what} information for [{name}]: The {what} ID '{name}' does not exist "
                    f"(ErrorCode: {error}.NotFound)",
                )


def _check_overrides(overrides, definition):
    size = len(json.dumps(overrides, ensure_ascii=False, separators=(",", ":")))
    if size > OVERRIDES_LIMIT:
        raise Refused("InvalidParameterException", f"Container Overrides length must be at most {OVERRIDES_LIMIT}")
    known = {container["name"]: container for container in definition["containerDefinitions"]}
    for override in overrides.get("containerOverrides", []):
        name = override.get("name")
        if name not in known:
            raise Refused(
                "InvalidParameterException", f"Override for container named {name} is not a container in the TaskDefinition."
            )
        secret = {one["name"] for one in known[name].get("secrets", [])}
        if taken := [entry["name"] for entry in override.get("environment", []) if entry["name"] in secret]:
            raise Refused(
                "ClientException",
                "The secret name must be unique and not shared with any new or existing environment variables "
                f"set on the container, such as '{taken[0]}'.",
            )


def _check_roles(request, definition, cluster):
    source, overrides = ecs._clusters[cluster]["clusterArn"], request.get("overrides", {})
    handed_over = (overrides.get(role) or definition.get(role) for role in ("executionRoleArn", "taskRoleArn"))
    for arn in filter(None, handed_over):
        iam.check_pass_role(arn, "ecs-tasks.amazonaws.com")
        if not iam.trusts(arn, "ecs-tasks.amazonaws.com", source):
            raise Refused(
                "ClientException",
                f"ECS was unable to assume the role '{arn}' that was provided for this task. Please verify that the "
                "role being passed has the proper trust relationship and permissions and that your IAM user has "
                "permissions to pass this role.",
            )
