//! What the parameters of a job hold has a form: JSON that begins with what it is, names its job, and ends with a seal.
//!
//! The seal notices an edit by hand. It is no security boundary: whoever may write the parameter can compute it.
//!
//! Architecture invariant: no I/O, no clock.

use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use sha2::{Digest, Sha256};

/// The seal of a document that has none yet.
pub(crate) fn seal(document: &impl Serialize) -> String {
    hex::encode(Sha256::digest(text(document)))
}

/// A document as text.
pub(crate) fn text(document: &impl Serialize) -> String {
    serde_json::to_string(document).expect("it has only strings and numbers")
}

/// The same as the Parameter Store takes it: two braces are a reference there, and refused. In these texts they stand only inside
/// strings.
pub(crate) fn to_keep(document: &impl Serialize) -> String {
    text(document).replace("{{", "{\\u007b")
}

/// What a text says that it is. The version comes first: a document of another version has other fields.
pub(crate) fn marker(text: &str) -> Result<String, serde_json::Error> {
    #[derive(Deserialize)]
    struct Marker {
        geuneul: String,
    }
    serde_json::from_str(text).map(|Marker { geuneul }| geuneul)
}

/// Why a text is no such document, for a person.
pub(crate) fn why(text: &str, error: &serde_json::Error) -> String {
    match error.classify() {
        _ if text.is_empty() => "it is empty".to_owned(),
        Category::Eof => format!("it is cut off after {} bytes", text.len()),
        Category::Syntax | Category::Io => "it is not JSON".to_owned(),
        Category::Data => "it is JSON, and not of the fields that `deploy` writes".to_owned(),
    }
}
