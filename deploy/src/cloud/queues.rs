//! Dead-letter queues: what Scheduler could not deliver, and how much of it. They are looked into and left as they are.

use aws_sdk_sqs::types::Message;
use aws_sdk_sqs::types::QueueAttributeName::ApproximateNumberOfMessages;

use super::{Answer, Aws, CloudError};
use crate::model::DeadLetter;

/// As many as one call answers with.
const AT_ONCE: i32 = 10;
/// Long polling asks every server of the queue; a short one may miss what is there.
const WAIT_S: i32 = 2;

impl Aws {
    /// About how many messages wait in a queue, by its ARN.
    pub async fn queue_depth(&self, arn: &str) -> Answer<u64> {
        const ACTION: &str = "sqs:GetQueueAttributes";
        let url = address(arn).ok_or_else(|| CloudError::local(ACTION, arn, "this is not the ARN of a queue"))?;
        let call = self.sqs.get_queue_attributes().queue_url(url).attribute_names(ApproximateNumberOfMessages);
        let answer = call.send().await.map_err(|e| CloudError::new(ACTION, arn, &e))?;
        let depth = answer.attributes.and_then(|all| all.get(&ApproximateNumberOfMessages)?.parse().ok());
        depth.ok_or_else(|| CloudError::local(ACTION, arn, "the answer has no number"))
    }

    /// Some of the messages of a queue, by its ARN. They stay visible to everybody.
    pub async fn dead_letters(&self, arn: &str) -> Answer<Vec<DeadLetter>> {
        const ACTION: &str = "sqs:ReceiveMessage";
        let url = address(arn).ok_or_else(|| CloudError::local(ACTION, arn, "this is not the ARN of a queue"))?;
        let call = self.sqs.receive_message().queue_url(url).max_number_of_messages(AT_ONCE).wait_time_seconds(WAIT_S);
        let answer = call.visibility_timeout(0).message_attribute_names("All").send().await;
        let answer = answer.map_err(|error| CloudError::new(ACTION, arn, &error))?;
        Ok(answer.messages().iter().map(of_sdk).collect())
    }
}

/// The address that a queue's ARN stands for; asking for it would be one more call, and one more right.
fn address(arn: &str) -> Option<String> {
    let parts: Vec<_> = arn.split(':').collect();
    let ["arn", partition, "sqs", region, account, name] = parts.as_slice() else { return None };
    let suffix = if *partition == "aws-cn" { ".cn" } else { "" };
    Some(format!("https://sqs.{region}.amazonaws.com{suffix}/{account}/{name}"))
}

fn of_sdk(message: &Message) -> DeadLetter {
    let attribute = |name: &str| {
        let value = message.message_attributes().and_then(|all| all.get(name)?.string_value());
        value.unwrap_or_default().to_owned()
    };
    DeadLetter {
        schedule: attribute("SCHEDULE_ARN"),
        due: attribute("SCHEDULED_TIME").parse().ok(),
        error: format!("{}: {}", attribute("ERROR_CODE"), attribute("ERROR_MESSAGE")),
    }
}
