"""ECS tasks: RunTask, DescribeTasks, ListTasks, StopTask, and the life of a task between them.

A task is a record in ministack's table (so that clusters count it) plus a `_Run` that holds its containers.
"""

import copy
import logging
import threading
import time
import uuid

from . import fates, faults, runtask, secrets, tasklogs
from .engine import ImageNotFound
from .seam import Refused, answer, ecs, get_account_id, get_region, metadata, refusable, request_scope

log = logging.getLogger("localaws.tasks")
DEFAULT_STOP_TIMEOUT = 30
_changed = threading.Condition()
_settings = {}
_runs = {}  # task ARN -> _Run


def install(engine, endpoint):
    """Takes these actions over from ministack; tasks run on `engine`."""
    _settings.update(engine=engine, endpoint=endpoint)
    ecs._ACTION_MAP.update(RunTask=run_task, DescribeTasks=describe_tasks, StopTask=stop_task, ListTasks=list_tasks)


@refusable
def run_task(request):
    """RunTask: refuses what ECS refuses, answers a repeated clientToken with the first result, else starts."""
    checked = runtask.check(request)
    if (earlier := runtask.earlier(checked, request)) is not None:
        return answer({"tasks": [view(ecs._tasks[arn]) for arn in earlier], "failures": []})
    if (failures := faults.take_run_task_failures()) is not None:
        return answer({"tasks": [], "failures": failures})
    started = [_start(checked, request) for _ in range(request.get("count", 1))]
    runtask.remember(checked, request, [task["taskArn"] for task in started])
    answered = answer({"tasks": [view(task) for task in started], "failures": []})
    for task in started:  # after the answer is made: a caller sees PROVISIONING first, as on AWS
        threading.Thread(target=_runs[task["taskArn"]].live, daemon=True).start()
    return answered


@refusable
def describe_tasks(request):
    """DescribeTasks."""
    cluster = ecs._resolve_cluster_name(request.get("cluster", "default"))
    found, failures, hidden = [], [], faults.tasks_are_hidden()
    if "" in request.get("tasks", []):
        raise Refused("InvalidParameterException", "taskId length should be one of [32,36]")
    for reference in request.get("tasks", []):
        task = ecs._resolve_task(reference, cluster)
        if task is None or hidden:
            arn = reference if reference.startswith("arn:") else f"{_arn_prefix('task')}/{cluster}/{reference}"
            failures.append({"arn": arn, "reason": "MISSING"})
        else:
            found.append(view(task, tags="TAGS" in request.get("include", [])))
    return answer({"tasks": found, "failures": failures})


@refusable
def list_tasks(request):
    """ListTasks: `startedBy` must be the only filter, and only RUNNING tasks are listed unless asked otherwise."""
    filters = {key for key in ("startedBy", "family", "serviceName") if request.get(key)}
    if "startedBy" in filters and len(filters) > 1:
        raise Refused("InvalidParameterException", "The startedBy filter can not be combined with other filters.")
    cluster = ecs._resolve_cluster_name(request.get("cluster", "default"))
    if cluster not in ecs._clusters:
        raise Refused("ClusterNotFoundException", "Cluster not found.")
    wanted, limit, start = (
        request.get("desiredStatus", "RUNNING"),
        request.get("maxResults", 100),
        int(request.get("nextToken") or 0),
    )
    arns = [
        task["taskArn"]
        for task in ecs._tasks.values()
        if task["clusterArn"] == ecs._clusters[cluster]["clusterArn"]
        and task["desiredStatus"] == wanted
        and task.get("startedBy", "") == request.get("startedBy", task.get("startedBy", ""))
        and (not request.get("family") or f"/{request['family']}:" in task["taskDefinitionArn"])
        and not request.get("serviceName")
    ]
    more = {"nextToken": str(start + limit)} if start + limit < len(arns) else {}
    return answer({"taskArns": arns[start : start + limit], **more})


@refusable
def stop_task(request):
    """StopTask: answers at once; SIGTERM, then SIGKILL after the container's stopTimeout."""
    task = ecs._resolve_task(request.get("task", ""), ecs._resolve_cluster_name(request.get("cluster", "default")))
    if task is None:
        raise Refused("InvalidParameterException", "The referenced task was not found.")
    if task["lastStatus"] != "STOPPED":
        _runs[task["taskArn"]].stop("UserInitiated", request.get("reason", "Task stopped by user"))
    return answer({"task": view(task)})


def view(task, tags=False):
    """The task as the API shows it: without what has no value yet."""
    with _changed:
        shown = {key: copy.deepcopy(value) for key, value in task.items() if value is not None}
    if not tags:
        shown["tags"] = []
    return shown


def wait_stopped(arn, timeout):
    """Blocks until the task has stopped and its output is in the log; its view, or None after `timeout` seconds."""
    with _changed:
        if not _changed.wait_for(lambda: ecs._tasks[arn]["lastStatus"] == "STOPPED", timeout):
            return None
    return view(ecs._tasks[arn])


def _arn_prefix(kind):
    return f"arn:aws:ecs:{get_region()}:{get_account_id()}:{kind}"


def _start(checked, request):
    """A new task record, PROVISIONING."""
    definition, cluster = checked.definition, checked.cluster
    task_id = uuid.uuid4().hex
    arn = f"{_arn_prefix('task')}/{cluster}/{task_id}"
    overrides = copy.deepcopy(request.get("overrides", {}))
    given = {one["name"]: one for one in overrides.get("containerOverrides", [])}
    overrides["containerOverrides"] = [
        given.get(one["name"], {"name": one["name"]}) for one in definition["containerDefinitions"]
    ]
    overrides.setdefault("inferenceAcceleratorOverrides", [])
    address = f"172.31.{int(task_id[:2], 16) % 16}.{int(task_id[2:4], 16) or 1}"
    task = {
        "taskArn": arn,
        "clusterArn": ecs._clusters[cluster]["clusterArn"],
        "taskDefinitionArn": definition["taskDefinitionArn"],
        "overrides": overrides,
        "lastStatus": "PROVISIONING",
        "desiredStatus": "RUNNING",
        "launchType": checked.launch_type,
        "capacityProviderName": checked.capacity_provider,
        "cpu": overrides.get("cpu", definition.get("cpu", "256")),
        "memory": overrides.get("memory", definition.get("memory", "512")),
        "platformVersion": "1.4.0",
        "platformFamily": "Linux",
        "availabilityZone": f"{get_region()}a",
        "createdAt": time.time(),
        "group": request.get("group", f"family:{definition['family']}"),
        "startedBy": request.get("startedBy"),
        "enableExecuteCommand": request.get("enableExecuteCommand", False),
        "version": 1,
        "healthStatus": "UNKNOWN",
        "ephemeralStorage": overrides.get("ephemeralStorage", definition.get("ephemeralStorage", {"sizeInGiB": 20})),
        "tags": _task_tags(request, definition),
        "attributes": [{"name": "ecs.cpu-architecture", "value": "x86_64"}],
        "attachments": _attachments(request, address),
        "containers": [_container(arn, one) for one in definition["containerDefinitions"]],
    }
    _runs[arn] = _Run(task, copy.deepcopy(definition), get_account_id(), get_region())
    ecs._tasks[arn] = task
    if task["tags"]:
        ecs._tags[arn] = list(task["tags"])
    ecs._recount_cluster(cluster)
    return task


def _task_tags(request, definition):
    inherited = ecs._tags.get(definition["taskDefinitionArn"], []) if request.get("propagateTags") == "TASK_DEFINITION" else []
    own = request.get("tags", [])
    return own + [tag for tag in inherited if tag["key"] not in {one["key"] for one in own}]


def _attachments(request, address):
    network = (request.get("networkConfiguration") or {}).get("awsvpcConfiguration")
    if not network:
        return []
    interface = {
        "subnetId": network["subnets"][0],
        "networkInterfaceId": f"eni-{uuid.uuid4().hex[:17]}",
        "macAddress": "06:00:00:00:00:01",
        "privateIPv4Address": address,
    }
    return [
        {
            "id": str(uuid.uuid4()),
            "type": "ElasticNetworkInterface",
            "status": "ATTACHED",
            "details": [{"name": name, "value": value} for name, value in interface.items()],
        }
    ]


def _container(task_arn, definition):
    return {
        "containerArn": f"{_arn_prefix('container')}/{uuid.uuid4()}",
        "taskArn": task_arn,
        "name": definition["name"],
        "image": definition["image"],
        "lastStatus": "PENDING",
        "networkInterfaces": [],
        "healthStatus": "UNKNOWN",
        "cpu": str(definition.get("cpu", 0)),
        **({"memory": str(definition["memory"])} if "memory" in definition else {}),
    }


class _CannotStart(Exception):
    pass


class _Run:
    """The containers of one task, from start to end."""

    def __init__(self, task, definition, account, region):
        self._task, self._definition, self._account, self._region = task, definition, account, region
        self._lock = threading.Lock()
        self._running = {}  # container name -> engine.Container
        self._tokens = []
        self._end = None  # (stop code, reason): set once
        self._fate = fates.take()
        self._started = None

    def live(self):
        """The whole life; runs on a thread of its own."""
        with request_scope(self._account, self._region):
            try:
                self._move("PENDING")
                waiting = self._start_all()
                if waiting:
                    self._move("RUNNING", startedAt=self._started)
            except (_CannotStart, secrets.SecretUnavailable, tasklogs.LogsUnavailable) as cause:
                self.stop("TaskFailedToStart", str(cause))
                waiting = []
            except Exception as cause:  # ours, not the task's: it must not stay PENDING for ever
                log.exception("task %s could not be started", self._task["taskArn"])
                self.stop("TaskFailedToStart", f"InternalError: local-aws: {cause!r}")
                waiting = []
            for thread in waiting:
                thread.join()
            with _changed:
                self._task["desiredStatus"] = "STOPPED"
            self._move("DEPROVISIONING", stoppingAt=self._task.get("stoppingAt", time.time()), executionStoppedAt=time.time())
            for token in self._tokens:
                metadata.unregister_token(token)
            code, reason = self._end
            self._move("STOPPED", stoppedAt=time.time(), stopCode=code, stoppedReason=reason)
            ecs._recount_cluster(self._task["clusterArn"].rsplit("/", 1)[-1])

    def stop(self, code, reason):
        """Ends every container; the first reason given is the one that counts."""
        with self._lock:
            if self._end is None:
                self._end = (code, reason)
            running = dict(self._running)
        with _changed:
            self._task.update(desiredStatus="STOPPED", stoppingAt=self._task.get("stoppingAt", time.time()))
            _changed.notify_all()
        for name, container in running.items():
            grace = self._definition_of(name).get("stopTimeout", DEFAULT_STOP_TIMEOUT)
            threading.Thread(target=container.stop, args=(grace,), daemon=True).start()

    def _start_all(self):
        overrides = {one["name"]: one for one in self._task["overrides"]["containerOverrides"]}
        threads = []
        if self._fate and self._fate["fate"] == "no-start":
            raise _CannotStart(self._fate["reason"])
        if self._fate and self._fate["fate"] == "lost":
            self.stop(None, self._fate["reason"])
            return []
        try:
            for definition, shown in zip(self._definition["containerDefinitions"], self._task["containers"], strict=True):
                threads.append(self._start_container(definition, overrides[definition["name"]], shown))
        except Exception:
            self.stop("TaskFailedToStart", "another container of the task could not be started")
            for thread in threads:
                thread.join()
            self._end = None
            raise
        return [thread for thread in threads if thread]

    def _start_container(self, definition, override, shown):
        role = self._task["overrides"].get("executionRoleArn") or self._definition.get("executionRoleArn")
        env = {entry["name"]: entry["value"] for entry in definition.get("environment", [])}
        env.update(secrets.resolve(definition, role))
        env.update({entry["name"]: entry["value"] for entry in override.get("environment", [])})
        env["ECS_CONTAINER_METADATA_URI_V4"] = self._register_metadata(definition)
        write = tasklogs.open_stream(definition, self._task["taskArn"].rsplit("/", 1)[-1], role)
        effective = {**definition, **{key: override[key] for key in ("command",) if key in override}}
        engine = _settings["engine"]
        with _changed:
            self._task.setdefault("pullStartedAt", time.time())
        try:
            digest = engine.digest(definition["image"])
            with _changed:
                self._task.setdefault("pullStoppedAt", time.time())
            with self._lock:
                if self._end:  # stopped before this container could start
                    return None
                self._started = self._started or time.time()
                container = engine.start(effective, env)
                self._running[definition["name"]] = container
        except ImageNotFound as cause:
            raise _CannotStart(f"CannotPullContainerError: pull image manifest has been retried 1 time(s): {cause}") from cause
        except OSError as cause:
            raise _CannotStart(
                f"CannotStartContainerError: ResourceInitializationError: failed to create new container runtime task: {cause}"
            ) from cause
        with _changed:
            shown.update(lastStatus="RUNNING", runtimeId=container.id, imageDigest=digest)
        thread = threading.Thread(target=self._follow, args=(container, definition, shown, self._fated(write, container, shown)), daemon=True)
        thread.start()
        return thread

    def _follow(self, container, definition, shown, write):
        code = container.run_to_end(write)
        with self._lock:
            self._running.pop(definition["name"], None)
            last = not self._running
        with _changed:
            shown.update(lastStatus="STOPPED", exitCode=code)
        if definition.get("essential", True) or last:
            with request_scope(self._account, self._region):
                self.stop("EssentialContainerExited", "Essential container in task exited")

    def _fated(self, write, container, shown):
        """`write`, and after the first line of all what is to become of the task."""

        def write_then_end(line):
            write(line)
            with self._lock:
                fate, self._fate = self._fate, None
            if fate and fate["fate"] == "out-of-memory":
                with _changed:
                    shown["reason"] = fates.OUT_OF_MEMORY
                container.kill()
            elif fate:
                with request_scope(self._account, self._region):
                    self.stop(*fates.TAKEN[fate["fate"]])

        return write_then_end

    def _register_metadata(self, definition):
        token = uuid.uuid4().hex
        task = {
            "Cluster": self._task["clusterArn"],
            "TaskARN": self._task["taskArn"],
            "Family": self._definition["family"],
            "Revision": str(self._definition["revision"]),
            "DesiredStatus": "RUNNING",
            "KnownStatus": "RUNNING",
            "AvailabilityZone": self._task["availabilityZone"],
            "LaunchType": self._task["launchType"],
        }
        container = {"Name": definition["name"], "Image": definition["image"], "KnownStatus": "RUNNING", "Type": "NORMAL"}
        metadata.register_container(token, self._task["taskArn"], task_payload=task, container_payload=container)
        self._tokens.append(token)
        return f"{_settings['endpoint']}/v4/{token}"

    def _definition_of(self, name):
        return next(one for one in self._definition["containerDefinitions"] if one["name"] == name)

    def _move(self, status, **members):
        with _changed:
            self._task.update(lastStatus=status, version=self._task["version"] + 1, **members)
            if status == "STOPPED":
                for container in self._task["containers"]:
                    container["lastStatus"] = "STOPPED"
            _changed.notify_all()
