//! What the stand-in can answer.

use axum::body::Body;
use axum::response::Response;
use serde_json::{Value, json};

use crate::snapshot::Row;

/// The two shapes in which the portal has wrapped its pages; which one an API has seems to depend on the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Envelope {
    /// Up to July 2026: `{"response":{"header","body":{"items":[…]}}}`, totals as strings.
    Old,
    /// Since: no `response`, and `items` is `{"item":[…]}`.
    New,
}

/// The shapes in which the same error arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorForm {
    /// `<OpenAPI_ServiceResponse>`, also when JSON was asked for.
    Xml,
    /// The same tree as JSON.
    Json,
    /// `{"responseTime":…,"resultCode":…,"resultMsg":…}`
    Flat,
    /// `{"header":{"resultCode":…}}` with or without the `response` wrapper.
    Envelope(Envelope),
}

/// One answer.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A whole HTTP answer.
    Whole {
        /// The status code.
        status: u16,
        /// The content type.
        content_type: &'static str,
        /// The body.
        body: Vec<u8>,
    },
    /// Headers that promise more than the connection then delivers.
    CutShort {
        /// What is delivered before the connection breaks.
        body: Vec<u8>,
    },
    /// Elsewhere, as the portal's http address answers.
    Moved {
        /// The status code.
        status: u16,
        /// The Location header.
        location: String,
    },
    /// Nothing, ever; the connection stays open.
    Silence,
}

impl Answer {
    /// Plain text, as the gateway sends it.
    pub fn plain(status: u16, text: &str) -> Answer {
        Answer::Whole { status, content_type: "text/plain", body: text.into() }
    }

    /// HTML, as the firewall in front of the gateway sends it.
    pub fn html(status: u16, text: &str) -> Answer {
        Answer::Whole { status, content_type: "text/html; charset=utf-8", body: text.into() }
    }

    /// A page whose `items` are this, whatever it is.
    pub fn items(envelope: Envelope, items: &Value, total: usize) -> Answer {
        let header = json!({"resultCode": "00", "resultMsg": "NORMAL_SERVICE"});
        wrap(envelope, json!({"header": header, "body": {"items": items, "totalCount": total}}))
    }

    /// JSON with status 200.
    pub fn json(value: &Value) -> Answer {
        Answer::Whole { status: 200, content_type: "application/json;charset=UTF-8", body: value.to_string().into() }
    }

    /// An error that is sent with status 200.
    pub fn error(form: ErrorForm, code: &str, name: &str) -> Answer {
        match form {
            ErrorForm::Xml => Answer::Whole {
                status: 200,
                content_type: "text/xml;charset=UTF-8",
                body: format!(
                    "<OpenAPI_ServiceResponse>\n\t<cmmMsgHeader>\n\t\t<errMsg>SERVICE ERROR</errMsg>\n\t\t<returnAuthMsg>{name}</returnAuthMsg>\n\t\t<returnReasonCode>{code}</returnReasonCode>\n\t</cmmMsgHeader>\n</OpenAPI_ServiceResponse>"
                )
                .into(),
            },
            ErrorForm::Json => Answer::json(&json!({"OpenAPI_ServiceResponse": {"cmmMsgHeader": {
                "errMsg": name, "returnAuthMsg": "서비스 오류", "returnReasonCode": code}}})),
            ErrorForm::Flat => Answer::json(&json!({"responseTime": "2026-09-02T10:00:00", "resultCode": code, "resultMsg": name})),
            ErrorForm::Envelope(envelope) => wrap(envelope, json!({"header": {"resultCode": code, "resultMsg": name}})),
        }
    }

    /// A page of rows, or what the service says past the last one.
    pub(super) fn page(envelope: Envelope, items: &[&Row], total: usize, page: usize, size: usize) -> Answer {
        if items.is_empty() && envelope == Envelope::Old {
            return Answer::error(ErrorForm::Envelope(envelope), "03", "NODATA_ERROR");
        }
        let header = json!({"resultCode": "00", "resultMsg": "NORMAL_SERVICE", "type": "json"});
        let body = match envelope {
            Envelope::Old => {
                json!({"items": items, "totalCount": total.to_string(), "numOfRows": size.to_string(), "pageNo": page.to_string()})
            }
            Envelope::New if items.is_empty() => {
                json!({"items": "", "totalCount": total, "numOfRows": size, "pageNo": page})
            }
            Envelope::New => json!({"items": {"item": items}, "totalCount": total, "numOfRows": size, "pageNo": page}),
        };
        wrap(envelope, json!({"header": header, "body": body}))
    }

    pub(super) async fn into_response(self) -> Response {
        match self {
            Answer::Whole { status, content_type, body } => {
                let response = Response::builder().status(status).header("content-type", content_type);
                response.body(Body::from(body)).expect("the answer is valid HTTP")
            }
            Answer::CutShort { body } => {
                let promised = (body.len() + 1000).to_string();
                let response =
                    Response::builder().header("content-type", "application/json").header("content-length", promised);
                // A stream, as the server counts the bytes of a whole body itself; its error breaks the connection.
                let broken = Err(std::io::Error::other("cut short"));
                let stream = futures_util::stream::iter([Ok(body), broken]);
                response.body(Body::from_stream(stream)).expect("the answer is valid HTTP")
            }
            Answer::Moved { status, location } => {
                let response = Response::builder().status(status).header("location", location);
                response.body(Body::empty()).expect("the answer is valid HTTP")
            }
            Answer::Silence => std::future::pending().await,
        }
    }
}

fn wrap(envelope: Envelope, answer: Value) -> Answer {
    match envelope {
        Envelope::Old => Answer::json(&json!({ "response": answer })),
        Envelope::New => Answer::json(&answer),
    }
}
