//! AWS calls without an SDK: the three protocols that `deploy` speaks, over plain HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;

use rehearsal::local_aws::LocalAws;
use serde_json::{Value, json};

/// A client with the credentials of [`LocalAws::env`].
pub struct Aws {
    address: String,
    region: String,
}

/// A refusal: code and message.
#[derive(Debug)]
pub struct Refusal {
    pub code: String,
    pub message: String,
}

impl Refusal {
    pub fn assert(&self, code: &str, part: &str) {
        assert!(self.code == code && self.message.contains(part), "{self:?} is not {code}: ...{part}...");
    }
}

pub type Answer = Result<Value, Refusal>;

impl Aws {
    pub fn new(local: &LocalAws) -> Aws {
        let address = local.endpoint().trim_start_matches("http://").to_owned();
        Aws { address, region: local.region().to_owned() }
    }

    pub fn ecs(&self, action: &str, body: Value) -> Answer {
        self.json("ecs", &format!("AmazonEC2ContainerServiceV20141113.{action}"), &body)
    }

    pub fn ssm(&self, action: &str, body: Value) -> Answer {
        self.json("ssm", &format!("AmazonSSM.{action}"), &body)
    }

    pub fn logs(&self, action: &str, body: Value) -> Answer {
        self.json("logs", &format!("Logs_20140328.{action}"), &body)
    }

    pub fn sqs(&self, action: &str, body: Value) -> Answer {
        self.json("sqs", &format!("AmazonSQS.{action}"), &body)
    }

    /// The answer is the XML, as a string.
    pub fn iam(&self, action: &str, parameters: &[(&str, &str)]) -> Answer {
        let fields = [("Action", action), ("Version", "2010-05-08")];
        let encoded = fields.iter().chain(parameters).map(|(name, value)| {
            let value = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
            format!("{name}={value}")
        });
        let body = encoded.collect::<Vec<_>>().join("&");
        let (status, text) = self.send("iam", "POST / ", "Content-Type: application/x-www-form-urlencoded", &body);
        if status == 200 {
            return Ok(Value::String(text));
        }
        let element = |name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>")).unwrap_or_default();
            rest.split('<').next().unwrap_or_default().to_owned()
        };
        Err(Refusal { code: element("Code"), message: element("Message") })
    }

    pub fn scheduler(&self, verb: &str, path: &str, body: Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) =
            self.send("scheduler", &format!("{verb} {path} "), "Content-Type: application/json", &body);
        parse(status, &text)
    }

    /// The messages of a task's log stream.
    pub fn output(&self, group: &str, container: &str, task: &str) -> Vec<String> {
        let stream = format!("{container}/{container}/{}", task.rsplit('/').next().unwrap());
        let request = json!({ "logGroupName": group, "logStreamName": stream, "startFromHead": true });
        let events = self.logs("GetLogEvents", request).unwrap();
        let events = events["events"].as_array().unwrap().iter();
        events.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    }

    fn json(&self, service: &str, target: &str, body: &Value) -> Answer {
        let headers = format!("Content-Type: application/x-amz-json-1.1\r\nX-Amz-Target: {target}");
        let (status, text) = self.send(service, "POST / ", &headers, &body.to_string());
        parse(status, &text)
    }

    fn send(&self, service: &str, request: &str, headers: &str, body: &str) -> (u16, String) {
        let Aws { address, region } = self;
        let credential = format!("Credential=test/20260101/{region}/{service}/aws4_request");
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "{request}HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n\
             Authorization: AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0\r\n\r\n{body}",
            body.len(),
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, content) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, content.to_owned())
    }
}

fn parse(status: u16, text: &str) -> Answer {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{status}: {text}"));
    if status == 200 {
        return Ok(value);
    }
    let member = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    Err(Refusal { code: member("__type"), message: member("message") })
}

impl super::Stage {
    /// A RunTask request for the family with a script as command.
    pub fn run_request(&self, definition: &str, script: &str) -> Value {
        json!({
            "cluster": self.world.cluster,
            "taskDefinition": definition,
            "launchType": "FARGATE",
            "startedBy": "test",
            "networkConfiguration": { "awsvpcConfiguration": {
                "subnets": self.world.subnets,
                "securityGroups": self.world.security_groups,
                "assignPublicIp": "ENABLED",
            }},
            "overrides": { "containerOverrides": [{ "name": self.world.container, "command": [script] }] },
        })
    }

    /// Starts a task and returns its ARN.
    pub fn start(&self, request: Value) -> String {
        let answer = self.aws.ecs("RunTask", request).unwrap();
        assert_eq!(answer["failures"], json!([]));
        answer["tasks"][0]["taskArn"].as_str().unwrap().to_owned()
    }

    /// Runs a script in the family's task to its end.
    pub fn run(&self, definition: &str, script: &str) -> Value {
        let arn = self.start(self.run_request(definition, script));
        self.local.wait_for_task(&arn).unwrap()
    }

    /// What a task printed.
    pub fn output(&self, task: &Value) -> Vec<String> {
        self.aws.output(&self.world.log_group, &self.world.container, task["taskArn"].as_str().unwrap())
    }

    /// Registers the family anew after a change of its container, as a tool that adopts it would.
    pub fn register(&self, change: impl FnOnce(&mut Value)) -> String {
        self.register_all(|containers| change(&mut containers[0]))
    }

    /// The same for all its containers.
    pub fn register_all(&self, change: impl FnOnce(&mut Vec<Value>)) -> String {
        let described =
            self.aws.ecs("DescribeTaskDefinition", json!({ "taskDefinition": self.world.task_definition })).unwrap();
        let mut definition = described["taskDefinition"].clone();
        for read_only in [
            "compatibilities",
            "registeredAt",
            "registeredBy",
            "requiresAttributes",
            "revision",
            "status",
            "taskDefinitionArn",
        ] {
            definition.as_object_mut().unwrap().remove(read_only).unwrap();
        }
        change(definition["containerDefinitions"].as_array_mut().unwrap());
        let registered = self.aws.ecs("RegisterTaskDefinition", definition).unwrap();
        registered["taskDefinition"]["taskDefinitionArn"].as_str().unwrap().to_owned()
    }

    /// Gives a role an inline policy.
    pub fn allow(&self, role: &str, statements: Value) {
        let document = json!({ "Version": "2012-10-17", "Statement": statements }).to_string();
        let name = role.rsplit('/').next().unwrap();
        let parameters = [("RoleName", name), ("PolicyName", "test"), ("PolicyDocument", &document)];
        self.aws.iam("PutRolePolicy", &parameters).unwrap();
    }
}
