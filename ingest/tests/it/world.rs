//! One database, one upstream, and the program between them.

use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use geuneul::{JobCommand, Outcome, RunReport, SourceName};
use ingest::config::Settings;
use ingest::upstream::Pace;
use rehearsal::postgres::{self, Database};
use rehearsal::snapshot::Rows;
use rehearsal::upstream::Upstream;

/// The key of the source's advisory lock, as `--help` prints it.
pub const LOCK_KEY: i64 = -15_413_951_085_305_899;

/// The key under which migrations are applied.
pub const MIGRATIONS_KEY: i64 = -2_279_132_941_120_767_131;

/// The monthly command.
pub const MONTHLY: [&str; 3] =
    ["--ingest.source=library", "--ingest.deactivate-stale=true", "--ingest.exit-after=true"];

/// How a run in this process waits. Nothing here has to be quick: a busy machine changes no outcome.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For one request.
    pub request: Duration,
    /// Between two requests for a page, at first.
    pub delay: Duration,
}

/// For one page.
const PAGE: Duration = Duration::from_secs(45);

/// Asks again at once, for as long as it takes.
pub const PATIENT: Patience = Patience { request: Duration::from_secs(30), delay: Duration::from_millis(1) };

/// Asks once: the time for a page is over before it would ask again.
pub const IMPATIENT: Patience = Patience { request: Duration::from_secs(30), delay: PAGE };

/// A stage for one test.
pub struct World {
    pub upstream: Upstream,
    pub database: Database,
    environment: Vec<(String, String)>,
}

/// A process that is over.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl World {
    pub fn new(rows: Rows) -> World {
        let upstream = Upstream::start(rows).unwrap();
        let database = postgres::shared().database();
        let environment = [
            ("DATABASE_URL", database.url()),
            ("DATA_GO_KR_SERVICE_KEY", upstream.key().to_owned()),
            ("DATA_GO_KR_BASE_URL", upstream.base_url()),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value)).to_vec();
        World { upstream, database, environment }
    }

    /// Speaks to PostgreSQL on another port from now on.
    pub fn through(&mut self, port: u16) {
        let (direct, other) = (format!(":{}/", self.database.port()), format!(":{port}/"));
        let url = self.database.url().replace(&direct, &other);
        self.set("DATABASE_URL", &url);
    }

    /// Sets a variable for every process from now on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// The same database with another upstream.
    pub fn with_upstream(&self, rows: Rows) -> World {
        let mut world = World {
            upstream: Upstream::start(rows).unwrap(),
            database: self.database.clone(),
            environment: self.environment.clone(),
        };
        let base = world.upstream.base_url();
        world.set("DATA_GO_KR_BASE_URL", &base);
        world
    }

    /// The same database and upstream, for another role.
    pub fn as_role(&self, role: &str) -> Command {
        let mut program = self.program();
        program.env("DATABASE_URL", self.database.url_as(role));
        program
    }

    /// The program with nothing but our own environment.
    pub fn program(&self) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_ingest"));
        program.env_clear().envs(self.environment.iter().cloned()).stdin(Stdio::null());
        program
    }

    /// Runs it to its end.
    pub fn invoke(&self, args: &[&str]) -> Finished {
        self.program().args(args).output().unwrap().into()
    }

    /// Runs the monthly command.
    pub fn month(&self) -> Finished {
        self.invoke(&MONTHLY)
    }

    /// Runs the monthly command, which must succeed.
    pub fn mirror(&self) -> RunReport {
        let report = self.month().expect(Outcome::Succeeded);
        assert!(report.adds_up(), "{report:?}");
        report
    }

    /// Runs the monthly command with a further flag.
    pub fn month_with(&self, flag: &str) -> Finished {
        self.invoke(&[&MONTHLY[..], &[flag]].concat())
    }

    /// Starts the monthly command.
    pub fn start(&self) -> Running {
        let child = self.program().args(MONTHLY).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running(child)
    }

    /// A run in this process.
    pub fn run_here(&self, patience: Patience) -> RunReport {
        self.run_here_for(patience, Duration::from_secs(150))
    }

    /// The same, and all of it within `limit`.
    pub fn run_here_for(&self, patience: Patience, limit: Duration) -> RunReport {
        let pace = Pace {
            request: patience.request,
            page: PAGE,
            fetch: Duration::from_secs(120),
            run: limit,
            first_delay: patience.delay,
            longest_delay: patience.delay * 20,
        };
        let settings = Settings::read(&|name| {
            self.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let command = JobCommand::monthly(SourceName::Library);
        let report = runtime.block_on(ingest::run::run(&command, settings, pace, std::future::pending())).report;
        assert!(report.adds_up(), "{report:?}");
        report
    }

    /// One text a row.
    pub fn texts(&self, sql: &str) -> Vec<String> {
        self.database.texts(sql).into_iter().map(Option::unwrap_or_default).collect()
    }

    /// The statuses in the ledger, oldest first.
    pub fn ledger(&self) -> Vec<String> {
        self.texts("SELECT status FROM ingest.ingest_runs ORDER BY id")
    }

    /// How many places there are in all.
    pub fn places(&self) -> i64 {
        self.database.number("SELECT count(*) FROM ingest.places")
    }

    /// Every version of every row: equal before and after when nothing was written, or even locked.
    pub fn row_versions(&self) -> Vec<String> {
        self.texts("SELECT concat_ws(' ', id, ctid, xmin, xmax) FROM ingest.places ORDER BY id")
    }

    /// Waits until the source's lock can be had, and lets it go again. The server itself wakes us.
    pub fn wait_for_free_lock(&self) {
        let sql = format!(
            "SET lock_timeout = '20s'; SELECT pg_advisory_lock({LOCK_KEY}); SELECT pg_advisory_unlock({LOCK_KEY})"
        );
        self.database.execute(&sql);
    }

    /// Looks until a condition in the database is met.
    pub fn wait_until(&self, condition: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.database.number(&format!("SELECT count(*) WHERE {condition}")) == 0 {
            assert!(Instant::now() < deadline, "never: {condition}");
        }
    }

    /// No session holds the source's lock, or the lock of migrations. Somebody else's lock is nobody's concern.
    pub fn lock_is_free(&self) -> bool {
        self.database.number(&format!(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND (classid::int8 << 32 | objid::int8) IN ({LOCK_KEY}, {MIGRATIONS_KEY})"
        )) == 0
    }
}

/// Whatever a test did, no lock is left behind; the server needs a moment to notice a killed client.
impl Drop for World {
    fn drop(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !std::thread::panicking() && !self.lock_is_free() {
            assert!(Instant::now() < deadline, "an advisory lock is left");
        }
    }
}

/// A process that is still at it.
pub struct Running(pub Child);

impl Running {
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub fn end(self) -> Finished {
        self.0.wait_with_output().unwrap().into()
    }
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Finished { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Finished {
    /// The report, which must be all of stdout, but for a preview before it, and agree with the exit code.
    pub fn report(&self) -> RunReport {
        let lines: Vec<&str> = self.stdout.lines().collect();
        let [preview @ .., line] = &lines[..] else { panic!("stdout is empty: {self:?}") };
        let report = RunReport::from_line(line).expect("a report").expect("a readable report");
        assert_eq!(self.code, Some(report.outcome.exit_code().into()), "{self:?}");
        assert_eq!(preview.is_empty(), report.outcome != Outcome::DryRun, "{self:?}");
        report
    }

    /// The report of a run that must have ended so.
    pub fn expect(&self, outcome: Outcome) -> RunReport {
        let report = self.report();
        if report.outcome != outcome {
            let _ = std::io::stderr().write_all(self.stderr.as_bytes());
            panic!("{outcome} was expected: {report:?}");
        }
        report
    }
}
