//! The parameter that holds a job's receipt.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use aws_sdk_ssm::types::{Parameter, ParameterType, ResourceTypeForTagging, Tag};

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

const READ: &str = "ssm:GetParameters";
/// How many names GetParameters takes.
const MOST: usize = 10;

impl Receipts for Aws {
    async fn receipts(&self, names: [&str; 2]) -> Answer<[Option<String>; 2]> {
        let found = self.texts(&names).await?;
        Ok(names.map(|name| found.get(name).map(|(text, _)| text.clone())))
    }

    async fn receipt(&self, name: &str) -> Answer<String> {
        Ok(self.receipt_version(name).await?.0)
    }
}

impl Aws {
    /// The text of the receipt and the version of its parameter.
    pub async fn receipt_version(&self, name: &str) -> Answer<(String, i64)> {
        self.texts(&[name]).await?.remove(name).ok_or_else(|| CloudError::not_found(READ, name))
    }

    /// Whether each of these versions of a receipt is there and has this text.
    pub async fn all_hold(&self, name: &str, versions: RangeInclusive<i64>, text: &str) -> Answer<bool> {
        let selectors: Vec<_> = versions.map(|version| format!("{name}:{version}")).collect();
        let wanted = selectors.len();
        if !(1..=MOST).contains(&wanted) {
            return Ok(false);
        }
        let answer = self.ssm.get_parameters().set_names(Some(selectors)).send().await;
        let found = answer.map_err(|error| CloudError::new(READ, name, &error))?;
        let found = found.parameters();
        Ok(found.len() == wanted && found.iter().all(|version| version.value() == Some(text)))
    }

    /// Texts with their versions, by name. Plain strings: reading them needs no right to decrypt. A name that is not there is no error.
    async fn texts(&self, names: &[&str]) -> Answer<BTreeMap<String, (String, i64)>> {
        let list = names.iter().map(|name| (*name).to_owned()).collect();
        let answer = self.ssm.get_parameters().set_names(Some(list)).send().await;
        let found = answer.map_err(|error| CloudError::new(READ, names.join(", "), &error))?.parameters;
        let text = |found: Parameter| Some((found.name?, (found.value.unwrap_or_default(), found.version)));
        Ok(found.unwrap_or_default().into_iter().filter_map(text).collect())
    }

    /// Writes the receipt, and answers the version of its parameter. Tags and overwriting exclude each other in one call: a new
    /// parameter is tagged as it is made, one that exists must carry our tags already.
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
        self.guard_receipt(name, job).await?;
        Ok(put().overwrite(true).send().await.map_err(failed)?.version)
    }
    /// Refuses a parameter that is there without our tags: it is not ours to write.
    pub async fn guard_receipt(&self, name: &str, job: &str) -> Result<(), ReceiptWriteError> {
        let request =
            self.ssm.list_tags_for_resource().resource_type(ResourceTypeForTagging::Parameter).resource_id(name);
        let found = request.send().await.map_err(|error| CloudError::new("ssm:ListTagsForResource", name, &error))?;
        let found = found.tag_list().iter().map(|tag| (tag.key().to_owned(), tag.value().to_owned())).collect();
        if tags::are_ours(&found, job) { Ok(()) } else { Err(ReceiptWriteError::Foreign(name.to_owned())) }
    }
}
