//! The dead-letter queue of a schedule, looked into and left as it is.

use aws_sdk_sqs::types::Message;

use super::{Answer, Aws, CloudError};
use crate::model::DeadLetter;

/// As many as one call answers with.
const AT_ONCE: i32 = 10;
/// Long polling asks every server of the queue; a short one may miss what is there.
const WAIT_S: i32 = 2;

impl Aws {
    /// Some of the messages of a queue, by its ARN. They stay visible to everybody.
    pub async fn dead_letters(&self, queue: &str) -> Answer<Vec<DeadLetter>> {
        let url = self.queue_url(queue).await?;
        let call = self.sqs.receive_message().queue_url(url).max_number_of_messages(AT_ONCE).wait_time_seconds(WAIT_S);
        let answer = call.visibility_timeout(0).message_attribute_names("All").send().await;
        let answer = answer.map_err(|error| CloudError::new("sqs:ReceiveMessage", queue, &error))?;
        Ok(answer.messages().iter().map(of_sdk).collect())
    }

    async fn queue_url(&self, queue: &str) -> Answer<String> {
        const ACTION: &str = "sqs:GetQueueUrl";
        let mut parts = queue.rsplit(':');
        let (name, account) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let call = self.sqs.get_queue_url().queue_name(name).queue_owner_aws_account_id(account);
        let answer = call.send().await.map_err(|error| CloudError::new(ACTION, queue, &error))?;
        answer.queue_url.ok_or_else(|| CloudError::not_found(ACTION, queue))
    }
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
