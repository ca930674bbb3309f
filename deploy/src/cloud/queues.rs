//! Queues, as far as `status` looks at them: how much Scheduler could not deliver.

use aws_sdk_sqs::types::QueueAttributeName::ApproximateNumberOfMessages;

use super::{Answer, Aws, CloudError};

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
}

/// The address that a queue's ARN stands for; asking for it would be one more call, and one more right.
fn address(arn: &str) -> Option<String> {
    let parts: Vec<_> = arn.split(':').collect();
    let ["arn", partition, "sqs", region, account, name] = parts.as_slice() else { return None };
    let suffix = if *partition == "aws-cn" { ".cn" } else { "" };
    Some(format!("https://sqs.{region}.amazonaws.com{suffix}/{account}/{name}"))
}
