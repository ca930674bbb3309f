//! The story: what an operator does in the first hour, and what the schedule then does for months.

mod image;
mod interrupt;
mod ledger;
mod proofs;
mod scene;
mod transcript;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use rehearsal::snapshot::{self, Change, Rows};

use ledger::Run;
use proofs::Proofs;
use scene::Scene;

use crate::Engine;

/// How many rows an invented month has.
const INVENTED_ROWS: usize = 1_200;

/// Somebody has interrupted the story.
pub fn interrupted() -> bool {
    interrupt::happened()
}

/// Tells the whole story. True when everything it claims was proven.
pub fn tell(files: &[PathBuf], keep: bool, engine: Engine) -> Result<bool> {
    let mut months = files.iter().map(|file| snapshot::read_jsonl(file)).collect::<Result<Vec<_>>>()?;
    if months.is_empty() {
        months.push(snapshot::generate(2026, INVENTED_ROWS));
    }
    let first = months.remove(0);
    interrupt::watch();
    // Dropped at the end of this function, whatever happens: everything that was started is ended before we are.
    let mut scene = Scene::set(first.clone(), engine)?;
    let mut proofs = Proofs::default();
    let start = Instant::now();
    switch_on(&mut scene, &mut proofs, first.len())?;
    months_pass(&mut scene, &mut proofs, first, months)?;
    switch_off(&mut scene, &mut proofs)?;
    image::holds_what_it_promises(&mut scene, &mut proofs)?;
    nothing_leaked(&mut scene, &mut proofs)?;
    scene.say(&format!("The end, {:.0} seconds later. What it has proven:", start.elapsed().as_secs_f64()));
    scene.transcript.print(&proofs.table());
    if keep {
        scene.print_how_to_drive_it();
        interrupt::wait_for_leave();
    }
    Ok(proofs.all_hold())
}

/// From nothing to an enabled schedule, in four commands.
fn switch_on(scene: &mut Scene, proofs: &mut Proofs, rows: usize) -> Result<()> {
    scene.say(
        "A cluster runs the family `geuneul`. Nobody has scheduled anything, and the task definition knows no API key.\n\
         `deploy.toml` says what is wanted; the key's value is in an environment variable of this shell.",
    );
    scene.show_file("deploy.toml")?;
    scene.deploy(&["plan"], 0)?;
    scene.say("Make it so, switched off.");
    scene.deploy(&["apply", "--disabled", "--yes"], 0)?;
    scene.deploy(&["plan", "--detailed-exitcode"], 0)?;
    proofs.add("a plan after apply is empty", "plan --detailed-exitcode ended with 0");
    scene.say("Too early to switch it on: nothing has been proven.");
    scene.deploy(&["enable"], 3)?;
    proofs.add("enable refuses without a receipt", "exit 3, state DISABLED");
    proofs.check("the schedule is still off", scene.schedule_state()?, "DISABLED");
    scene
        .say("Run it once, by hand, with the schedule's own input: a real task, the decrypted key, a real PostgreSQL.");
    scene.deploy(&["trigger-now"], 0)?;
    let run = ledger::last(scene)?;
    proofs.check("the first run inserts every row", run.counts(), format!("fetched={rows} inserted={rows}"));
    proofs.check("it was a manual run", run.trigger.as_str(), "manual");
    scene.say("That run is the receipt. Now the gate opens.");
    scene.deploy(&["enable"], 0)?;
    proofs.check("the schedule is on", scene.schedule_state()?, "ENABLED");
    Ok(())
}

/// The schedule fires; months pass.
fn months_pass(scene: &mut Scene, proofs: &mut Proofs, first: Rows, further: Vec<Rows>) -> Result<()> {
    let rows = first.len();
    scene.say("The clock of the local AWS moves to the next fire time. Nobody is at the keyboard.");
    let run = the_schedule_fires(scene)?;
    proofs.check("the schedule fires under its own role", run.trigger.as_str(), "scheduled");
    proofs.check("an unchanged month writes nothing", run.counts(), format!("fetched={rows} unchanged={rows}"));
    scene.say("`deploy` reads this machine's clock, which has not moved.");
    scene.deploy(&["status"], 0)?;

    let mut months = further.into_iter().map(|month| (month, None)).collect::<Vec<_>>();
    if months.is_empty() {
        let (month, change) = snapshot::a_month_later(&first, 9);
        months.push((month, Some(change)));
    }
    let mut published = first.clone();
    for (month, expected) in months {
        scene.say("A month later: some libraries changed, some closed, some opened.");
        scene.upstream.set_rows(month.clone());
        let run = the_schedule_fires(scene)?;
        let expected = expected.map_or(run.counts(), |change| counts_of(change, month.len()));
        proofs.check("the month after is mirrored", run.counts(), expected);
        proofs.check(
            "the table holds what is published",
            ledger::active_places(scene)?.to_string(),
            run.active.to_string(),
        );
        published = month;
    }

    scene.say("Another month: the libraries of the first month that had closed are listed again.");
    let gone: Rows = first.into_iter().filter(|row| !published.iter().any(|other| same_library(row, other))).collect();
    let returned = gone.len();
    published.extend(gone);
    scene.upstream.set_rows(published);
    let run = the_schedule_fires(scene)?;
    proofs.check("libraries that return are reactivated", run.reactivated.to_string(), returned.to_string());
    Ok(())
}

fn counts_of(change: Change, published: usize) -> String {
    let Change { inserted, updated, retired } = change;
    let unchanged = published - inserted - updated;
    format!("fetched={published} inserted={inserted} updated={updated} unchanged={unchanged} deactivated={retired}")
}

fn switch_off(scene: &mut Scene, proofs: &mut Proofs) -> Result<()> {
    scene.say("The stop control, always at hand.");
    scene.deploy(&["disable"], 0)?;
    proofs.check("disable switches it off", scene.schedule_state()?, "DISABLED");
    Ok(())
}

/// Everything that was printed, logged and stored, searched for the key in every form it has.
fn nothing_leaked(scene: &mut Scene, proofs: &mut Proofs) -> Result<()> {
    let searched = scene.everything_but_the_parameter_store()?;
    let hits: usize = scene.key_forms().iter().map(|key| searched.matches(key.as_str()).count()).sum();
    proofs.check("the key is nowhere but in the parameter store", format!("{hits} hits"), "0 hits");
    // The control: the same search does find what is there.
    let control = searched.matches("datago_service_key").count();
    ensure!(control > 0, "the search for the key looks in the wrong places");
    let kilobytes = searched.len() / 1024;
    proofs.add(
        "searched for it: transcript, logs, AWS, tables, files",
        &format!("{kilobytes} KB, in which the parameter's name stands {control} times"),
    );
    Ok(())
}

fn the_schedule_fires(scene: &mut Scene) -> Result<Run> {
    let before = ledger::count(scene)?;
    scene.let_it_fire()?;
    let run = ledger::last(scene)?;
    ensure!(ledger::count(scene)? == before + 1, "the schedule fired, and no run followed");
    scene.note(&format!("{} run {}: {}", run.trigger, run.outcome, run.counts()));
    Ok(run)
}

fn same_library(one: &snapshot::Row, other: &snapshot::Row) -> bool {
    ["insttCode", "lbrryNm"].iter().all(|key| one.get(*key) == other.get(*key))
}
