//! A local AWS with the world that was there before, a `deploy.toml`, and a container that does what the test says.

use std::cell::RefCell;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output};

use deploy::model::Schedule;
use rehearsal::local_aws::{Image, Images, Invocation, LocalAws, World, WorldSpec};
use rehearsal::{RunDir, toolbox};
use serde_json::{Value, json};

pub use crate::sample::report;

/// The job, its schedule and its schedule group.
pub const JOB: &str = "library-sync";
const IMAGE: &str = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/job:1";
/// The secret's value; nothing that is printed may contain it.
pub const SECRET: &str = "canary+value/of=the=secret==";

/// One test's own world.
pub struct Scene {
    /// The local AWS.
    pub aws: LocalAws,
    /// What was there before.
    pub world: World,
    folder: RunDir,
    config: RefCell<String>,
}

impl Scene {
    /// The world before `deploy`, with a container that reports rows and ends with 0.
    pub fn set() -> Scene {
        Scene::set_on(LocalAws::start)
    }

    /// The same, where signatures are verified and a caller who is not root has only what its policies say.
    pub fn enforcing() -> Scene {
        Scene::set_on(LocalAws::start_enforcing)
    }

    fn set_on(start: impl FnOnce(Images) -> anyhow::Result<LocalAws>) -> Scene {
        let folder = toolbox().and_then(|tools| tools.new_run()).expect("a folder");
        let script = folder.path().join("job.sh");
        let shell = Image { entrypoint: vec!["/bin/sh".into(), script.display().to_string()], ..Image::default() };
        let aws = start([(IMAGE.to_owned(), shell)].into()).expect("the local AWS");
        let world = aws.world(&WorldSpec::new(IMAGE)).expect("the world");
        let subnets = world.subnets.iter().map(|id| format!("{id:?}")).collect::<Vec<_>>().join(", ");
        let config = format!(
            r#"account = "{}"
region = "{}"

[job.{JOB}]
cluster = "{}"
family = "{}"
container = "{}"
command = ["--once", "--all"]
subnets = [{subnets}]
assign_public_ip = true

[job.{JOB}.schedule]
cron = "0 4 1 * ? *"
timezone = "Asia/Seoul"

[[job.{JOB}.secret]]
env = "API_KEY"
parameter = "/geuneul/api_key"
from = "env:API_KEY"
"#,
            world.account, world.region, world.cluster, world.family, world.container
        );
        let scene = Scene { aws, world, folder, config: RefCell::new(config) };
        scene.edit_config(|_| {});
        scene.next_run(&[&report().to_line()], 0);
        scene
    }

    /// The same, after `deploy apply --disabled`.
    pub fn applied() -> Scene {
        let scene = Scene::set();
        scene.expect(&["apply", "--disabled", "--yes"], 0);
        scene
    }

    /// The folder that `deploy` runs in.
    pub fn path(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Changes `deploy.toml`.
    pub fn edit_config(&self, edit: impl FnOnce(&mut String)) {
        let mut config = self.config.borrow_mut();
        edit(&mut config);
        fs::write(self.folder.path().join("deploy.toml"), config.as_str()).expect("deploy.toml is written");
    }

    /// What the next container prints, line by line, and the code that it ends with. The time of [`report`] becomes the time at
    /// which it is printed: a report of another time than its task's does not count.
    pub fn next_run(&self, lines: &[&str], code: i32) {
        let now = r#"'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'"#;
        let quoted = |line: &&str| {
            let line = line.replace('\'', r"'\''").replace(&report().started_at, now);
            // As `ingest` does: what it was told.
            let line = line.replace("\"occurrence\":null", r#""occurrence":"'"$INGEST_OCCURRENCE"'""#);
            format!("printf '%s\\n' '{line}'\n")
        };
        let lines: String = lines.iter().map(quoted).collect();
        self.next_script(&format!("{lines}exit {code}\n"));
    }

    /// What the next container does, in shell.
    pub fn next_script(&self, script: &str) {
        fs::write(self.folder.path().join("job.sh"), script).expect("job.sh is written");
    }

    /// `deploy ...`, as an operator's shell would run it.
    pub fn deploy(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deploy"));
        command.args(arguments).current_dir(self.folder.path()).env_clear().envs(self.aws.env());
        command.env("HOME", self.folder.path()).env("API_KEY", SECRET).env("RUST_BACKTRACE", "0");
        command
    }

    /// Runs `deploy ...` and expects it to end with a code.
    pub fn expect(&self, arguments: &[&str], code: i32) -> Output {
        let output = self.deploy(arguments).output().expect("deploy runs");
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert_eq!(output.status.code(), Some(code), "deploy {arguments:?}\n{out}\n{err}");
        assert!(!out.contains(SECRET) && !err.contains(SECRET), "the secret was printed");
        output
    }

    /// Runs `deploy ...`; everything that a person and a script see of it.
    pub fn transcript(&self, arguments: &[&str]) -> String {
        self.transcript_of(self.deploy(arguments))
    }

    /// The same of a command that the test has changed.
    pub fn transcript_of(&self, mut command: Command) -> String {
        let output = command.output().expect("deploy runs");
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(!out.contains(SECRET) && !err.contains(SECRET), "the secret was printed");
        let code = output.status.code().map_or_else(|| "none".to_owned(), |code| code.to_string());
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        format!("$ deploy {}\nexit code: {code}\n--- stderr\n{err}--- stdout\n{out}", arguments.join(" "))
    }

    /// Runs `deploy ...`, expects a refusal that changes nothing, and returns its first line.
    pub fn refusal(&self, arguments: &[&str]) -> String {
        let before = self.schedule();
        self.aws.forget_calls().expect("the calls are forgotten");
        let output = self.expect(arguments, 3);
        assert_eq!(self.schedule(), before, "a refusal changed the schedule");
        let reads = ["Get", "Describe", "List"];
        let calls = self.aws.calls().expect("the calls");
        let writes = calls.iter().filter(|call| !reads.iter().any(|read| call.action.starts_with(read)));
        assert_eq!(writes.map(|call| &call.action).collect::<Vec<_>>(), Vec::<&String>::new());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            text.lines().any(|line| line.starts_with("hint: ") && line.contains("deploy ")),
            "no next command:\n{text}"
        );
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// The schedule as it is stored.
    pub fn schedule(&self) -> Value {
        self.stored("schedules").into_iter().find(|one| one["Name"] == JOB).expect("the schedule exists")
    }

    /// The text of the receipt.
    pub fn receipt(&self) -> String {
        let found = self.call("ssm", "GetParameter", &json!({ "Name": self.receipt_parameter() }));
        found["Parameter"]["Value"].as_str().expect("the receipt exists").to_owned()
    }

    /// The name of the parameter that holds the receipt.
    pub fn receipt_parameter(&self) -> String {
        format!("/geuneul-deploy/{JOB}/verified-run")
    }

    /// Moves the clock to the schedule's next fire time and waits for the task.
    pub fn fire(&self) {
        let fired = self.aws.advance_to_next_fire(&format!("{JOB}/{JOB}")).expect("the clock moves");
        let [Invocation { delivered: true, tasks, .. }] = &fired[..] else { panic!("{fired:?}") };
        self.aws.wait_for_task(&tasks[0]).expect("the task stops");
    }

    /// One call of ECS, SSM, SQS, KMS or CloudWatch Logs, as anybody beside `deploy` could make it.
    pub fn call(&self, service: &str, action: &str, body: &Value) -> Value {
        let target = match service {
            "ecs" => "AmazonEC2ContainerServiceV20141113",
            "logs" => "Logs_20140328",
            "kms" => "TrentService",
            "sqs" => "AmazonSQS",
            _ => "AmazonSSM",
        };
        let headers = format!("X-Amz-Target: {target}.{action}\r\nContent-Type: application/x-amz-json-1.1");
        let answer = self.send(service, "POST /", &headers, &body.to_string());
        serde_json::from_str(if answer.is_empty() { "null" } else { &answer }).expect("JSON")
    }

    /// How the names of the streams begin that the family's newest revision writes to.
    pub fn stream_prefix(&self) -> String {
        let described = self.call("ecs", "DescribeTaskDefinition", &json!({ "taskDefinition": self.world.family }));
        let container = &described["taskDefinition"]["containerDefinitions"][0];
        container["logConfiguration"]["options"]["awslogs-stream-prefix"].as_str().expect("a prefix").to_owned()
    }

    /// Gives a role an inline policy, as anybody beside `deploy` could.
    pub fn put_role_policy(&self, role: &str, policy: &str, statement: &Value) {
        self.iam("PutRolePolicy", &format!("RoleName={role}&PolicyName={policy}"), statement);
    }

    /// Attaches a managed policy to a role, as anybody beside `deploy` could.
    pub fn attach_policy(&self, role: &str, policy: &str) {
        let body = format!("Action=AttachRolePolicy&Version=2010-05-08&RoleName={role}&PolicyArn={policy}");
        self.send("iam", "POST /", "Content-Type: application/x-www-form-urlencoded", &body);
    }

    /// Lets ECS assume a role, and nobody else.
    pub fn trust_ecs(&self, role: &str) {
        let principal = json!({ "Service": "ecs-tasks.amazonaws.com" });
        let statement = json!({ "Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole" });
        self.put_trust(role, &statement);
    }

    /// Replaces who may assume a role.
    pub fn put_trust(&self, role: &str, statement: &Value) {
        self.iam("UpdateAssumeRolePolicy", &format!("RoleName={role}"), statement);
    }

    /// Writes a policy document to IAM, as anybody beside `deploy` could.
    pub fn iam(&self, action: &str, parameters: &str, statement: &Value) {
        let document = json!({ "Version": "2012-10-17", "Statement": [statement] });
        let document: String = document.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
        let body = format!("Action={action}&Version=2010-05-08&{parameters}&PolicyDocument={document}");
        self.send("iam", "POST /", "Content-Type: application/x-www-form-urlencoded", &body);
    }

    /// Replaces the schedule, as anybody beside `deploy` could.
    pub fn put_schedule(&self, schedule: &Value) {
        let mut schedule = schedule.clone();
        for read_only in Schedule::READ_ONLY.iter().chain(&["Name"]) {
            schedule.as_object_mut().expect("an object").remove(*read_only);
        }
        let schedule = schedule.to_string();
        self.send("scheduler", &format!("PUT /schedules/{JOB}"), "Content-Type: application/json", &schedule);
    }

    /// Replaces the text of the receipt.
    pub fn put_receipt(&self, text: &str) {
        let parameter = json!({ "Name": self.receipt_parameter(), "Value": text, "Type": "String", "Overwrite": true });
        self.call("ssm", "PutParameter", &parameter);
    }

    fn send(&self, service: &str, line: &str, headers: &str, body: &str) -> String {
        let address = self.aws.endpoint().trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("the local AWS is there");
        let scope = format!("Credential=test/20260101/{}/{service}/aws4_request", self.aws.region());
        let request = format!(
            "{line} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\nAuthorization: AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, \
             Signature=0\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("the request is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the answer is read");
        let (head, content) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
        assert!(head.lines().next().is_some_and(|status| status.contains(" 200 ")), "{answer}");
        content.to_owned()
    }

    fn stored(&self, table: &str) -> Vec<Value> {
        let state: Value = serde_json::from_str(&self.aws.state().expect("the state")).expect("JSON");
        state[table].as_object().map(|table| table.values().cloned().collect()).unwrap_or_default()
    }

    /// What changes from run to run, for snapshots.
    pub fn filters() -> Vec<(&'static str, &'static str)> {
        vec![
            (r"\b[0-9a-f]{32}\b", "[task]"),
            (r"\b[0-9a-f]{12}-\[task\]", "[token]"),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "[time]"),
            (r"\d{4}-\d\d-\d\d \d\d:\d\d", "[time]"),
            (r"\d\d:\d\d:\d\d\.\d{3}", "[clock]"),
            (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \[time\]", "[day] [time]"),
            (r"\b\d+s old", "[age] old"),
            (r"subnet-[0-9a-z]+", "[subnet]"),
            (r"sha256:[0-9a-f]{64}", "[digest]"),
            (r":key/[0-9a-f-]{36}", ":key/[key]"),
            (r"http://127\.0\.0\.1:\d+", "[endpoint]"),
            (r"(?m)^task (PENDING|DEPROVISIONING|RUNNING|PROVISIONING)\n", ""),
            (r"still (PENDING|PROVISIONING) after", "still RUNNING after"),
            // Said by whoever is slow to end.
            (r"(?m)^note: interrupted; what was begun is finished first.*\n", ""),
        ]
    }
}

/// Everything that a person and a script see of one `deploy ...`, as a snapshot.
macro_rules! snapshot {
    ($scene:expr, [$($argument:expr),*]) => {
        $crate::scene::snapshot!($scene, $scene.deploy(&[$($argument),*]))
    };
    ($scene:expr, $command:expr) => {
        insta::with_settings!({ filters => $crate::scene::Scene::filters(), omit_expression => true }, {
            insta::assert_snapshot!($scene.transcript_of($command));
        })
    };
}
pub(crate) use snapshot;
