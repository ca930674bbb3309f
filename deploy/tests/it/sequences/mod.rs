//! Whatever the verbs are told and in whatever order, and whatever happens to the world in between: the schedule is ENABLED only by a
//! proof of the world as it is, by a person's recorded word, or by somebody else's hand.

mod moves;
mod program;
mod stage;
mod things;

use std::cell::RefCell;

use proptest::prelude::*;

use moves::{Ends, Move, step};
use program::on_the_local_aws;
use stage::{Counts, Known, Stage};

#[test]
fn nothing_is_enabled_without_a_proof_a_word_or_somebody_elses_hand() {
    // Fewer where this runs often, more where there is time: PROPTEST_CASES.
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(600);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let (total, known) = (RefCell::new(Counts::default()), Known::default());
    // From nothing to enabled takes three right moves in a row: most sequences begin with some of them.
    let sequences = (prop::bool::weighted(0.2), any::<bool>(), 0..=4_usize, prop::collection::vec(step(), 1..16));
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let outcome = runner.run(&sequences, |(adopted, path, ahead, moves)| {
        let mut stage = Stage::set(&known, adopted, path);
        let right = [
            Move::Apply { disabled: true, adopt: true, latest: false, breaks: None },
            Move::Trigger { by_scheduler: path, ends: Ends::Proven },
            Move::Enable,
            Move::Fire,
        ];
        right[..ahead].iter().for_each(|step| stage.play(step));
        moves.iter().for_each(|step| stage.play(step));
        let (mut total, counts) = (total.borrow_mut(), stage.counts);
        total.sequences += 1;
        total.moves += counts.moves;
        total.on_by_proof += counts.on_by_proof;
        total.on_by_word += counts.on_by_word;
        total.refused += counts.refused;
        total.proven += counts.proven;
        total.fired += counts.fired;
        total.on_by_path += counts.on_by_path;
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let total = *total.borrow();
    println!("{total:?}, 0 violations");
    // A property that never comes near its subject says nothing.
    let often = total.on_by_proof * 50 > total.sequences && total.fired * 50 > total.sequences;
    assert!(often && total.on_by_word > 0 && total.on_by_path > 0 && total.refused > 0, "{total:?}");
}

#[test]
fn nor_with_the_program_itself_against_the_local_aws() {
    on_the_local_aws(6);
}

#[test]
#[ignore = "needs minutes"]
fn nor_in_many_more_sequences_against_the_local_aws() {
    on_the_local_aws(60);
}
