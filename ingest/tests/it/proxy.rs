//! Stands between the program and PostgreSQL, and stops their conversation at a named point.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// Where to stop: when the client says these bytes for the `nth` time.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    pub name: &'static str,
    pub bytes: &'static [u8],
    pub nth: u32,
    /// The server still gets them, and its reply is what is held back.
    pub hold_reply: bool,
}

/// Stops once; everything before and after goes through.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Where new connections go.
    port: u16,
    seen: u32,
    hold_replies: bool,
    stopped: bool,
    over: Option<After>,
}

#[derive(Clone, Copy, PartialEq)]
enum After {
    Released,
    Severed,
}

impl Proxy {
    pub fn before(port: u16, point: Point) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let shared =
            Arc::new(Shared { state: Mutex::new(State { port, ..State::default() }), changed: Condvar::new() });
        let proxy = Proxy { port: own, shared: shared.clone() };
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let port = shared.state.lock().unwrap().port;
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let (from_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let (up, down) = (shared.clone(), shared.clone());
                thread::spawn(move || pump(client, server, |bytes| up.may_reach_server(bytes, point)));
                thread::spawn(move || pump(from_server, to_client, |_| down.may_reach_client()));
            }
        });
        proxy
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whoever connects from now on is brought to another server, as the name of an endpoint is.
    pub fn lead_to(&self, port: u16) {
        self.shared.state.lock().unwrap().port = port;
    }

    /// Blocks until the point is reached.
    pub fn wait(&self) {
        let limit = Duration::from_secs(60);
        let state = self.shared.state.lock().unwrap();
        let waited = self.shared.changed.wait_timeout_while(state, limit, |state| !state.stopped).unwrap();
        assert!(!waited.1.timed_out(), "the point is reached within a minute");
    }

    /// What was held back goes on its way.
    pub fn release(&self) {
        self.end(After::Released);
    }

    /// What was held back is lost, and both sides hear that the other is gone.
    pub fn sever(&self) {
        self.end(After::Severed);
    }

    fn end(&self, after: After) {
        let mut state = self.shared.state.lock().unwrap();
        state.over = Some(after);
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.sever();
    }
}

impl Shared {
    /// Whether the bytes may go on.
    fn may_reach_server(&self, bytes: &[u8], point: Point) -> bool {
        if !bytes.windows(point.bytes.len()).any(|window| window == point.bytes) {
            return true;
        }
        let mut state = self.state.lock().unwrap();
        state.seen += 1;
        if state.seen == point.nth && point.hold_reply {
            state.hold_replies = true;
        }
        if state.seen == point.nth && !point.hold_reply { self.hold(state) } else { true }
    }

    fn may_reach_client(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        if std::mem::take(&mut state.hold_replies) { self.hold(state) } else { true }
    }

    fn hold(&self, mut state: MutexGuard<'_, State>) -> bool {
        state.stopped = true;
        self.changed.notify_all();
        let limit = Duration::from_secs(120);
        let (state, waited) = self.changed.wait_timeout_while(state, limit, |state| state.over.is_none()).unwrap();
        assert!(!waited.timed_out(), "somebody decides about what is held");
        state.over == Some(After::Released)
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, may_pass: impl Fn(&[u8]) -> bool) {
    let mut buffer = [0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !may_pass(&buffer[..read]) || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
