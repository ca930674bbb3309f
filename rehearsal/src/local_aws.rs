//! A local AWS that really runs tasks and fires schedules: starts the Python program in `local-aws/` and ends it with us.
//!
//! The program lives as long as its standard input is open; a guardian of its own ends its container processes, however it dies.
//! The stage manager's door ([`LocalAws::advance_to_next_fire`], [`LocalAws::fault`], ...) is blocking HTTP over loopback, so
//! that it works inside and outside of a runtime.

mod admin;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::podman::Podman;
use crate::{RunDir, toolbox};

pub use admin::{Call, Failure, Fate, Fault, Invocation, User};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/local-aws/main.py");
/// What the program may inherit; in particular no AWS credentials or endpoints of the person who starts it.
const INHERITED: [&str; 5] = ["PATH", "HOME", "TMPDIR", "DOCKER_HOST", "XDG_RUNTIME_DIR"];

/// What a container is.
#[derive(Debug)]
enum Engine<'a> {
    /// A process of this machine.
    Process,
    /// A container of this podman, made from an image that it holds.
    Podman(&'a Podman),
}

/// What an image name stands for: a program on this machine.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Image {
    /// The ENTRYPOINT: program and first arguments.
    pub entrypoint: Vec<String>,
    /// The CMD, used when neither task definition nor override gives a command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cmd: Vec<String>,
    /// The ENV.
    pub env: BTreeMap<String, String>,
}

impl Image {
    /// An image whose entry point is this program.
    pub fn new(program: impl AsRef<std::path::Path>) -> Image {
        Image { entrypoint: vec![program.as_ref().display().to_string()], ..Image::default() }
    }
}

/// Image names (with tag) and what they stand for.
pub type Images = BTreeMap<String, Image>;

/// What the pre-existing world shall look like.
#[derive(Debug, Clone, Serialize)]
pub struct WorldSpec {
    /// The image of the family's container.
    pub image: String,
    /// The environment of the family's container: `DB_HOST` and so on, but no secret.
    pub environment: BTreeMap<String, String>,
    /// The container's own command: what the long-running service of the family does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The command of a second, non-essential container `sidecar` of the same image, if there shall be one.
    pub sidecar: Option<Vec<String>>,
    /// The cluster's name.
    pub cluster: String,
    /// The family's name; the log group is `/ecs/FAMILY`, the roles are `FAMILY-execution` and `FAMILY-task`.
    pub family: String,
    /// The name of the family's container.
    pub container: String,
    /// The container may write nowhere. A process of this machine can, so that it shows with [`LocalAws::start_podman`] only.
    pub readonly_root: bool,
}

impl WorldSpec {
    /// Cluster and family `geuneul`, container `app`, no sidecar, an empty environment, a file system that can be written to.
    pub fn new(image: impl Into<String>) -> WorldSpec {
        WorldSpec {
            image: image.into(),
            environment: BTreeMap::new(),
            command: None,
            sidecar: None,
            cluster: "geuneul".into(),
            family: "geuneul".into(),
            container: "app".into(),
            readonly_root: false,
        }
    }
}

/// The world that was there before `deploy`: a cluster, a log group, roles, a network, and a family without the secret.
#[derive(Debug, Clone, Deserialize)]
pub struct World {
    /// The account's id.
    pub account: String,
    /// The region.
    pub region: String,
    /// The cluster's name.
    pub cluster: String,
    /// The cluster's ARN.
    pub cluster_arn: String,
    /// The family's name.
    pub family: String,
    /// The name of the family's container.
    pub container: String,
    /// The ARN of the registered revision.
    pub task_definition: String,
    /// The log group of the family.
    pub log_group: String,
    /// The ARN of the execution role: trusts ECS, may write logs, may not read parameters.
    pub execution_role: String,
    /// The ARN of the task role.
    pub task_role: String,
    /// The subnets of the default VPC.
    pub subnets: Vec<String>,
    /// The security groups of the default VPC.
    pub security_groups: Vec<String>,
}

/// A running local AWS. Dropping it ends it, its tasks, and everything it stored.
#[derive(Debug)]
pub struct LocalAws {
    ready: Ready,
    process: Child,
    lifeline: Option<ChildStdin>,
    run: RunDir,
}

/// The program's first and only line on stdout.
#[derive(Debug, Deserialize)]
struct Ready {
    endpoint: String,
    admin: String,
    account: String,
    region: String,
}

impl LocalAws {
    /// Starts it with these images and waits until it answers. Signatures and policies of callers do not count.
    pub fn start(images: Images) -> Result<LocalAws> {
        LocalAws::start_with(images, false, Engine::Process)
    }

    /// The same, where tasks are containers of the images that this podman holds.
    pub fn start_podman(podman: &Podman) -> Result<LocalAws> {
        LocalAws::start_with(Images::new(), false, Engine::Podman(podman))
    }

    /// The same, where signatures are verified and a [`LocalAws::user`] may do only what its policy says.
    pub fn start_enforcing(images: Images) -> Result<LocalAws> {
        LocalAws::start_with(images, true, Engine::Process)
    }

    fn start_with(images: Images, enforcing: bool, engine: Engine<'_>) -> Result<LocalAws> {
        let tools = toolbox()?;
        let run = tools.new_run()?;
        let table = run.path().join("images.json");
        fs::write(&table, serde_json::to_vec(&images)?)?;
        let log = run.path().join("local-aws.log");
        let mut program = Command::new(tools.python()?);
        program.env_clear().envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        if let Engine::Podman(podman) = engine {
            program.envs(podman.env());
        }
        let mut process = program
            .arg(PROGRAM)
            .arg("--images")
            .arg(&table)
            .arg("--folder")
            .arg(run.path())
            .arg("--engine")
            .arg(match engine {
                Engine::Process => "process",
                Engine::Podman(_) => "podman",
            })
            .env("LANG", "C.UTF-8")
            .env("AUTH", enforcing.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .process_group(0) // Ctrl-C is for us; it ends when we do
            .spawn()
            .context("start the local AWS")?;
        let lifeline = process.stdin.take();
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("stdout is piped")).read_line(&mut line)?;
        let Ok(ready) = serde_json::from_str(&line) else {
            process.kill()?;
            process.wait()?;
            bail!("the local AWS did not start:\n{}", fs::read_to_string(&log)?.trim());
        };
        Ok(LocalAws { ready, process, lifeline, run })
    }

    /// The URL of every service; also what `AWS_ENDPOINT_URL` takes.
    pub fn endpoint(&self) -> &str {
        &self.ready.endpoint
    }

    /// The URL of the stage manager's door; `local-aws/README.md` lists its requests.
    pub fn admin_url(&self) -> &str {
        &self.ready.admin
    }

    /// The account that `test` credentials belong to. Credentials whose access key is another twelve-digit number belong to
    /// that account.
    pub fn account(&self) -> &str {
        &self.ready.account
    }

    /// The region of [`LocalAws::env`].
    pub fn region(&self) -> &str {
        &self.ready.region
    }

    /// The environment that makes an SDK, the AWS CLI or `deploy` speak to it, and to nothing else.
    pub fn env(&self) -> Vec<(String, String)> {
        let values = [
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_REGION", self.region()),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ];
        values.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    /// The same for a caller who is not root.
    pub fn env_of(&self, user: &User) -> Vec<(String, String)> {
        let mut env = self.env();
        for (name, value) in &mut env {
            match name.as_str() {
                "AWS_ACCESS_KEY_ID" => value.clone_from(&user.access_key_id),
                "AWS_SECRET_ACCESS_KEY" => value.clone_from(&user.secret_access_key),
                _ => {}
            }
        }
        env
    }

    /// What it printed on stderr so far.
    pub fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.run.path().join("local-aws.log"))?)
    }

    /// The process id of the server.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for LocalAws {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // It ends by itself now that its standard input has; a failure to wait changes nothing.
        let _ = self.process.wait();
    }
}
