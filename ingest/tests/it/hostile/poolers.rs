//! A real PgBouncer, in every mode: refused before anything is written, and nothing is left behind it.

use crate::world::{MONTHLY, World};
use geuneul::Outcome;
use rehearsal::pgbouncer::PgBouncer;
use rehearsal::postgres;
use rehearsal::snapshot::generate;

#[test]
#[ignore = "needs pgbouncer"]
fn a_pooler_is_refused_in_every_mode() {
    let mut world = World::new(generate(1, 20));
    world.mirror();
    let (versions, requests) = (world.row_versions(), world.upstream.requests().len());
    for mode in ["transaction", "statement", "session"] {
        for (settings, says) in [
            (&[][..], "unsupported startup parameter"),
            (&["ignore_startup_parameters = options"], "the session is not the one that was asked for"),
            // Whoever forwards more of what the program sets cannot forward this.
            (&["ignore_startup_parameters = options,extra_float_digits,search_path"], "the session is not the one"),
        ] {
            let pooler = PgBouncer::start(postgres::shared(), mode, settings).unwrap();
            world.through(pooler.port());
            for args in [&MONTHLY[..], &["migrate"], &["status"]] {
                let finished = world.invoke(args);
                let context = format!("{mode} {settings:?} {args:?}: {finished:?}");
                assert_eq!(finished.code, Some(78), "{context}");
                assert!(finished.stderr.contains("behind a pooler") && finished.stderr.contains(says), "{context}");
                assert!(finished.stderr.contains("use the direct endpoint"), "{context}");
            }
            let error = world.month().expect(Outcome::Misconfigured).error.unwrap();
            assert_eq!(error.code, "database_pooler", "{mode}: {error:?}");
            // Looked at directly, and while the pooler still has its server connections.
            assert!(world.lock_is_free(), "{mode}");
        }
    }
    world.through(world.database.port());
    assert_eq!((world.row_versions(), world.upstream.requests().len()), (versions, requests));
    assert_eq!(world.ledger(), ["succeeded"]);
    world.mirror();
}
