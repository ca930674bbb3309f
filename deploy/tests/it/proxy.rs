//! Something between `deploy` and AWS that changes what RunTask asks for, as a service that drops a field would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::Value;

type Change = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// A forwarding HTTP server on loopback. It ends with the test's process.
pub struct Proxy {
    address: SocketAddr,
}

impl Proxy {
    /// Forwards to `endpoint`; the body of each RunTask is changed on the way.
    pub fn start(endpoint: &str, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let upstream = endpoint.trim_start_matches("http://").to_owned();
        let change: Change = Arc::new(change);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (upstream, change) = (upstream.clone(), change.clone());
                std::thread::spawn(move || forward(client, &upstream, &change));
            }
        });
        Proxy { address }
    }

    /// What `AWS_ENDPOINT_URL` takes.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// One request, one answer, one connection.
fn forward(mut client: TcpStream, upstream: &str, change: &Change) -> Option<()> {
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
    if header("x-amz-target").is_some_and(|target| target.ends_with(".RunTask")) {
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
    client.write_all(&answer).ok()
}
