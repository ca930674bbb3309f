//! Values as text for a person.

use crate::cli::Color;

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to colour.
    pub color: bool,
}

impl Style {
    /// The style for stdout: what was asked for, else colour on a terminal unless NO_COLOR is set.
    pub fn for_stdout(color: Color) -> Style {
        use std::io::IsTerminal;
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        };
        Style { color }
    }
}
