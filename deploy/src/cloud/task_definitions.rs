//! Task definitions, whole: read from the answer's body, written into the request's.

use aws_sdk_ecs::types::TaskDefinitionField;
use serde_json::{Map, Value, json};

use super::raw::{Body, sending};
use super::{Answer, Aws, CloudError, TaskDefinitions};
use crate::model::{Tags, TaskDefinition};

impl TaskDefinitions for Aws {
    async fn task_definition(&self, reference: &str) -> Answer<TaskDefinition> {
        const ACTION: &str = "ecs:DescribeTaskDefinition";
        let body = Body::default();
        let call = self.ecs.describe_task_definition().task_definition(reference).include(TaskDefinitionField::Tags);
        let answer = call.customize().interceptor(body.clone()).send().await;
        answer.map_err(|e| CloudError::new(ACTION, reference, &e))?;
        from_body(&body, ACTION, reference)
    }

    async fn register(&self, members: &Map<String, Value>, tags: &Tags) -> Answer<TaskDefinition> {
        const ACTION: &str = "ecs:RegisterTaskDefinition";
        let family = members.get("family").and_then(Value::as_str).unwrap_or_default();
        let mut request = members.clone();
        // An empty list of tags is refused.
        if !tags.is_empty() {
            let list = tags.iter().map(|(key, value)| json!({ "key": key, "value": value }));
            request.insert("tags".to_owned(), list.collect());
        }
        let body = Body::default();
        let call = self.ecs.register_task_definition().family(family).set_container_definitions(Some(Vec::new()));
        let call = call.customize().interceptor(body.clone()).mutate_request(sending(request, &[]));
        call.send().await.map_err(|e| CloudError::new(ACTION, family, &e))?;
        from_body(&body, ACTION, family)
    }
}

fn from_body(body: &Body, action: &'static str, thing: &str) -> Answer<TaskDefinition> {
    let mut answer = body.object();
    let Some(Value::Object(members)) = answer.remove("taskDefinition") else {
        return Err(CloudError::local(action, thing, "the answer holds no task definition"));
    };
    let text = |tag: &Value, member: &str| Some(tag.get(member)?.as_str()?.to_owned());
    let tags = answer.get("tags").and_then(Value::as_array).into_iter().flatten();
    let tags = tags.filter_map(|tag| Some((text(tag, "key")?, text(tag, "value").unwrap_or_default()))).collect();
    Ok(TaskDefinition { members, tags })
}
