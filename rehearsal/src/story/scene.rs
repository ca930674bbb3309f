//! The stage of the story: three stand-ins, the world that was there before, and a shell to type in.

use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use rehearsal::binaries::{self, Binaries};
use rehearsal::local_aws::{Image, Images, Invocation, LocalAws, WorldSpec};
use rehearsal::podman::{self, ImageFacts, Podman};
use rehearsal::postgres::{Cluster, Database};
use rehearsal::snapshot::Rows;
use rehearsal::upstream::Upstream;
use rehearsal::{RunDir, toolbox};
use serde_json::Value;

use super::transcript::Transcript;
use super::{interrupt, ledger};
use crate::Engine;

/// The name of the job, of its schedule and of its schedule group.
pub const JOB: &str = "library-sync";
/// The image that the task definition names; the local AWS runs the real `ingest` for it.
pub const IMAGE: &str = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/geuneul/ingest:1.0.0";
/// The database role that the job logs in with: no superuser, and owner of nothing but what it makes.
const ROLE: &str = "geuneul";

/// Everything that is up. Fields are dropped in this order: the tasks first, then what they talk to, then their folder.
pub struct Scene {
    pub aws: LocalAws,
    pub upstream: Upstream,
    pub database: Database,
    _cluster: Cluster,
    pub transcript: Transcript,
    programs: &'static Binaries,
    folder: RunDir,
    /// What the tasks are made from, when they are containers.
    pub image: Option<RealImage>,
}

/// The image, and the podman that has it.
pub struct RealImage {
    pub podman: Podman,
    pub facts: ImageFacts,
}

impl Scene {
    /// Builds the programs, starts the stand-ins, makes the world and writes `deploy.toml`.
    pub fn set(rows: Rows, engine: Engine) -> Result<Scene> {
        eprintln!("rehearsal: building the programs (minutes at first: the AWS SDK is large)");
        let programs = binaries::build()?;
        let folder = toolbox()?.new_run()?;
        let cluster = Cluster::start()?;
        cluster.role(ROLE, "");
        let database = cluster.named_database("geuneul");
        database.execute(&format!("GRANT CREATE ON DATABASE geuneul TO {ROLE}"));
        let upstream = Upstream::start(rows)?;
        let transcript = Transcript::default();
        let (aws, image) = match engine {
            Engine::Process => {
                (LocalAws::start(Images::from([(IMAGE.to_owned(), Image::new(programs.ingest()))]))?, None)
            }
            Engine::Podman => {
                let image = RealImage::build()?;
                (LocalAws::start_podman(&image.podman)?, Some(image))
            }
        };
        let scene = Scene { aws, upstream, database, _cluster: cluster, transcript, programs, folder, image };
        scene.make_the_world()?;
        interrupt::check()?;
        Ok(scene)
    }

    fn make_the_world(&self) -> Result<()> {
        let port = self.database.port().to_string();
        let base_url = self.upstream.base_url();
        let environment = [
            ("DB_HOST", self.database.host()),
            ("DB_PORT", &port),
            ("DB_NAME", self.database.name()),
            ("DB_USERNAME", ROLE),
            ("DB_SSLMODE", "disable"),
            ("DATA_GO_KR_BASE_URL", &base_url),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let world = self.aws.world(&WorldSpec {
            environment: environment.into(),
            readonly_root: self.image.is_some(),
            ..WorldSpec::new(IMAGE)
        })?;
        let subnets = quoted(&world.subnets);
        let groups = quoted(&world.security_groups);
        let config = format!(
            r#"account = "{}"
region = "{}"

[job.{JOB}]
cluster = "{}"
family = "{}"
container = "{}"
ingest = {{ source = "library", deactivate_stale = true }}
subnets = [{subnets}]
security_groups = [{groups}]
assign_public_ip = true

[job.{JOB}.schedule]
cron = "0 4 1 * ? *"
timezone = "Asia/Seoul"
group = "{JOB}"

[[job.{JOB}.secret]]
env = "DATA_GO_KR_SERVICE_KEY"
parameter = "/geuneul/datago_service_key"
from = "env:DATA_GO_KR_SERVICE_KEY"
"#,
            world.account, world.region, world.cluster, world.family, world.container,
        );
        fs::write(self.folder.path().join("deploy.toml"), config).context("write deploy.toml")
    }

    /// Types `deploy …` and expects it to end with this code.
    pub fn deploy(&mut self, arguments: &[&str], expected: i32) -> Result<()> {
        interrupt::check()?;
        let shown = format!("deploy {}", arguments.join(" "));
        let mut command = Command::new(self.programs.deploy());
        command.args(arguments).current_dir(self.folder.path()).env_clear().envs(self.shell());
        self.transcript.print("\n");
        let status = self.transcript.run(&shown, &mut command)?;
        interrupt::check()?;
        if status.code() != Some(0) {
            self.transcript.print(&format!("[{status}]\n"));
        }
        ensure!(status.code() == Some(expected), "`{shown}` ended with {status}, expected exit code {expected}");
        Ok(())
    }

    /// Where the job connects to, as the job.
    pub fn job_url(&self) -> String {
        self.database.url_as(ROLE)
    }

    /// The environment of the operator's shell.
    fn shell(&self) -> Vec<(String, String)> {
        let own = |name: &str| std::env::var(name).ok().map(|value| (name.to_owned(), value));
        let mut shell = self.aws.env();
        shell.extend(["PATH", "TERM", "NO_COLOR"].into_iter().filter_map(own));
        shell.push(("HOME".into(), self.folder.path().display().to_string()));
        shell.push(("DATA_GO_KR_SERVICE_KEY".into(), self.upstream.key().into()));
        shell
    }

    /// The narrator.
    pub fn say(&mut self, text: &str) {
        self.transcript.narrate(text);
    }

    /// A line about what happened behind the scenes.
    pub fn note(&mut self, text: &str) {
        self.transcript.print(&format!("  {text}\n"));
    }

    /// `cat`.
    pub fn show_file(&mut self, name: &str) -> Result<()> {
        let text = fs::read_to_string(self.folder.path().join(name))?;
        self.transcript.print(&format!("\n$ cat {name}\n{text}"));
        Ok(())
    }

    /// ENABLED or DISABLED, as the local AWS has it.
    pub fn schedule_state(&self) -> Result<String> {
        let state: Value = serde_json::from_str(&self.aws.state()?)?;
        let schedules = state["schedules"].as_object().context("the local AWS has no schedules")?;
        let ours =
            schedules.values().find(|schedule| schedule["Name"] == JOB).context("the schedule does not exist")?;
        Ok(ours["State"].as_str().unwrap_or("?").to_owned())
    }

    /// Moves the clock to the schedule's next fire time and waits until its task has ended.
    pub fn let_it_fire(&mut self) -> Result<()> {
        interrupt::check()?;
        let fired = self.aws.advance_to_next_fire(&format!("{JOB}/{JOB}"))?;
        let [Invocation { scheduled_time, delivered: true, tasks, .. }] = &fired[..] else {
            bail!("the schedule did not fire as it should: {fired:?}");
        };
        self.note(&format!("fired for {scheduled_time}"));
        for task in tasks {
            self.aws.wait_for_task(task)?;
        }
        interrupt::check()
    }

    /// The key in each form that it can take: as it is, percent-encoded, inside JSON, in base64-free pieces long enough to matter.
    pub fn key_forms(&self) -> Vec<String> {
        let key = self.upstream.key();
        vec![key.to_owned(), self.upstream.encoded_key(), key.replace('/', "\\/"), key[..12].to_owned()]
    }

    /// What was printed, logged and stored, except the parameter store's values.
    pub fn everything_but_the_parameter_store(&self) -> Result<String> {
        let mut everything = self.transcript.printed().to_owned();
        everything.push_str(&self.aws.state()?);
        everything.push_str(&ledger::dump(self)?);
        append_files(self.folder.path(), &mut everything)?;
        Ok(everything)
    }

    /// How to go on by hand, for `--keep`.
    pub fn print_how_to_drive_it(&mut self) {
        let mut lines = vec![format!("cd {}", self.folder.path().display())];
        let shell =
            self.shell().into_iter().filter(|(name, _)| !["PATH", "TERM", "HOME", "NO_COLOR"].contains(&name.as_str()));
        lines.extend(shell.map(|(name, value)| format!("export {name}='{value}'")));
        lines.push(format!("export AWS_DEFAULT_REGION='{}'", self.aws.region()));
        lines.push(format!(
            "export LOCAL_AWS_ADMIN='{}'  # the stage manager's door: rehearsal/local-aws/README.md",
            self.aws.admin_url()
        ));
        lines.push("# Scheduler's clock is ahead of yours: the story has moved it to fire times to come.".to_owned());
        let programs = self.programs.deploy().parent().unwrap_or(Path::new(".")).display();
        // `psql` stands beside the server that the toolbox found, be it the system's or the bundled one.
        let psql = toolbox().and_then(|tools| tools.postgres_bin().map(Path::display));
        let psql = psql.map_or(String::new(), |folder| format!("{folder}:"));
        lines.push(format!("export PATH=\"{programs}:{psql}$PATH\""));
        lines.push(format!("export DATABASE_URL='{}'", self.database.url()));
        lines.push("deploy status".to_owned());
        let columns = "started_at, trigger, status, fetched, inserted, updated, deactivated";
        lines.push(format!("psql \"$DATABASE_URL\" -c 'SELECT {columns} FROM ingest.ingest_runs ORDER BY id'"));
        let end = if std::io::stdin().is_terminal() { "Enter or Ctrl-C" } else { "SIGINT or SIGTERM" };
        // Printed past the transcript: these lines hold the stand-in's key, which the search must not find in what the programs print.
        println!("\n# The stage stays up. In another shell:\n{}\n# {end} ends it.", lines.join("\n"));
    }
}

impl RealImage {
    fn build() -> Result<RealImage> {
        let missing = podman::missing();
        for (what, hint) in &missing {
            eprintln!("missing: {what}\nhint: {hint}");
        }
        ensure!(missing.is_empty(), "--engine podman needs what is missing above");
        eprintln!("rehearsal: building the image from the Dockerfile (minutes at first)");
        let podman = Podman::open()?;
        let facts = podman.build(IMAGE)?;
        Ok(RealImage { podman, facts })
    }
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}

fn append_files(folder: &Path, text: &mut String) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => append_files(&entry.path(), text)?,
            kind if kind.is_file() => text.push_str(&String::from_utf8_lossy(&fs::read(entry.path())?)),
            _ => {}
        }
    }
    Ok(())
}
