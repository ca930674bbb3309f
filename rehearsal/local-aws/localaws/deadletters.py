"""What Scheduler does with an occurrence that it could not deliver: a message to the schedule's dead-letter queue."""

from . import iam
from .seam import Refused, sqs


def send(schedule, record):
    """Sends it under the schedule's role; whether it arrived. Without a queue, or without the right, the occurrence is lost."""
    target = schedule["Target"]
    arn = (target.get("DeadLetterConfig") or {}).get("Arn")
    if not arn or sqs._queue_by_arn(arn) is None:
        return False
    code, _, message = record["error"].partition(": ")
    attributes = {
        "ERROR_CODE": code,
        "ERROR_MESSAGE": message,
        "EXECUTION_ID": record["execution_id"],
        "EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts",
        "IS_PAYLOAD_TRUNCATED": "false",
        "RETRY_ATTEMPTS": str(record["attempts"] - 1),
        "SCHEDULED_TIME": record["scheduled_time"],
        "SCHEDULE_ARN": schedule["Arn"],
        "TARGET_ARN": target["Arn"],
    }
    try:
        with iam.acting_as(target["RoleArn"]):
            iam.check_allowed("sqs:SendMessage", arn)
    except Refused:
        return False
    url = sqs._queue_url(arn.rsplit(":", 1)[-1])
    values = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
    sqs._act_send_message({"QueueUrl": url, "MessageBody": record["input"], "MessageAttributes": values}, url)
    return True
