//! The stage manager's door: what was called, what shall fail, what time it is.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Image, LocalAws, World, WorldSpec};

/// One API call, as it was received.
#[derive(Debug, Clone, Deserialize)]
pub struct Call {
    /// `scheduler`
    pub service: String,
    /// `CreateSchedule`
    pub action: String,
    /// The request's body or form; the value of a SecureString is replaced.
    pub request: Value,
    /// The HTTP status of the answer, once there is one.
    pub status: Option<u16>,
    /// The error code of the answer, if it is an error.
    pub error: Option<String>,
    /// Its round: one more than the last round of which an answer had gone out when it came. Meaningful under [`LocalAws::slow`].
    pub round: u32,
}

/// A call that is made to fail. The SDK retries status 500 and throttling by itself: `times(3)` outlasts its default.
#[derive(Debug, Clone, Serialize)]
pub struct Fault {
    service: String,
    action: String,
    when: &'static str,
    skip: u32,
    times: u32,
    status: u16,
    code: String,
    message: String,
}

impl Fault {
    /// The next call of the action fails, and nothing is done.
    pub fn before(service: &str, action: &str) -> Fault {
        Fault {
            service: service.into(),
            action: action.into(),
            when: "before",
            skip: 0,
            times: 1,
            status: 500,
            code: "InternalServerException".into(),
            message: "the rehearsal made this call fail".into(),
        }
    }

    /// The next call of the action is carried out, and its answer is an error: the caller cannot know.
    pub fn after(service: &str, action: &str) -> Fault {
        Fault { when: "after", ..Fault::before(service, action) }
    }

    /// The first `calls` matching calls are left alone.
    pub fn skip(self, calls: u32) -> Fault {
        Fault { skip: calls, ..self }
    }

    /// How many calls fail.
    pub fn times(self, calls: u32) -> Fault {
        Fault { times: calls, ..self }
    }

    /// What the answer is.
    pub fn error(self, status: u16, code: &str, message: &str) -> Fault {
        Fault { status, code: code.into(), message: message.into(), ..self }
    }

    /// The answer is what the service says to those who call too often.
    pub fn throttled(self) -> Fault {
        let status = if self.service == "scheduler" { 429 } else { 400 };
        self.error(status, "ThrottlingException", "Rate exceeded")
    }
}

/// An entry of `failures` in RunTask's answer of status 200.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Failure {
    /// What the failure is about; null for a lack of capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arn: Option<String>,
    /// `RESOURCE:MEMORY`, `Capacity is unavailable at this time...`
    pub reason: String,
    /// More.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// How a task ends that would go on by itself.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "fate", rename_all = "kebab-case")]
pub enum Fate {
    /// The kernel kills its first container for its memory: 137.
    OutOfMemory,
    /// AWS takes the Spot capacity back.
    SpotInterruption,
    /// AWS takes the host away.
    HostLost,
    /// It never starts, for this reason.
    NoStart {
        /// In ECS's words.
        reason: String,
    },
    /// The same, and ECS gives no code of what stopped it.
    Lost {
        /// In ECS's words.
        reason: String,
    },
}

/// One occurrence of a schedule that fired.
#[derive(Debug, Clone, Deserialize)]
pub struct Invocation {
    /// `group/name`
    pub schedule: String,
    /// When it was due: `2026-12-04T18:00:00Z`.
    pub scheduled_time: String,
    /// `<aws.scheduler.execution-id>`
    pub execution_id: String,
    /// The Input with the context attributes filled in.
    pub input: String,
    /// How often it was tried: more than once when it was refused and its retry policy allowed it.
    pub attempts: u32,
    /// Whether RunTask answered 200: also with `failures` and no task.
    pub delivered: bool,
    /// Whether what could not be delivered is in the schedule's dead-letter queue.
    pub dead_lettered: bool,
    /// Why it was not delivered.
    pub error: Option<String>,
    /// The ARNs of the tasks that were started.
    pub tasks: Vec<String>,
    /// RunTask's `failures`; Scheduler does not look at them.
    pub failures: Vec<Failure>,
}

/// A caller who is not root.
#[derive(Debug, Clone, Deserialize)]
pub struct User {
    /// `AWS_ACCESS_KEY_ID`
    pub access_key_id: String,
    /// `AWS_SECRET_ACCESS_KEY`
    pub secret_access_key: String,
}

impl LocalAws {
    /// A user who may do what the policy says; it counts only after [`LocalAws::start_enforcing`]. A known name keeps its key and
    /// gets the new policy.
    pub fn user(&self, name: &str, policy: &Value) -> Result<User> {
        self.ask("POST", "/users", &json!({ "name": name, "policy": policy }))
    }

    /// Makes the world that was there before `deploy`; its calls are not counted.
    pub fn world(&self, spec: &WorldSpec) -> Result<World> {
        self.ask("POST", "/world", &json!(spec))
    }

    /// Adds an image, or replaces it (its digest changes).
    pub fn image(&self, name: &str, image: &Image) -> Result<()> {
        self.tell("POST", "/images", &json!({ name: image }))
    }

    /// Every API call since the last [`LocalAws::forget_calls`], oldest first.
    pub fn calls(&self) -> Result<Vec<Call>> {
        self.member("GET", "/calls", &Value::Null, "calls")
    }

    /// How often each action was called: `{"ecs:RunTask": 1}`.
    pub fn counts(&self) -> Result<BTreeMap<String, u64>> {
        self.ask("GET", "/counts", &Value::Null)
    }

    /// Starts counting anew.
    pub fn forget_calls(&self) -> Result<()> {
        self.tell("DELETE", "/calls", &Value::Null)
    }

    /// From now on every answer is held back that long: calls that are made together are then seen to be, and rounds can be counted.
    pub fn slow(&self, by: Duration) -> Result<()> {
        self.tell("POST", "/slow", &json!({ "seconds": by.as_secs_f64() }))
    }

    /// Makes a call fail.
    pub fn fault(&self, fault: &Fault) -> Result<()> {
        self.tell("POST", "/faults", &json!(fault))
    }

    /// From now on the caller may not perform an action: `logs:DescribeLogGroups`, `iam:PassRole`, `ssm:*`.
    pub fn deny(&self, action: &str) -> Result<()> {
        self.tell("POST", "/deny", &json!({ "action": action }))
    }

    /// Takes a denial back.
    pub fn allow(&self, action: &str) -> Result<()> {
        self.tell("POST", "/allow", &json!({ "action": action }))
    }

    /// The next RunTask, of a caller or of the scheduler, answers 200 with these failures and without a task.
    pub fn fail_run_task(&self, failures: &[Failure]) -> Result<()> {
        self.tell("POST", "/run-task-failures", &json!({ "failures": failures }))
    }

    /// The next DescribeTasks calls answer MISSING for every task, as ECS may right after RunTask.
    pub fn hide_tasks(&self, calls: u32) -> Result<()> {
        self.tell("POST", "/tasks/hide", &json!({ "calls": calls }))
    }

    /// The next task ends so, once its first container has printed a line.
    pub fn next_task(&self, fate: &Fate) -> Result<()> {
        self.tell("POST", "/tasks/fate", &json!(fate))
    }

    /// From now on every `every`-th line of a log stream can be seen only from its `calls`-th GetLogEvents on.
    pub fn late_lines(&self, calls: u32, every: u32) -> Result<()> {
        self.tell("POST", "/logs/late", &json!({ "calls": calls, "every": every }))
    }

    /// The next GetLogEvents calls find no stream, as they may right after a container started.
    pub fn hide_streams(&self, calls: u32) -> Result<()> {
        self.tell("POST", "/logs/hide", &json!({ "calls": calls }))
    }

    /// No page of GetLogEvents has more lines than that.
    pub fn log_pages_of(&self, lines: u32) -> Result<()> {
        self.tell("POST", "/logs/page", &json!({ "events": lines }))
    }

    /// Takes every fault, denial, RunTask failure, fate and lateness back.
    pub fn clear_faults(&self) -> Result<()> {
        self.tell("DELETE", "/faults", &Value::Null)
    }

    /// A role that is created or changed from now on is assumable only after this many failed attempts.
    pub fn delay_iam(&self, attempts: u32) -> Result<()> {
        self.tell("POST", "/iam/delay", &json!({ "attempts": attempts }))
    }

    /// A role that is created or changed from now on is assumable only after [`LocalAws::release_iam`].
    pub fn hold_iam(&self) -> Result<()> {
        self.tell("POST", "/iam/delay", &json!({ "attempts": null }))
    }

    /// Everything in IAM is known everywhere, and nothing is delayed any more.
    pub fn release_iam(&self) -> Result<()> {
        self.tell("POST", "/iam/release", &Value::Null)
    }

    /// What the scheduler's clock shows: `2026-12-04T18:00:00Z`.
    pub fn now(&self) -> Result<String> {
        self.member("GET", "/clock", &Value::Null, "now")
    }

    /// Moves the scheduler's clock to a moment (RFC 3339) and fires what becomes due on the way.
    pub fn advance_to(&self, moment: &str) -> Result<Vec<Invocation>> {
        self.member("POST", "/clock", &json!({ "now": moment }), "invocations")
    }

    /// Moves the scheduler's clock on and fires what becomes due on the way.
    pub fn advance(&self, time: Duration) -> Result<Vec<Invocation>> {
        self.member("POST", "/clock", &json!({ "advance": time.as_secs_f64() }), "invocations")
    }

    /// Moves the scheduler's clock to the moment at which `group/name` is due next and fires whatever is due until then: nothing
    /// of this schedule while it is DISABLED.
    pub fn advance_to_next_fire(&self, schedule: &str) -> Result<Vec<Invocation>> {
        self.member("POST", "/clock", &json!({ "advance_to_next_fire": schedule }), "invocations")
    }

    /// Delivers the last occurrence of `group/name` a second time, as Scheduler may; also of a schedule that is gone by now.
    pub fn deliver_again(&self, schedule: &str) -> Result<Invocation> {
        self.ask("POST", "/deliver-again", &json!({ "schedule": schedule }))
    }

    /// Every occurrence that fired so far, oldest first.
    pub fn invocations(&self) -> Result<Vec<Invocation>> {
        self.member("GET", "/invocations", &Value::Null, "invocations")
    }

    /// Blocks until a task has stopped and its output is in the log; returns the task as DescribeTasks shows it.
    pub fn wait_for_task(&self, arn: &str) -> Result<Value> {
        self.ask("POST", "/tasks/wait", &json!({ "task": arn }))
    }

    /// Every byte stored, except the values of SecureString parameters, as JSON text to search in.
    pub fn state(&self) -> Result<String> {
        self.request("GET", "/state", &Value::Null)
    }

    fn tell(&self, verb: &str, path: &str, body: &Value) -> Result<()> {
        self.request(verb, path, body).map(drop)
    }

    fn ask<T: DeserializeOwned>(&self, verb: &str, path: &str, body: &Value) -> Result<T> {
        let answer = self.request(verb, path, body)?;
        serde_json::from_str(&answer).with_context(|| format!("the local AWS answered {verb} {path} with {answer}"))
    }

    fn member<T: DeserializeOwned>(&self, verb: &str, path: &str, body: &Value, name: &str) -> Result<T> {
        let mut answer: Value = self.ask(verb, path, body)?;
        Ok(serde_json::from_value(answer[name].take())?)
    }

    /// One HTTP request, HTTP/1.0: the answer ends with the connection.
    fn request(&self, verb: &str, path: &str, body: &Value) -> Result<String> {
        let address = self.admin_url().trim_start_matches("http://");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut answer = String::new();
        let mut stream = TcpStream::connect(address).context("the local AWS is gone")?;
        write!(stream, "{verb} {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
        stream.read_to_string(&mut answer)?;
        let (head, content) = answer.split_once("\r\n\r\n").context("the local AWS broke off")?;
        if !head.lines().next().is_some_and(|status| status.contains(" 200 ")) {
            bail!("{verb} {path}: {content}");
        }
        Ok(content.to_owned())
    }
}
