//! What the image promises besides the story: small, not root, nothing written, gone when it is told to go.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::proofs::Proofs;
use super::scene::{IMAGE, RealImage, Scene};

/// The most that the image may have.
const LARGEST: u64 = 20 << 20;
/// How long a SIGTERM may take. Fargate kills after 30 s.
const SOON: Duration = Duration::from_secs(2);

/// Checks them with containers of their own; without an image there is nothing to check.
pub fn holds_what_it_promises(scene: &mut Scene, proofs: &mut Proofs) -> Result<()> {
    let Some(image) = &scene.image else { return Ok(()) };
    let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    proofs.holds("the image is 20 MiB or less", image.facts.size <= LARGEST, &mebibytes(image.facts.size));
    proofs.add("every task ran on a read-only file system", "--read-only, no tmpfs");

    let waiting = Waiting::start(scene, image)?;
    proofs.check("it does not run as root", waiting.user()?, image.facts.user.clone());
    let (code, took) = waiting.stop()?;
    let milliseconds = took.as_millis();
    proofs.holds("SIGTERM ends it in under 2 s", took < SOON, &format!("{milliseconds} ms after `podman stop`"));
    proofs.check("and it says that it was interrupted", code, "143");
    Ok(())
}

/// A run in the middle of its work: it holds the lock and waits for a page that never comes.
struct Waiting<'a> {
    image: &'a RealImage,
    container: String,
    upstream: TcpListener,
    /// The request, kept unanswered.
    request: Option<TcpStream>,
}

impl Waiting<'_> {
    fn start<'a>(scene: &Scene, image: &'a RealImage) -> Result<Waiting<'a>> {
        let upstream = TcpListener::bind("127.0.0.1:0")?;
        let base_url = format!("DATA_GO_KR_BASE_URL=http://{}", upstream.local_addr()?);
        let mut run = image.podman.command(&["run", "--detach", "--network=host", "--read-only"]);
        run.args(["--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges"]);
        run.args(["--env", &base_url, "--env=DATABASE_URL", "--env=DATA_GO_KR_SERVICE_KEY", IMAGE]);
        run.arg("--ingest.source=library");
        run.env("DATABASE_URL", scene.job_url()).env("DATA_GO_KR_SERVICE_KEY", scene.upstream.key());
        let output = run.output().context("run podman")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the container could not be started: {}", said.trim());
        let container = String::from_utf8(output.stdout)?.trim().to_owned();
        let mut waiting = Waiting { image, container, upstream, request: None };
        waiting.wait_for_a_request()?;
        Ok(waiting)
    }

    /// It asks for its first page: it has the lock by then.
    fn wait_for_a_request(&mut self) -> Result<()> {
        self.upstream.set_nonblocking(true)?;
        let start = Instant::now();
        while self.request.is_none() {
            self.request = self.upstream.accept().ok().map(|(request, _)| request);
            let said = || self.image.podman.output(&["logs", &self.container]).unwrap_or_default();
            ensure!(start.elapsed() < Duration::from_secs(30), "the container asks for nothing:\n{}", said());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// `65532:65532`, as the kernel has it.
    fn user(&self) -> Result<String> {
        let pid = self.image.podman.output(&["inspect", "--format={{.State.Pid}}", &self.container])?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let id = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field));
            line.and_then(|line| line.split_whitespace().next()).unwrap_or("?").to_owned()
        };
        Ok(format!("{}:{}", id("Uid:"), id("Gid:")))
    }

    /// Exit code, and how long `podman stop` took; it would kill after ten seconds.
    fn stop(&self) -> Result<(String, Duration)> {
        let start = Instant::now();
        self.image.podman.output(&["stop", "--time=10", &self.container])?;
        let took = start.elapsed();
        Ok((self.image.podman.output(&["inspect", "--format={{.State.ExitCode}}", &self.container])?, took))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Best effort: a container that is gone already needs nothing.
        let _ = self.image.podman.output(&["rm", "--force", "--time=0", &self.container]);
    }
}
