"""How fast is `deploy plan`? The same reads, of the same converged job, on loopback, in one run: by `deploy`, by one boto3 script, and
by the `aws` command line, one call after another.

    cargo build --release --workspace --bins      # a debug build is slower
    python3 -m venv V && V/bin/pip install boto3 awscli
    python3 rehearsal/bench/plan.py --deploy target/release/deploy --stage target/rehearsal/venv-*/bin/python --tools V/bin

It starts a local AWS, makes a world and applies a job to it, counts what `plan` calls, and prints medians and ratios.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
IMAGE = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/job:1"
JOB = "library-sync"

# The reads of a plan, as an `aws` command line each. {..} is filled in below.
READS = [
    "sts get-caller-identity",
    "ssm describe-parameters --parameter-filters Key=Name,Option=Equals,Values=/geuneul/api_key",
    "ssm list-tags-for-resource --resource-type Parameter --resource-id /geuneul/api_key",
    "ecs describe-task-definition --task-definition {family} --include TAGS",
    "iam get-role --role-name library-sync-scheduler",
    "iam get-role-policy --role-name library-sync-scheduler --policy-name run-task",
    "iam list-role-policies --role-name library-sync-scheduler",
    "iam list-attached-role-policies --role-name library-sync-scheduler",
    "scheduler list-tags-for-resource --resource-arn {group_arn}",
    "scheduler get-schedule --group-name library-sync --name library-sync",
    "iam get-role-policy --role-name {execution_role} --policy-name geuneul-deploy-library-sync",
    "logs describe-log-groups --log-group-name-prefix {log_group}",
    "ecs describe-clusters --clusters {cluster}",
    "ssm get-parameters --names /geuneul-deploy/library-sync/verified-run /geuneul-deploy/library-sync/scheduled-path",
]

BOTO3 = """
import boto3, sys
endpoint, family, group_arn, execution_role, log_group, cluster = sys.argv[1:]
client = lambda name: boto3.client(name, endpoint_url=endpoint, region_name="ap-northeast-2")
sts, ssm, ecs, iam, scheduler, logs = map(client, ["sts", "ssm", "ecs", "iam", "scheduler", "logs"])
sts.get_caller_identity()
ssm.describe_parameters(ParameterFilters=[{"Key": "Name", "Option": "Equals", "Values": ["/geuneul/api_key"]}])
ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId="/geuneul/api_key")
ecs.describe_task_definition(taskDefinition=family, include=["TAGS"])
iam.get_role(RoleName="library-sync-scheduler")
iam.get_role_policy(RoleName="library-sync-scheduler", PolicyName="run-task")
iam.list_role_policies(RoleName="library-sync-scheduler")
iam.list_attached_role_policies(RoleName="library-sync-scheduler")
scheduler.list_tags_for_resource(ResourceArn=group_arn)
scheduler.get_schedule(GroupName="library-sync", Name="library-sync")
iam.get_role_policy(RoleName=execution_role, PolicyName="geuneul-deploy-library-sync")
logs.describe_log_groups(logGroupNamePrefix=log_group)
ecs.describe_clusters(clusters=[cluster])
ssm.get_parameters(Names=["/geuneul-deploy/library-sync/verified-run", "/geuneul-deploy/library-sync/scheduled-path"])
"""


def main():
    """Measures and prints."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--deploy", required=True)
    arguments.add_argument("--stage", required=True, help="the Python of the rehearsal's venv, which runs the local AWS")
    arguments.add_argument("--tools", required=True, help="the bin folder of a venv with boto3 and awscli")
    arguments.add_argument("--times", type=int, default=15)
    told = arguments.parse_args()
    deploy = str(pathlib.Path(told.deploy).resolve())
    with tempfile.TemporaryDirectory() as folder:
        images = pathlib.Path(folder, "images.json")
        images.write_text(json.dumps({IMAGE: {"entrypoint": ["/bin/true"]}}))
        command = [told.stage, str(HERE.parent / "local-aws" / "main.py"), "--images", str(images)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            measure(told, deploy, pathlib.Path(folder), json.loads(server.stdout.readline()))
        finally:
            server.stdin.close()
            server.wait()


def measure(told, deploy, folder, stage):
    """One world, one job, three ways to read it."""

    def admin(verb, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(stage["admin"] + path, data=data, method=verb)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"null")

    world = admin("POST", "/world", {"image": IMAGE})
    endpoint, region = stage["endpoint"], stage["region"]
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "API_KEY": "value", "AWS_ENDPOINT_URL": endpoint, "AWS_REGION": region,
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": region, "AWS_PAGER": "",
    }
    (folder / "deploy.toml").write_text(
        f'account = "{world["account"]}"\nregion = "{region}"\n[job.{JOB}]\ncluster = "{world["cluster"]}"\n'
        f'family = "{world["family"]}"\ncontainer = "{world["container"]}"\ncommand = ["--all"]\n'
        f'subnets = {json.dumps(world["subnets"])}\n[job.{JOB}.schedule]\ncron = "0 4 1 * ? *"\ntimezone = "Asia/Seoul"\n'
        f'[[job.{JOB}.secret]]\nenv = "API_KEY"\nparameter = "/geuneul/api_key"\nfrom = "env:API_KEY"\n'
    )

    def run(*command):
        begun = time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begun

    run(deploy, "apply", "--disabled", "--yes")
    admin("DELETE", "/calls")
    run(deploy, "plan", "--detailed-exitcode")
    counts = admin("GET", "/counts")
    print(f"API calls of a plan of a converged job: {sum(counts.values())}")
    words = {
        "family": world["family"], "cluster": world["cluster"], "log_group": world["log_group"], "execution_role": world["execution_role"].rsplit("/", 1)[-1],
        "group_arn": f"arn:aws:scheduler:{region}:{world['account']}:schedule-group/{JOB}",
    }
    plan = statistics.median(run(deploy, "plan", "--detailed-exitcode") for _ in range(told.times))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"deploy plan: {plan * 1000:.0f} ms, median of {told.times}; peak RSS {peak / 1024:.0f} MiB")
    filled = [words[name] for name in ("family", "group_arn", "execution_role", "log_group", "cluster")]
    script = statistics.median(run(f"{told.tools}/python", "-c", BOTO3, endpoint, *filled) for _ in range(max(3, told.times // 3)))
    print(f"boto3, the same reads: {script * 1000:.0f} ms: {script / plan:.1f} times as long")
    calls = [[f"{told.tools}/aws", *read.format(**words).split()] for read in READS]
    line = statistics.median(sum(run(*call) for call in calls) for _ in range(3))
    print(f"aws, the same reads: {line * 1000:.0f} ms: {line / plan:.1f} times as long")


if __name__ == "__main__":
    main()
