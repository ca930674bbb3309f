//! The Parameter Store, without ever reading a value.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ssm::types::{
    ParameterMetadata, ParameterStringFilter, ParameterTier, ParameterType as Kind, ResourceTypeForTagging, Tag,
};

use super::{Answer, Aws, CloudError, ErrorKind, Parameters};
use crate::model::{Parameter, ParameterType, Tags};
use crate::secret::SecretValue;

const DESCRIBE: &str = "ssm:DescribeParameters";
/// SSM: so many values in one filter.
const NAMES_A_CALL: usize = 50;

impl Parameters for Aws {
    async fn parameter(&self, name: &str) -> Answer<Parameter> {
        let (described, tags) = tokio::join!(self.describe_parameter(name), self.parameter_tags(name));
        let mut parameter = described?;
        parameter.tags = match tags {
            Ok(tags) => Some(tags),
            Err(error) if error.kind == ErrorKind::Denied => None,
            Err(error) => return Err(error),
        };
        Ok(parameter)
    }

    async fn create_parameter(&self, name: &str, value: &SecretValue, key: Option<&str>, tags: &Tags) -> Answer<i64> {
        // 4 KB fit the standard tier; the account's default could be the one that costs money.
        let put = self.put(name, value, key).tier(ParameterTier::Standard).set_tags(Some(to_sdk(tags)));
        let answer = put.send().await.map_err(|e| CloudError::new("ssm:PutParameter", name, &e))?;
        Ok(answer.version)
    }

    async fn overwrite_parameter(&self, name: &str, value: &SecretValue, key: Option<&str>) -> Answer<i64> {
        // Without a tier: one that somebody made advanced cannot go back to the standard one.
        let put = self.put(name, value, key).overwrite(true);
        let answer = put.send().await.map_err(|e| CloudError::new("ssm:PutParameter", name, &e))?;
        Ok(answer.version)
    }

    async fn versions(&self, names: &BTreeSet<String>) -> Answer<BTreeMap<String, String>> {
        let names: Vec<_> = names.iter().cloned().collect();
        let mut found = BTreeMap::new();
        for some in names.chunks(NAMES_A_CALL) {
            for one in self.described(some).await? {
                let written = one.last_modified_date.map(|at| at.to_string()).unwrap_or_default();
                found.extend(one.name.map(|name| (name, format!("{}@{written}", one.version))));
            }
        }
        Ok(found)
    }

    async fn tag_parameter(&self, name: &str, tags: &Tags) -> Answer<()> {
        let call = self.ssm.add_tags_to_resource().resource_type(ResourceTypeForTagging::Parameter).resource_id(name);
        let answer = call.set_tags(Some(to_sdk(tags))).send().await;
        answer.map(drop).map_err(|e| CloudError::new("ssm:AddTagsToResource", name, &e))
    }
}

impl Aws {
    async fn describe_parameter(&self, name: &str) -> Answer<Parameter> {
        let found = self.described(&[name.to_owned()]).await?.into_iter().find(|one| one.name.as_deref() == Some(name));
        let found = found.ok_or_else(|| CloudError::not_found(DESCRIBE, name))?;
        let kind = match found.r#type {
            Some(Kind::SecureString) => ParameterType::SecureString,
            Some(other) => ParameterType::Other(other.as_str().to_owned()),
            None => ParameterType::Other("unknown".to_owned()),
        };
        let written_ms = found.last_modified_date.and_then(|at| at.to_millis().ok());
        Ok(Parameter { name: name.to_owned(), kind, key: found.key_id, version: found.version, written_ms, tags: None })
    }

    /// DescribeParameters shows type and version, and needs no right to decrypt. A page may be empty and not the last.
    async fn described(&self, names: &[String]) -> Answer<Vec<ParameterMetadata>> {
        let thing = names.join(", ");
        let filter = ParameterStringFilter::builder().key("Name").option("Equals").set_values(Some(names.to_vec()));
        let filter = filter.build().map_err(|e| CloudError::local(DESCRIBE, &thing, e.to_string()))?;
        let (mut found, mut token) = (Vec::new(), None);
        loop {
            let call = self.ssm.describe_parameters().parameter_filters(filter.clone()).set_next_token(token);
            let page = call.send().await.map_err(|e| CloudError::new(DESCRIBE, &thing, &e))?;
            found.extend(page.parameters.unwrap_or_default());
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() || found.len() >= names.len() {
                return Ok(found);
            }
        }
    }

    async fn parameter_tags(&self, name: &str) -> Answer<Tags> {
        let call = self.ssm.list_tags_for_resource().resource_type(ResourceTypeForTagging::Parameter).resource_id(name);
        let answer = call.send().await.map_err(|e| CloudError::new("ssm:ListTagsForResource", name, &e))?;
        Ok(answer.tag_list.unwrap_or_default().into_iter().map(|tag| (tag.key, tag.value)).collect())
    }

    fn put(
        &self,
        name: &str,
        value: &SecretValue,
        key: Option<&str>,
    ) -> aws_sdk_ssm::operation::put_parameter::builders::PutParameterFluentBuilder {
        let call = self.ssm.put_parameter().name(name).value(value.for_put_parameter());
        call.r#type(Kind::SecureString).set_key_id(key.map(str::to_owned))
    }
}

fn to_sdk(tags: &Tags) -> Vec<Tag> {
    let tag = |(key, value): (&String, &String)| Tag::builder().key(key).value(value).build().ok();
    tags.iter().filter_map(tag).collect()
}
