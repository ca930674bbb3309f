//! The parameter that holds a job's receipt.

use aws_sdk_ssm::types::{ParameterType, ResourceTypeForTagging, Tag};

use super::{Answer, Aws, CloudError, ErrorKind, Receipts};
use crate::model::tags;

/// Writing a receipt failed.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptWriteError {
    /// There is a parameter of that name, without our tags.
    #[error("the parameter {0} exists and is not this job's: it does not carry the tags of deploy")]
    Foreign(String),
    /// AWS refused.
    #[error(transparent)]
    Cloud(#[from] CloudError),
}

impl Receipts for Aws {
    // A plain string: reading it needs no right to decrypt.
    async fn receipt(&self, name: &str) -> Answer<String> {
        let answer = self.ssm.get_parameter().name(name).send().await;
        let answer = answer.map_err(|error| CloudError::new("ssm:GetParameter", name, &error))?;
        Ok(answer.parameter.and_then(|parameter| parameter.value).unwrap_or_default())
    }
}

impl Aws {
    /// The text of the receipt and the version of its parameter.
    pub async fn receipt_version(&self, name: &str) -> Answer<(String, i64)> {
        let answer = self.ssm.get_parameter().name(name).send().await;
        let answer = answer.map_err(|error| CloudError::new("ssm:GetParameter", name, &error))?;
        let parameter = answer.parameter.ok_or_else(|| CloudError::not_found("ssm:GetParameter", name))?;
        Ok((parameter.value.unwrap_or_default(), parameter.version))
    }

    /// Writes the receipt, and answers the version of its parameter. Tags and overwriting exclude each other in one call: a new parameter is tagged as it is made, one
    /// that exists must carry our tags already.
    pub async fn write_receipt(&self, name: &str, text: &str, job: &str) -> Result<i64, ReceiptWriteError> {
        let put = || self.ssm.put_parameter().name(name).value(text).r#type(ParameterType::String);
        let ours = tags::ours(job);
        let tags = ours.iter().map(|(key, value)| Tag::builder().key(key).value(value).build().expect("key and value"));
        let failed = |error| CloudError::new("ssm:PutParameter", name, &error);
        match put().set_tags(Some(tags.collect())).send().await.map_err(failed) {
            Ok(answer) => return Ok(answer.version),
            Err(error) if error.kind == ErrorKind::Conflict => {}
            Err(error) => return Err(error.into()),
        }
        let request =
            self.ssm.list_tags_for_resource().resource_type(ResourceTypeForTagging::Parameter).resource_id(name);
        let found = request.send().await.map_err(|error| CloudError::new("ssm:ListTagsForResource", name, &error))?;
        let found = found.tag_list().iter().map(|tag| (tag.key().to_owned(), tag.value().to_owned())).collect();
        if !tags::are_ours(&found, job) {
            return Err(ReceiptWriteError::Foreign(name.to_owned()));
        }
        Ok(put().overwrite(true).send().await.map_err(failed)?.version)
    }
}
