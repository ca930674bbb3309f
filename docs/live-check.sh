#!/usr/bin/env bash
# Settles the points of live-check.md on a real account, and deletes what it made.
set -euo pipefail

usage() { echo "usage: $0 --account ID --region REGION --subnet SUBNET [--kms-key ALIAS_OR_ARN]" >&2; exit 64; }

account='' region='' subnet='' kms=''
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    --account) account=$2 ;;
    --region) region=$2 ;;
    --subnet) subnet=$2 ;;
    --kms-key) kms=$2 ;;
    *) usage ;;
  esac
  shift 2
done
[ -n "$account" ] && [ -n "$region" ] && [ -n "$subnet" ] || usage
for program in aws python3; do
  command -v "$program" > /dev/null || { echo "error: $program is not installed" >&2; exit 1; }
done

export AWS_REGION=$region AWS_PAGER='' AWS_DEFAULT_OUTPUT=json
found=$(aws sts get-caller-identity --query Account --output text)
[ "$found" = "$account" ] || { echo "error: these credentials are of account $found, not $account" >&2; exit 3; }

name=geuneul-live-check-$(date +%s)
began=$(date -u +%Y-%m-%dT%H:%M:%SZ)
folder=$(mktemp -d)
image=public.ecr.aws/docker/library/busybox:stable
partition=$(aws sts get-caller-identity --query Arn --output text | cut -d: -f2)
runtask=arn:$partition:scheduler:::aws-sdk:ecs:runTask
role=arn:$partition:iam::$account:role/$name
queue=arn:$partition:sqs:$region:$account:$name
queue_url=''

say() { printf '%2s  %-22s %s\n' "$1" "$2" "$3"; }
note() { echo "... $*" >&2; }

cleanup() {
  set +e
  note "deleting what was made"
  for schedule in $(aws scheduler list-schedules --group-name "$name" --query 'Schedules[].Name' --output text 2> /dev/null); do
    aws scheduler delete-schedule --group-name "$name" --name "$schedule"
  done
  aws scheduler delete-schedule-group --name "$name" 2> /dev/null
  for task in $(aws ecs list-tasks --cluster "$name" --query 'taskArns[]' --output text 2> /dev/null); do
    aws ecs stop-task --cluster "$name" --task "$task" > /dev/null
  done
  for family in "$name" "$name-secret"; do
    for revision in $(aws ecs list-task-definitions --family-prefix "$family" --query 'taskDefinitionArns[]' --output text 2> /dev/null); do
      aws ecs deregister-task-definition --task-definition "$revision" > /dev/null
    done
  done
  for _ in 1 2 3 4 5 6; do
    aws ecs delete-cluster --cluster "$name" > /dev/null 2>&1 && break
    sleep 10
  done
  [ -n "$queue_url" ] && aws sqs delete-queue --queue-url "$queue_url"
  aws iam delete-role-policy --role-name "$name" --policy-name all 2> /dev/null
  aws iam delete-role --role-name "$name" 2> /dev/null
  aws ssm delete-parameter --name "/$name" 2> /dev/null
  rm -rf "$folder"
  note "done; anything left is named $name"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

note "making cluster, role, queue, group and task definitions named $name"
aws ecs create-cluster --cluster-name "$name" > /dev/null
aws iam create-role --role-name "$name" --assume-role-policy-document '{"Version":"2012-10-17","Statement":[{"Effect":"Allow",
  "Principal":{"Service":["scheduler.amazonaws.com","ecs-tasks.amazonaws.com"]},"Action":"sts:AssumeRole"}]}' > /dev/null
aws iam put-role-policy --role-name "$name" --policy-name all --policy-document "{\"Version\":\"2012-10-17\",\"Statement\":[
  {\"Effect\":\"Allow\",\"Action\":\"ecs:RunTask\",\"Resource\":\"arn:$partition:ecs:$region:$account:task-definition/$name*\"},
  {\"Effect\":\"Allow\",\"Action\":\"iam:PassRole\",\"Resource\":\"$role\"},
  {\"Effect\":\"Allow\",\"Action\":\"sqs:SendMessage\",\"Resource\":\"$queue\"},
  {\"Effect\":\"Allow\",\"Action\":\"ssm:GetParameters\",\"Resource\":\"arn:$partition:ssm:$region:$account:parameter/$name\"}]}"
queue_url=$(aws sqs create-queue --queue-name "$name" --query QueueUrl --output text)
aws scheduler create-schedule-group --name "$name" > /dev/null
aws ssm put-parameter --name "/$name" --type SecureString --value not-a-secret ${kms:+--key-id "$kms"} > /dev/null
container="\"name\":\"app\",\"image\":\"$image\",\"command\":[\"sleep\",\"20\"]"
aws ecs register-task-definition --family "$name" --requires-compatibilities FARGATE EC2 --network-mode awsvpc --cpu 256 --memory 512 \
  --container-definitions "[{$container}]" > /dev/null
aws ecs register-task-definition --family "$name-secret" --requires-compatibilities FARGATE --network-mode awsvpc --cpu 256 \
  --memory 512 --execution-role-arn "$role" \
  --container-definitions "[{$container,\"secrets\":[{\"name\":\"KEY\",\"valueFrom\":\"/$name\"}]}]" > /dev/null
note "waiting 20 s for IAM"
sleep 20

# input KIND: the Input of a kind of schedule.
input() {
  NAME=$name SUBNET=$subnet python3 - "$1" << 'PYTHON'
import json, os, sys
name, kind = os.environ["NAME"], sys.argv[1]
request = {
    "Cluster": name, "TaskDefinition": name, "LaunchType": "FARGATE",
    "NetworkConfiguration": {"AwsvpcConfiguration": {"Subnets": [os.environ["SUBNET"]], "AssignPublicIp": "ENABLED"}},
    "StartedBy": kind,
}
override = {"Name": "app", "Command": ["echo", "overridden"]}
if kind == "camel":
    request["overrides"] = {"containerOverrides": [{"name": "app", "command": ["echo", "overridden"]}]}
elif kind == "nested":
    request["Overrides"] = {"containerOverrides": [{"name": "app", "command": ["echo", "overridden"]}]}
elif kind == "unknown":
    request["Overrides"] = {"ContainerOverrides": [{**override, "Nonsense": 1}]}
elif kind == "placement":
    request["LaunchType"] = "EC2"
    request["NetworkConfiguration"]["AwsvpcConfiguration"].pop("AssignPublicIp")
elif kind == "refused":
    request["TaskDefinition"] = name + "-nobodys"
    request["Overrides"] = {"ContainerOverrides": [{"Name": "app", "Environment": [
        {"Name": "ID", "Value": "<aws.scheduler.execution-id>"}, {"Name": "TRY", "Value": "<aws.scheduler.attempt-number>"}]}]}
elif kind.startswith("long"):
    request["Overrides"] = {"ContainerOverrides": [{"Name": "app", "Environment": [
        {"Name": "LONG", "Value": "x" * (int(kind[4:]) * 1024)}]}]}
print(json.dumps(request))
PYTHON
}

# schedule KIND STATE EXPRESSION: creates one; answers what AWS says.
schedule() {
  KIND=$1 STATE=$2 EXPRESSION=$3 NAME=$name ROLE=$role QUEUE=$queue TARGET=$runtask INPUT=$(input "$1") python3 - > "$folder/$1.json" << 'PYTHON'
import json, os
e = os.environ
print(json.dumps({
    "Name": e["KIND"], "GroupName": e["NAME"], "State": e["STATE"], "ScheduleExpression": e["EXPRESSION"],
    "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": {"Arn": e["TARGET"], "RoleArn": e["ROLE"], "Input": e["INPUT"], "DeadLetterConfig": {"Arn": e["QUEUE"]},
               "RetryPolicy": {"MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 600}},
}))
PYTHON
  aws scheduler create-schedule --cli-input-json "file://$folder/$1.json" 2>&1 | tr -s '\n ' ' '
}

soon=$(date -u -d '+3 minutes' +%Y-%m-%dT%H:%M:00 2> /dev/null || date -u -v+3M +%Y-%m-%dT%H:%M:00)
declare -A said
for kind in camel nested unknown placement refused plain; do
  said[$kind]=$(schedule "$kind" ENABLED "at($soon)" || true)
done

for size in 64 256 1024; do
  answer=$(schedule "long$size" DISABLED 'cron(0 0 1 1 ? 2099)' || true)
  case $answer in *ScheduleArn*) say 6 "$size KiB taken" '' ;; *) say 6 "$size KiB refused" "$answer" ;; esac
done

schedule disabled DISABLED 'cron(0 0 1 1 ? 2099)' > /dev/null
python3 - "$folder/disabled.json" > "$folder/stateless.json" << 'PYTHON'
import json, sys
schedule = json.load(open(sys.argv[1]))
schedule.pop("State")
print(json.dumps(schedule))
PYTHON
aws scheduler update-schedule --cli-input-json "file://$folder/stateless.json" > /dev/null
say 7 "State is $(aws scheduler get-schedule --group-name "$name" --name disabled --query State --output text)" 'after an update without one'

answer=$(aws ecs run-task --cluster "$name" --task-definition "$name-secret" --launch-type FARGATE --started-by secret \
  --network-configuration "awsvpcConfiguration={subnets=[$subnet],assignPublicIp=ENABLED}" \
  --overrides '{"containerOverrides":[{"name":"app","environment":[{"name":"KEY","value":"other"}]}]}' 2>&1 | tr -s '\n ' ' ' | cut -c1-300 || true)
case $answer in *taskArn*) say 8 taken '' ;; *) say 8 refused "$answer" ;; esac

if [ -n "$kms" ]; then
  before=$(aws ssm describe-parameters --parameter-filters "Key=Name,Values=/$name" --query 'Parameters[0].KeyId' --output text)
  aws ssm put-parameter --name "/$name" --type SecureString --value not-a-secret-2 --overwrite > /dev/null
  after=$(aws ssm describe-parameters --parameter-filters "Key=Name,Values=/$name" --query 'Parameters[0].KeyId' --output text)
  [ "$before" = "$after" ] && say 9 'key kept' "$after" || say 9 'key lost' "$before -> $after"
else
  say 9 'not asked' 'say --kms-key'
fi

answer=$(schedule rate DISABLED 'rate(1 minute)' || true)
case $answer in *ScheduleArn*) say 10 'singular taken' '' ;; *) say 10 'singular refused' "$answer" ;; esac

note "waiting 18 minutes: the schedules fire at $soon UTC, retries take up to 10 minutes, CloudTrail up to 15"
sleep 1080

for kind in camel nested unknown; do
  case ${said[$kind]} in
    *ScheduleArn*)
      aws cloudtrail lookup-events --start-time "$began" --lookup-attributes AttributeKey=EventName,AttributeValue=RunTask \
        --query 'Events[].CloudTrailEvent' > "$folder/trail.json"
      overrides=$(python3 - "$folder/trail.json" "$kind" << 'PYTHON'
import json, sys
events = [json.loads(event) for event in json.load(open(sys.argv[1]))]
found = [event["requestParameters"] for event in events if (event.get("requestParameters") or {}).get("startedBy") == sys.argv[2]]
print(json.dumps(found[0].get("overrides")) if found else "no RunTask in CloudTrail yet")
PYTHON
)
      say 1 "$kind: taken" "overrides sent: $overrides" ;;
    *) say 1 "$kind: refused" "${said[$kind]}" ;;
  esac
done

for _ in 1 2 3 4 5; do
  aws sqs receive-message --queue-url "$queue_url" --max-number-of-messages 10 --wait-time-seconds 5 --message-attribute-names All
done > "$folder/letters.json"
aws cloudtrail lookup-events --start-time "$began" --lookup-attributes AttributeKey=EventName,AttributeValue=RunTask \
  --query 'Events[].CloudTrailEvent' > "$folder/trail.json"
python3 - "$folder/letters.json" "$folder/trail.json" << 'PYTHON'
import json, sys

def say(point, answer, evidence):
    print(f"{point:>2}  {answer:<22} {evidence}")

decoder, text, letters = json.JSONDecoder(), open(sys.argv[1]).read().strip(), {}
while text:
    answer, end = decoder.raw_decode(text)
    text = text[end:].strip()
    for message in answer.get("Messages", []):
        kind = json.loads(message["Body"]).get("StartedBy")
        letters[kind] = (message, {k: v["StringValue"] for k, v in message["MessageAttributes"].items()})
calls = {}
for event in map(json.loads, json.load(open(sys.argv[2]))):
    asked = event.get("requestParameters") or {}
    calls.setdefault(asked.get("startedBy"), []).append((asked, event))

placed = calls.get("placement", [])
say(2, "failure" if "placement" in letters else "success, not retried" if len(placed) == 1 else f"{len(placed)} calls",
    f"dead letter: {letters.get('placement', (None, 'none'))[1]}")
refused = calls.get("refused", [])
ids = {json.dumps(asked.get("overrides"))[:400] for asked, _ in refused}
say(3, f"{len(ids)} different Inputs", f"in {len(refused)} calls: {sorted(ids)}")
say(4, "retried" if len(refused) > 1 else "not retried", f"dead letter: {letters.get('refused', (None, 'none'))[1]}")
plain = calls.get("plain", [])
say(5, "adds one" if plain and plain[0][0].get("clientToken") else "adds none" if plain else "no call seen yet", "")
PYTHON
