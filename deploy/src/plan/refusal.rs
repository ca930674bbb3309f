//! What stands in the way of a plan as a whole.

/// Why `apply` would change nothing at all, and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What stands in the way.
    pub what: String,
    /// The way out.
    pub hint: String,
    /// The flag that lifts it, when one does.
    pub cure: Option<Cure>,
    /// Whether it is only that we were not allowed to look.
    pub unseen: bool,
}

/// A flag that lifts a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cure {
    /// `--disabled`.
    Disabled,
    /// `--adopt`, which a person must decide on.
    Adopt,
}

impl Refusal {
    /// A refusal with its way out.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Refusal {
        Refusal { what: what.into(), hint: hint.into(), cure: None, unseen: false }
    }

    pub(super) fn cured_by(self, cure: Cure) -> Refusal {
        Refusal { cure: Some(cure), ..self }
    }
}
