//! Requests and answers as the JSON that really travels.
//!
//! The SDK's types know the fields of the day they were generated; whatever AWS adds later would be lost on the way from a
//! Describe to a Register. The two documents that must survive whole are therefore read from the answer's body and written into the
//! request's, while the SDK does the rest: addresses, signatures, retries, errors.

use std::sync::{Arc, Mutex};

use aws_sdk_ecs::config::interceptors::AfterDeserializationInterceptorContextRef;
use aws_sdk_ecs::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_ecs::error::BoxError;
use aws_smithy_types::body::SdkBody;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::{Map, Value};

/// Keeps the body of the answer that it sees, and its date, be it an error.
#[derive(Debug, Clone, Default)]
pub(super) struct Body(Arc<Mutex<(Vec<u8>, Option<Timestamp>)>>);

impl Body {
    /// The answer as a JSON object; empty when nothing came.
    pub(super) fn object(&self) -> Map<String, Value> {
        let bytes = self.0.lock().map(|kept| kept.0.clone()).unwrap_or_default();
        let mut object = serde_json::from_slice(&bytes).unwrap_or_default();
        drop_nulls(&mut object);
        object
    }

    /// What time it was where the answer was written.
    pub(super) fn date(&self) -> Option<Timestamp> {
        self.0.lock().ok()?.1
    }
}

/// In AWS's JSON, null is another way to leave a member out.
fn drop_nulls(members: &mut Map<String, Value>) {
    members.retain(|_, value| !value.is_null());
    for value in members.values_mut() {
        match value {
            Value::Object(members) => drop_nulls(members),
            Value::Array(items) => items.iter_mut().filter_map(Value::as_object_mut).for_each(drop_nulls),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

impl Intercept for Body {
    fn name(&self) -> &'static str {
        "Body"
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let answer = context.response();
        if let Ok(mut kept) = self.0.lock() {
            let date = answer.headers().get("date").and_then(|date| rfc2822::parse(date).ok());
            *kept = (answer.body().bytes().unwrap_or_default().to_vec(), date.map(|date| date.timestamp()));
        }
        Ok(())
    }
}

/// A function that replaces a request's body by these members, before it is signed. What the SDK alone knows (`keep`: an
/// idempotency token) stays.
pub(super) fn sending(
    members: Map<String, Value>,
    keep: &'static [&'static str],
) -> impl Fn(&mut aws_sdk_ecs::config::http::HttpRequest) + Send + Sync + 'static {
    move |request| {
        let bytes = request.body().bytes().unwrap_or_default();
        let mut body: Map<String, Value> = serde_json::from_slice(bytes).unwrap_or_default();
        body.retain(|name, _| keep.contains(&name.as_str()));
        body.extend(members.clone());
        let text = Value::Object(body).to_string();
        request.headers_mut().insert("content-length", text.len().to_string());
        *request.body_mut() = SdkBody::from(text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_is_absent_and_nothing_else_is_lost() {
        let text = r#"{"a":null,"b":{"c":null,"d":""},"e":[{"f":null,"g":0}],"h":[],"i":false,"j":{}}"#;
        let body = Body(Arc::new(Mutex::new((text.into(), None))));
        let expected = json!({ "b": { "d": "" }, "e": [{ "g": 0 }], "h": [], "i": false, "j": {} });
        assert_eq!(Value::Object(body.object()), expected);
    }
}
