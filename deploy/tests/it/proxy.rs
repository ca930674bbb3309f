//! Something between `deploy` and AWS that changes what RunTask asks for, as a service that drops a field would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Output, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::Value;

use crate::scene::Scene;

type Change = Arc<dyn Fn(&mut Value) + Send + Sync>;
/// Which call's answers are changed, and how.
type Answers = Option<(&'static str, Change)>;
type After = Arc<dyn Fn(&str) + Send + Sync>;

/// A forwarding HTTP server on loopback. It ends with the test's process.
pub struct Proxy {
    address: SocketAddr,
}

impl Proxy {
    /// Forwards to `endpoint`; the body of each RunTask is changed on the way.
    pub fn start(endpoint: &str, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Proxy {
        Proxy::of(endpoint, "AmazonEC2ContainerServiceV20141113.RunTask", change)
    }

    /// The same for another call; calls are named as for [`between`], by how the name begins.
    pub fn of(endpoint: &str, call: &str, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Proxy {
        Proxy::with(endpoint, call, Arc::new(change), Arc::new(|_| ()), None)
    }

    /// The same, where the answers to one call are changed on their way back.
    pub fn answering(endpoint: &str, call: &'static str, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Proxy {
        Proxy::with(endpoint, "none", Arc::new(|_| ()), Arc::new(|_| ()), Some((call, Arc::new(change))))
    }

    fn with(endpoint: &str, call: &str, change: Change, after: After, answers: Answers) -> Proxy {
        let changed = call.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let upstream = endpoint.trim_start_matches("http://").to_owned();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (upstream, change, after) = (upstream.clone(), change.clone(), after.clone());
                let (changed, answers) = (changed.clone(), answers.clone());
                std::thread::spawn(move || forward(client, &upstream, &changed, &change, &after, &answers));
            }
        });
        Proxy { address }
    }

    /// What `AWS_ENDPOINT_URL` takes.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Runs `deploy ...` and does something after each call that it makes, before it learns the answer. A call is named by its target
/// (`AmazonSSM.GetParameters`), or by its method and address (`PUT /schedules/library-sync`).
pub fn between(scene: &Scene, arguments: &[&str], mut act: impl FnMut(&str)) -> Output {
    between_of(scene, arguments, |call, _| act(call))
}

/// The same, where what is done may be done to the program itself.
pub fn between_of(scene: &Scene, arguments: &[&str], mut act: impl FnMut(&str, &mut Child)) -> Output {
    let (calls, called) = mpsc::channel::<(String, mpsc::Sender<()>)>();
    let calls = Mutex::new(calls);
    let after = move |call: &str| {
        let (done, wait) = mpsc::channel();
        let sent = calls.lock().expect("no panic").send((call.to_owned(), done));
        // Whoever drops the other end is done.
        let _ = sent.map(|()| wait.recv());
    };
    let proxy = Proxy::with(scene.aws.endpoint(), "none", Arc::new(|_| ()), Arc::new(after), None);
    let mut command = scene.deploy(arguments);
    command.env("AWS_ENDPOINT_URL", proxy.url()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("deploy runs");
    while child.try_wait().expect("it is ours").is_none() {
        if let Ok((call, _done)) = called.recv_timeout(Duration::from_millis(20)) {
            act(&call, &mut child);
        }
    }
    child.wait_with_output().expect("its output")
}

/// One request, one answer, one connection.
fn forward(
    mut client: TcpStream,
    upstream: &str,
    changed: &str,
    change: &Change,
    after: &After,
    answers: &Answers,
) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let lines = head.iter().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = head.first()?.rsplit_once(' ')?.0.split('?').next()?.to_owned();
    let call = header("x-amz-target").unwrap_or(line);
    if call.starts_with(changed) {
        let mut request = serde_json::from_slice(&body).ok()?;
        change(&mut request);
        body = request.to_string().into_bytes();
    }
    let dropped = ["content-length", "connection"];
    let kept = head.iter().filter(|line| !dropped.iter().any(|name| line.to_ascii_lowercase().starts_with(name)));
    let kept = kept.map(|line| format!("{line}\r\n")).collect::<String>();
    let mut server = TcpStream::connect(upstream).ok()?;
    write!(server, "{kept}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len()).ok()?;
    server.write_all(&body).ok()?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).ok()?;
    if let Some((answered, change)) = answers
        && call.starts_with(answered)
    {
        answer = changed_answer(&answer, change)?;
    }
    after(&call);
    client.write_all(&answer).ok()
}

/// An answer with another body.
fn changed_answer(answer: &[u8], change: &Change) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut body = serde_json::from_str(body).ok()?;
    change(&mut body);
    let body = body.to_string();
    let kept = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("content-length"));
    let head = kept.map(|line| format!("{line}\r\n")).collect::<String>();
    Some(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
}
