//! The two programs together: the real `ingest` in the task, a real PostgreSQL, and the stand-in for the portal.

use rehearsal::binaries;
use rehearsal::postgres::{self, Database};
use rehearsal::snapshot::generate;
use rehearsal::upstream::Upstream;

use crate::scene::Scene;

const ROWS: usize = 300;

#[test]
fn what_is_proven_by_hand_is_what_the_schedule_does() {
    let upstream = Upstream::start(generate(2026, ROWS)).unwrap();
    let database = postgres::shared().database();
    let scene = Scene::set();
    put_ingest_on(&scene, &upstream, &database);
    let with_key = |arguments: &[&str], key: &str, code: i32| {
        let output = scene.deploy(arguments).env("API_KEY", key).output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(!said.contains(key), "{said}");
        said
    };
    let runs = || {
        let columns = "concat_ws(' ', trigger, status, fetched, inserted, unchanged)";
        let rows = database.texts(&format!("SELECT {columns} FROM ingest.ingest_runs ORDER BY id"));
        rows.into_iter().flatten().collect::<Vec<_>>()
    };

    // With a key that the portal does not know, nothing is proven, and the run itself says why.
    with_key(&["apply", "--disabled", "--yes"], "a-key-that-nobody-knows", 0);
    let said = with_key(&["trigger-now"], "a-key-that-nobody-knows", 4);
    assert!(said.contains("ended with exit code 78 (misconfigured"), "{said}");
    scene.refusal(&["enable"]);

    with_key(&["apply", "--disabled", "--rotate", "DATA_GO_KR_SERVICE_KEY", "--yes"], upstream.key(), 0);
    with_key(&["trigger-now"], upstream.key(), 0);
    assert_eq!(runs().last().unwrap(), &format!("manual succeeded {ROWS} {ROWS} 0"));
    scene.expect(&["enable"], 0);

    // The schedule fires under its own role, and finds an unchanged month.
    scene.fire();
    assert_eq!(runs().last().unwrap(), &format!("scheduled succeeded {ROWS} 0 {ROWS}"));
    let said = with_key(&["status"], upstream.key(), 0);
    assert!(said.contains("the schedule itself ran the job"), "{said}");

    // Nobody but the Parameter Store and the container has seen the key.
    let stored = scene.aws.state().unwrap();
    for form in [upstream.key().to_owned(), upstream.encoded_key()] {
        assert!(!stored.contains(&form));
    }
}

/// The container is the real program; what it is told comes from `deploy.toml`, what it knows of its world from the image.
fn put_ingest_on(scene: &Scene, upstream: &Upstream, database: &Database) {
    let ingest = binaries::build().expect("the programs can be built").ingest().display();
    let (base, url) = (upstream.base_url(), database.url());
    scene.next_script(&format!("export DATA_GO_KR_BASE_URL='{base}' DATABASE_URL='{url}'\nexec '{ingest}' \"$@\"\n"));
    scene.edit_config(|config| {
        *config = config
            .replace(r#"command = ["--once", "--all"]"#, r#"ingest = { source = "library", deactivate_stale = true }"#)
            .replace(r#"env = "API_KEY""#, r#"env = "DATA_GO_KR_SERVICE_KEY""#);
    });
}
