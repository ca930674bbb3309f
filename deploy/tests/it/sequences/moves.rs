//! What can be done, by an operator and by others, and how often it is tried.

use proptest::prelude::*;

/// One thing that somebody does.
#[derive(Debug, Clone)]
pub enum Move {
    Apply {
        disabled: bool,
        adopt: bool,
        latest: bool,
        breaks: Option<usize>,
    },
    Trigger {
        by_scheduler: bool,
        ends: Ends,
    },
    Enable,
    EnableWithoutReceipt,
    Disable,
    Configure {
        variant: u8,
        stopped: bool,
        path: bool,
    },
    Hours(i64),
    /// The schedule itself starts the job, and it works.
    Fire,
    World(Drift),
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ends {
    Proven,
    Failed,
    Skipped,
    WithoutCommand,
    WhileTheKeyIsRotated,
}

/// What others do.
#[derive(Debug, Clone, Copy)]
pub enum Drift {
    Input,
    Trust,
    Policy,
    OtherPolicy,
    NewRevision,
    Key,
    Tags,
    SwitchedOn,
    Deleted,
    ReceiptEdited,
    ReceiptCut,
    ReceiptOfAnotherJob,
}

impl Drift {
    /// Those that a plan or a receipt shows.
    const NOTICED: [Drift; 11] = {
        use Drift::*;
        [
            Input,
            Trust,
            Policy,
            NewRevision,
            Key,
            Tags,
            SwitchedOn,
            Deleted,
            ReceiptEdited,
            ReceiptCut,
            ReceiptOfAnotherJob,
        ]
    };
}

pub fn step() -> impl Strategy<Value = Move> {
    let ends = prop_oneof![
        5 => Just(Ends::Proven), 1 => Just(Ends::Failed), 1 => Just(Ends::Skipped), 1 => Just(Ends::WithoutCommand),
        1 => Just(Ends::WhileTheKeyIsRotated)
    ];
    let drift = prop::sample::select(Drift::NOTICED.to_vec());
    let apply = (any::<[bool; 3]>(), prop::option::weighted(0.2, 0..8_usize));
    prop_oneof![
        6 => apply.prop_map(|([disabled, adopt, latest], breaks)| Move::Apply { disabled, adopt, latest, breaks }),
        6 => (any::<bool>(), ends).prop_map(|(by_scheduler, ends)| Move::Trigger { by_scheduler, ends }),
        6 => Just(Move::Enable),
        1 => Just(Move::EnableWithoutReceipt),
        2 => Just(Move::Disable),
        1 => (0..2_u8, prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(variant, stopped, path)| Move::Configure { variant, stopped, path }),
        1 => (0..80_i64).prop_map(Move::Hours),
        3 => Just(Move::Fire),
        3 => drift.prop_map(Move::World),
        // Of the drifts the one that no plan notices.
        3 => Just(Move::World(Drift::OtherPolicy)),
    ]
}
