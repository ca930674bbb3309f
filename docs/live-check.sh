#!/usr/bin/env bash
# Settles the points of live-check.md on a real account, and deletes what it made. Kept to bash 3.2, which is what macOS has: no
# associative arrays, and no here-document inside of $(...).
set -euo pipefail

usage() {
  echo "usage: $0 --account ID --region REGION --subnet SUBNET [--kms-key ALIAS_OR_ARN] [--ec2-cluster CLUSTER]" >&2
  exit 64
}

account='' region='' subnet='' kms='' ec2=''
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    --account) account=$2 ;;
    --region) region=$2 ;;
    --subnet) subnet=$2 ;;
    --kms-key) kms=$2 ;;
    --ec2-cluster) ec2=$2 ;;
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
queue_url='' queue_asked='' child='' left='' answer=''
export NAME=$name SUBNET=$subnet ROLE=$role QUEUE=$queue TARGET=$runtask EC2_CLUSTER=$ec2

say() { printf '%2s  %-24s %.600s\n' "$1" "$2" "$3"; }
note() { echo "... $*" >&2; }

# patiently COMMAND...: a signal is heard at once, and not when the command has ended.
patiently() {
  "$@" &
  child=$!
  wait "$child"
  child=''
}

# ask COMMAND...: $answer is what was said, on one line; fails when the command did.
ask() {
  local code=0
  "$@" > "$folder/answer" 2>&1 || code=$?
  answer=$(tr -s '\n ' ' ' < "$folder/answer")
  answer=${answer% }
  answer=${answer# }
  return "$code"
}

# verdict: whether $answer is a refusal by the service, or says nothing about the question.
verdict() {
  case $answer in
    *AccessDenied* | *Throttl* | *Internal* | *Unavailable* | *'to assume the role'*) echo 'not settled' ;;
    *'An error occurred ('*) echo refused ;;
    *) echo 'not settled' ;;
  esac
}

# kept WHAT: $answer is why it could not be deleted; what was never made is no failure.
kept() {
  case $answer in
    *NotFound* | *'not found'* | *NoSuchEntity* | *NonExistentQueue* | *QueueDoesNotExist*) ;;
    *) left=yes && printf 'left: %s: %.600s\n' "$1" "$answer" >&2 ;;
  esac
}

# remove WHAT COMMAND...: deletes one thing.
remove() {
  local what=$1
  shift
  ask "$@" || kept "$what"
}

# listed WHAT COMMAND...: $answer is a list of names, maybe empty.
listed() {
  local what=$1
  shift
  ask "$@" || { kept "list of $what" && answer=''; }
  [ "$answer" != None ] || answer=''
}

cleanup() {
  local code=$?
  trap '' INT TERM HUP
  set +e
  [ -n "$child" ] && kill "$child" 2> /dev/null
  note "deleting what was made"
  listed schedules aws scheduler list-schedules --group-name "$name" --query 'Schedules[].Name' --output text
  for schedule in $answer; do
    remove "schedule $name/$schedule" aws scheduler delete-schedule --group-name "$name" --name "$schedule"
  done
  remove "schedule group $name" aws scheduler delete-schedule-group --name "$name"

  # A delivery that was on its way may start one more task; then the cluster cannot be deleted yet.
  local tasks cluster=''
  for _ in 1 2 3; do
    listed tasks aws ecs list-tasks --cluster "$name" --query 'taskArns[]' --output text
    tasks=$answer
    for task in $tasks; do
      remove "task $task" aws ecs stop-task --cluster "$name" --task "$task"
    done
    listed tasks aws ecs list-tasks --cluster "$name" --desired-status STOPPED --query 'taskArns[]' --output text
    tasks="$tasks $answer"
    # shellcheck disable=SC2086  # a list
    [ -n "${tasks// /}" ] && ask aws ecs wait tasks-stopped --cluster "$name" --tasks $tasks
    ask aws ecs delete-cluster --cluster "$name" && cluster=gone && break
    case $answer in *ClusterNotFound*) cluster=gone && break ;; esac
  done
  [ -n "$cluster" ] || kept "cluster $name"

  for family in "$name" "$name-secret" "$name-big"; do
    listed "revisions of $family" aws ecs list-task-definitions --family-prefix "$family" --query 'taskDefinitionArns[]' --output text
    for revision in $answer; do
      remove "$revision" aws ecs deregister-task-definition --task-definition "$revision"
      # This answers 200 also when it deletes nothing.
      listed failures aws ecs delete-task-definitions --task-definitions "$revision" --query 'failures[].reason' --output text
      [ -z "$answer" ] || kept "$revision"
    done
  done

  # Whoever interrupts create-queue may have made the queue and not know its URL.
  if [ -n "$queue_asked" ] && [ -z "$queue_url" ]; then
    for _ in 1 2 3; do
      ask aws sqs get-queue-url --queue-name "$name" --query QueueUrl --output text && queue_url=$answer && break
      sleep 5
    done
    [ -n "$queue_url" ] || kept "perhaps queue $name"
  fi
  [ -n "$queue_url" ] && remove "queue $name" aws sqs delete-queue --queue-url "$queue_url"
  remove "the policy of role $name" aws iam delete-role-policy --role-name "$name" --policy-name all
  remove "role $name" aws iam delete-role --role-name "$name"
  remove "parameter /$name" aws ssm delete-parameter --name "/$name"
  rm -rf "$folder"
  if [ -n "$left" ]; then
    echo "error: not everything could be deleted, see the lines above; all of it is named $name" >&2
    [ "$code" -ne 0 ] || code=1
  else
    note "nothing is left"
  fi
  exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

cat > "$folder/tool.py" << 'PYTHON'
import json, os, sys

name, folder = os.environ["NAME"], os.path.dirname(os.path.abspath(__file__))


def run_task(kind):
    """The Input of a kind of schedule."""
    request = {
        "Cluster": name, "TaskDefinition": name, "LaunchType": "FARGATE", "StartedBy": kind,
        "NetworkConfiguration": {"AwsvpcConfiguration": {"Subnets": [os.environ["SUBNET"]], "AssignPublicIp": "ENABLED"}},
    }
    if kind == "camel":
        request["overrides"] = {"containerOverrides": [{"name": "app", "command": ["echo", "overridden"]}]}
    elif kind == "nested":
        request["Overrides"] = {"containerOverrides": [{"name": "app", "command": ["echo", "overridden"]}]}
    elif kind == "unknown":
        request["Overrides"] = {"ContainerOverrides": [{"Name": "app", "Command": ["echo", "overridden"], "Nonsense": 1}]}
    elif kind == "placement":
        request.update(Cluster=os.environ["EC2_CLUSTER"], TaskDefinition=name + "-big", LaunchType="EC2")
        del request["NetworkConfiguration"]
    elif kind == "refused":
        request["TaskDefinition"] = name + "-nobodys"
        # Twice, because CloudTrail may hide the value of a variable.
        request["ReferenceId"] = "<aws.scheduler.execution-id>"
        request["Overrides"] = {"ContainerOverrides": [{"Name": "app", "Environment": [
            {"Name": "ID", "Value": "<aws.scheduler.execution-id>"}, {"Name": "TRY", "Value": "<aws.scheduler.attempt-number>"}]}]}
    elif kind.startswith("long"):
        request["Overrides"] = {"ContainerOverrides": [{"Name": "app", "Environment": [
            {"Name": "LONG", "Value": "x" * (int(kind[4:]) * 1024)}]}]}
    return json.dumps(request)


def schedule(kind, state, expression):
    e = os.environ
    wanted = {
        "Name": kind, "GroupName": name, "State": state, "ScheduleExpression": expression, "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": e["TARGET"], "RoleArn": e["ROLE"], "Input": run_task(kind), "DeadLetterConfig": {"Arn": e["QUEUE"]},
                   "RetryPolicy": {"MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 600}},
    }
    with open(f"{folder}/{kind}.json", "w") as file:
        json.dump(wanted, file)


def stateless(kind):
    with open(f"{folder}/{kind}.json") as file:
        wanted = json.load(file)
    del wanted["State"]
    with open(f"{folder}/stateless.json", "w") as file:
        json.dump(wanted, file)


def say(point, answer, evidence=""):
    print(f"{point:>2}  {answer:<24} {evidence}")


def read_letters():
    """Dead letters by kind, those that tell no kind, and whether the queue could be read."""
    with open(f"{folder}/letters.json") as file:
        text = file.read().strip()
    readable = not os.path.exists(f"{folder}/letters.failed")
    decoder, letters, odd = json.JSONDecoder(), {}, []
    while text:
        try:
            answer, end = decoder.raw_decode(text)
        except ValueError:
            return letters, odd + [text], False
        text = text[end:].strip()
        for message in answer.get("Messages") or []:
            attributes = {key: value.get("StringValue") for key, value in (message.get("MessageAttributes") or {}).items()}
            kind = (attributes.get("SCHEDULE_ARN") or "").rpartition("/")[2]
            try:
                kind = kind or json.loads(message.get("Body") or "").get("StartedBy")
            except (ValueError, AttributeError):
                pass
            if isinstance(kind, str) and kind:
                letters[kind] = attributes
            else:
                odd.append(message)
    return letters, odd, readable


def read_calls():
    """RunTask in CloudTrail, by kind."""
    calls = {}
    with open(f"{folder}/trail.json") as file:
        text = file.read()
    try:
        events = [json.loads(event) for event in json.loads(text or "null") or []]
    except ValueError:
        events = []
    for event in events:
        asked = event.get("requestParameters") or {}
        ours = str(asked.get("cluster") or "").rpartition("/")[2] == name or name in str(asked.get("taskDefinition"))
        if ours:
            calls.setdefault(asked.get("startedBy"), []).append((asked, event))
    return calls


def execution_id(asked):
    """What stood for the placeholder, or None when CloudTrail does not show it."""
    containers = (asked.get("overrides") or {}).get("containerOverrides") or [{}]
    shown = [pair.get("value") for pair in containers[0].get("environment") or [] if pair.get("name") == "ID"]
    shown.append(asked.get("referenceId"))
    return next((value for value in shown if value and "HIDDEN" not in value.upper() and "<" not in value), None)


def points():
    letters, odd, readable = read_letters()
    calls = read_calls()
    open_point = "not settled"

    for kind in ("camel", "nested", "unknown"):
        with open(f"{folder}/{kind}.said") as file:
            verdict, _, said = file.read().strip().partition(" |")
        seen = [asked.get("overrides") for asked, _ in calls.get(kind, [])]
        if verdict != "taken":
            say(1, f"{kind}: {verdict}", f"CreateSchedule:{said}")
        elif seen:
            say(1, f"{kind}: taken", f"overrides that RunTask got: {json.dumps(seen[0])}; dead letter: {letters.get(kind, 'none')}")
        elif kind in letters:
            say(1, f"{kind}: fails when fired", f"dead letter: {letters[kind]}")
        else:
            say(1, f"{kind}: {open_point}", "CreateSchedule took it; neither a RunTask in CloudTrail nor a dead letter yet")

    with open(f"{folder}/placement.said") as file:
        said = file.read().strip(" |\n")
    failed = [event for _, event in calls.get("placement", []) if (event.get("responseElements") or {}).get("failures")]
    letter = letters.get("placement")
    evidence = f"{len(failed)} calls answered with failures[]; dead letter: {letter or 'none'}; its schedule: {said}"
    if not failed:
        say(2, open_point, evidence)
    elif letter or len(failed) > 1:
        say(2, "a failure", evidence)
    elif readable and "refused" in letters:
        say(2, "success, not retried", evidence)
    else:
        say(2, open_point, "the queue got no letter at all, so that none for this proves nothing; " + evidence)

    refused = calls.get("refused", [])
    ids = [execution_id(asked) for asked, _ in refused]
    if len(ids) < 2 or None in ids:
        say(3, open_point, f"{len(ids)} calls in CloudTrail, {ids.count(None)} of them with a hidden id")
    else:
        say(3, "the same" if len(set(ids)) == 1 else "different", f"in {len(ids)} calls: {sorted(set(ids))}")
    letter = letters.get("refused") or {}
    tries = letter.get("RETRY_ATTEMPTS") or ""
    if not tries.isdigit():
        say(4, open_point, f"no dead letter that says RETRY_ATTEMPTS; {len(refused)} calls in CloudTrail")
    else:
        say(4, "retried" if int(tries) > 0 else "not retried", f"dead letter: {letter}")
    plain = calls.get("plain", [])
    if plain:
        say(5, "adds one" if plain[0][0].get("clientToken") else "adds none")
    else:
        say(5, open_point, "no call in CloudTrail yet")
    for message in odd:
        say("?", "a letter of no kind", json.dumps(message, ensure_ascii=False))


{"schedule": schedule, "stateless": stateless, "points": points}[sys.argv[1]](*sys.argv[2:])
PYTHON

# schedule KIND STATE EXPRESSION: creates one; $answer is what AWS says, KIND.said keeps it. A role that is not known everywhere yet
# is waited for, up to two minutes; a wrong one says the same.
schedule() {
  local tries=0
  python3 "$folder/tool.py" schedule "$1" "$2" "$3"
  until ask aws scheduler create-schedule --cli-input-json "file://$folder/$1.json"; do
    case $answer in *'to assume the role'*) ;; *) break ;; esac
    tries=$((tries + 1))
    [ "$tries" -le 12 ] || break
    patiently sleep 10
  done
  case $answer in
    *ScheduleArn*) echo 'taken |' ;;
    *) echo "$(verdict) | ${answer:0:600}" ;;
  esac > "$folder/$1.said"
}

# said POINT WHAT KIND: a line about a schedule that was asked for.
said() {
  case $(cat "$folder/$3.said") in
    'taken |'*) say "$1" "$2 taken" '' ;;
    'refused |'*) say "$1" "$2 refused" "$answer" ;;
    *) say "$1" 'not settled' "$2: $answer" ;;
  esac
}

note "making cluster, role, queue, group and task definitions named $name"
aws ecs create-cluster --cluster-name "$name" > /dev/null
aws iam create-role --role-name "$name" --assume-role-policy-document '{"Version":"2012-10-17","Statement":[{"Effect":"Allow",
  "Principal":{"Service":["scheduler.amazonaws.com","ecs-tasks.amazonaws.com"]},"Action":"sts:AssumeRole"}]}' > /dev/null
decrypt=",{\"Effect\":\"Allow\",\"Action\":\"kms:Decrypt\",\"Resource\":\"arn:$partition:kms:$region:$account:key/*\"}"
aws iam put-role-policy --role-name "$name" --policy-name all --policy-document "{\"Version\":\"2012-10-17\",\"Statement\":[
  {\"Effect\":\"Allow\",\"Action\":\"ecs:RunTask\",\"Resource\":\"arn:$partition:ecs:$region:$account:task-definition/$name*\"},
  {\"Effect\":\"Allow\",\"Action\":\"iam:PassRole\",\"Resource\":\"$role\"},
  {\"Effect\":\"Allow\",\"Action\":\"sqs:SendMessage\",\"Resource\":\"$queue\"},
  {\"Effect\":\"Allow\",\"Action\":\"ssm:GetParameters\",\"Resource\":\"arn:$partition:ssm:$region:$account:parameter/$name\"}${kms:+$decrypt}]}"
queue_asked=yes
queue_url=$(aws sqs create-queue --queue-name "$name" --query QueueUrl --output text)
aws scheduler create-schedule-group --name "$name" > /dev/null
aws ssm put-parameter --name "/$name" --type SecureString --value not-a-secret ${kms:+--key-id "$kms"} > /dev/null
container="\"name\":\"app\",\"image\":\"$image\",\"command\":[\"sleep\",\"20\"]"
aws ecs register-task-definition --family "$name" --requires-compatibilities FARGATE --network-mode awsvpc --cpu 256 --memory 512 \
  --container-definitions "[{$container}]" > /dev/null
aws ecs register-task-definition --family "$name-secret" --requires-compatibilities FARGATE --network-mode awsvpc --cpu 256 \
  --memory 512 --execution-role-arn "$role" \
  --container-definitions "[{$container,\"secrets\":[{\"name\":\"KEY\",\"valueFrom\":\"/$name\"}]}]" > /dev/null

schedule disabled DISABLED 'cron(0 0 1 1 ? 2099)'
case $answer in
  *ScheduleArn*) ;;
  *) echo "error: not even a plain schedule can be created: $answer" >&2; exit 1 ;;
esac
python3 "$folder/tool.py" stateless disabled
if ask aws scheduler update-schedule --cli-input-json "file://$folder/stateless.json"; then
  ask aws scheduler get-schedule --group-name "$name" --name disabled --query State --output text || true
  case $answer in
    ENABLED* | DISABLED*) say 7 "State is $answer" 'after an update without one' ;;
    *) say 7 'not settled' "$answer" ;;
  esac
else
  say 7 "$(verdict)" "UpdateSchedule without State: $answer"
fi

soon=$(date -u -d '+4 minutes' +%Y-%m-%dT%H:%M:00 2> /dev/null || date -u -v+4M +%Y-%m-%dT%H:%M:00)
for kind in camel nested unknown refused plain; do
  schedule "$kind" ENABLED "at($soon)"
done
# failures[] in an answer of 200 takes a registered instance and a task that is too big for it; without an instance RunTask is a 400.
if [ -z "$ec2" ]; then
  echo 'not asked: say --ec2-cluster, one with a registered instance' > "$folder/placement.said"
elif ask aws ecs register-task-definition --family "$name-big" --requires-compatibilities EC2 --network-mode bridge \
  --container-definitions "[{$container,\"memory\":4000000}]"; then
  schedule placement ENABLED "at($soon)"
else
  echo "no task definition that is too big: $answer" > "$folder/placement.said"
fi

for size in 64 256 1024; do
  schedule "long$size" DISABLED 'cron(0 0 1 1 ? 2099)'
  said 6 "$size KiB" "long$size"
done

schedule rate DISABLED 'rate(1 minute)'
said 10 singular rate

# The container says with its exit code which of the two values it got.
overrides='{"containerOverrides":[{"name":"app","environment":[{"name":"KEY","value":"other"}],
  "command":["sh","-c","case $KEY in other) exit 10;; not-a-secret) exit 11;; *) exit 12;; esac"]}]}'
tries=0
until ask aws ecs run-task --cluster "$name" --task-definition "$name-secret" --launch-type FARGATE --started-by secret \
  --network-configuration "awsvpcConfiguration={subnets=[$subnet],assignPublicIp=ENABLED}" --overrides "$overrides" \
  --query '[tasks[0].taskArn,failures[0].reason]' --output text; do
  case $answer in *'unable to assume'*) ;; *) break ;; esac
  tries=$((tries + 1))
  [ "$tries" -le 12 ] || break
  patiently sleep 10
done
case $answer in
  arn:*:task/*)
    task=${answer%%[[:space:]]*}
    patiently aws ecs wait tasks-stopped --cluster "$name" --tasks "$task" > /dev/null || true
    ask aws ecs describe-tasks --cluster "$name" --tasks "$task" --query 'tasks[0].[containers[0].exitCode,stopCode,stoppedReason]' \
      --output text || true
    case $answer in
      10[!0-9]*) say 8 'taken, the override wins' '' ;;
      11[!0-9]*) say 8 'taken, the secret wins' '' ;;
      *) say 8 'not settled' "RunTask took it, and the task ended with: $answer" ;;
    esac ;;
  *'unable to assume'*) say 8 'not settled' "$answer" ;;
  *) say 8 "$(verdict)" "$answer" ;;
esac

# key: $answer is the parameter's version and key.
key() {
  ask aws ssm describe-parameters --parameter-filters "Key=Name,Values=/$name" --query 'Parameters[0].[Version,KeyId]' --output text || true
  answer=$(echo "$answer" | tr '\t' ' ')
}
if [ -n "$kms" ]; then
  key
  before=$answer
  if ask aws ssm put-parameter --name "/$name" --type SecureString --value not-a-secret-2 --overwrite; then
    for _ in 1 2 3 4 5 6; do
      key
      [ "${answer%% *}" = "${before%% *}" ] || break
      patiently sleep 5
    done
    case "$before/$answer" in
      1\ */2\ *)
        if [ "${before#* }" = "${answer#* }" ]; then say 9 'key kept' "$answer"; else say 9 'key lost' "$before -> $answer"; fi ;;
      *) say 9 'not settled' "version and key: $before -> $answer" ;;
    esac
  else
    say 9 'not settled' "$answer"
  fi
else
  say 9 'not settled' 'not asked: say --kms-key'
fi

note "waiting 20 minutes: the schedules fire at $soon UTC, retries take up to 10 minutes, CloudTrail up to 15"
patiently sleep 1200

: > "$folder/letters.json"
for _ in 1 2 3 4 5; do
  aws sqs receive-message --queue-url "$queue_url" --max-number-of-messages 10 --wait-time-seconds 5 --message-attribute-names All \
    >> "$folder/letters.json" || : > "$folder/letters.failed"
done
aws cloudtrail lookup-events --start-time "$began" --lookup-attributes AttributeKey=EventName,AttributeValue=RunTask \
  --query 'Events[].CloudTrailEvent' > "$folder/trail.json" || note 'CloudTrail cannot be read: what it would settle is not settled'
python3 "$folder/tool.py" points
