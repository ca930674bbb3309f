//! What the story has proven, as a short table.

/// Claims in the order in which they were checked.
#[derive(Debug, Default)]
pub struct Proofs {
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    holds: bool,
    claim: String,
    evidence: String,
}

impl Proofs {
    /// A claim that holds because the story came this far, with what shows it.
    pub fn add(&mut self, claim: &str, evidence: &str) {
        self.holds(claim, true, evidence);
    }

    /// A claim that holds if what was seen is what was expected.
    pub fn check(&mut self, claim: &str, seen: impl Into<String>, expected: impl Into<String>) {
        let (seen, expected) = (seen.into(), expected.into());
        let holds = seen == expected;
        let evidence = if holds { seen } else { format!("{seen}, expected {expected}") };
        self.lines.push(Line { holds, claim: claim.to_owned(), evidence });
    }

    /// A claim that was looked at, with what was seen.
    pub fn holds(&mut self, claim: &str, holds: bool, evidence: &str) {
        self.lines.push(Line { holds, claim: claim.to_owned(), evidence: evidence.to_owned() });
    }

    /// Every claim holds.
    pub fn all_hold(&self) -> bool {
        self.lines.iter().all(|line| line.holds)
    }

    /// The table.
    pub fn table(&self) -> String {
        let width = self.lines.iter().map(|line| line.claim.chars().count()).max().unwrap_or(0);
        let rows = self.lines.iter().map(|Line { holds, claim, evidence }| {
            format!("  {} {claim:<width$}  {evidence}\n", if *holds { "yes" } else { "NO " })
        });
        rows.collect()
    }
}
