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
use serde_json::{Map, Value};

/// Keeps the body of the answer that it sees.
#[derive(Debug, Clone, Default)]
pub(super) struct Body(Arc<Mutex<Vec<u8>>>);

impl Body {
    /// The answer as a JSON object; empty when nothing came.
    pub(super) fn object(&self) -> Map<String, Value> {
        let bytes = self.0.lock().map(|bytes| bytes.clone()).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
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
        if let (Some(bytes), Ok(mut body)) = (context.response().body().bytes(), self.0.lock()) {
            *body = bytes.to_vec();
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
