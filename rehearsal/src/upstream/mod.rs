//! A stand-in for data.go.kr that answers, and fails, as the real one does.
//!
//! It serves the library API on loopback from a thread of its own, so that it works in any test. Facts about the real service
//! (envelopes, error bodies, what it answers past the last page) come from recorded answers of its users.

mod answer;
mod gate;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use tokio::sync::oneshot;

use crate::snapshot::{Row, Rows};
pub use answer::{Answer, Envelope, ErrorForm};
pub use gate::Gate;

/// The valid key in the portal's Decoding form: it has every character that a careless encoder gets wrong.
const KEY: &str = "Ze4/kX+9canary0Ring//B7+Sr5=wD8q0==";
/// The path of the library API.
const PATH: &str = "/openapi/tn_pubr_public_lbrry_api";

/// A request that arrived.
#[derive(Debug, Clone)]
pub struct Request {
    /// The path.
    pub path: String,
    /// The query as it came over the wire.
    pub raw_query: String,
    /// The query's pairs, decoded once.
    pub query: Vec<(String, String)>,
    /// The User-Agent header.
    pub user_agent: Option<String>,
}

impl Request {
    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.parse().ok()
    }

    /// The page that is asked for.
    pub fn page(&self) -> Option<usize> {
        self.number("pageNo")
    }
}

/// An answer other than the page that was asked for.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Only for this page; `None`: for the next request, whatever it asks.
    pub page: Option<usize>,
    /// How many requests it answers before it is used up.
    pub times: usize,
    /// What is answered.
    pub answer: Answer,
}

type Shift = Box<dyn FnMut(usize, &mut Rows) + Send>;
type Cut = Box<dyn FnMut(usize, usize, usize) -> Vec<usize> + Send>;

struct Stage {
    rows: Rows,
    envelope: Envelope,
    faults: VecDeque<Fault>,
    shift: Option<Shift>,
    cut: Option<Cut>,
    gate: Option<Arc<gate::Inner>>,
    requests: Vec<Request>,
}

/// The running stand-in; it ends when dropped.
pub struct Upstream {
    address: SocketAddr,
    stage: Arc<Mutex<Stage>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Serves these rows in the envelope that the API has today.
    pub fn start(rows: Rows) -> Result<Upstream> {
        let stage = Arc::new(Mutex::new(Stage {
            rows,
            envelope: Envelope::New,
            faults: VecDeque::new(),
            shift: None,
            cut: None,
            gate: None,
            requests: Vec::new(),
        }));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").context("bind a loopback port")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let app = Router::new().fallback(serve).with_state(stage.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("the listener is valid");
                tokio::select! {
                    served = axum::serve(listener, app) => served.expect("the stand-in serves"),
                    _ = stopped => {}
                }
            });
        });
        Ok(Upstream { address, stage, stop: Some(stop), thread: Some(thread) })
    }

    /// What `DATA_GO_KR_BASE_URL` takes.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The valid key in the portal's Decoding form.
    pub fn key(&self) -> &'static str {
        KEY
    }

    /// The valid key in the portal's Encoding form.
    pub fn encoded_key(&self) -> String {
        percent_encoding::utf8_percent_encode(KEY, percent_encoding::NON_ALPHANUMERIC).to_string()
    }

    /// A new month.
    pub fn set_rows(&self, rows: Rows) {
        self.stage().rows = rows;
    }

    /// The month as it is now.
    pub fn rows(&self) -> Rows {
        self.stage().rows.clone()
    }

    /// Switches between the two envelopes.
    pub fn envelope(&self, envelope: Envelope) {
        self.stage().envelope = envelope;
    }

    /// Queues a fault. Of several that fit a request, the first one queued answers it.
    pub fn fault(&self, fault: Fault) {
        self.stage().faults.push_back(fault);
    }

    /// Calls `shift` before each answer with the number of the request (from 1, counted from now) and the rows: a listing that moves under its reader.
    pub fn before_each(&self, mut shift: impl FnMut(usize, &mut Rows) + Send + 'static) {
        let mut number = 0;
        self.stage().shift = Some(Box::new(move |_, rows| {
            number += 1;
            shift(number, rows);
        }));
    }

    /// Cuts pages in another way than the service should: given the page, its size and the number of rows, the rows that are on it.
    pub fn cut_pages(&self, cut: impl FnMut(usize, usize, usize) -> Vec<usize> + Send + 'static) {
        self.stage().cut = Some(Box::new(cut));
    }

    /// From now on requests wait, after `passes` more have been answered, until the gate is released.
    pub fn hold_after(&self, passes: usize) -> Gate {
        let (gate, inner) = gate::new(passes);
        self.stage().gate = Some(inner);
        gate
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.stage().requests.clone()
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().expect("no handler panicked")
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(
    State(stage): State<Arc<Mutex<Stage>>>,
    uri: Uri,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let request = parse(&uri, query.unwrap_or_default(), &headers);
    let gate = {
        let mut stage = stage.lock().expect("no handler panicked");
        stage.requests.push(request.clone());
        stage.gate.clone()
    };
    if let Some(gate) = gate {
        gate.pass().await;
    }
    let answer = decide(&mut stage.lock().expect("no handler panicked"), &request);
    answer.into_response().await
}

fn parse(uri: &Uri, raw_query: String, headers: &HeaderMap) -> Request {
    let decode = |text: &str| {
        let spaced = text.replace('+', " ");
        percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
    };
    let pairs = raw_query.split('&').filter(|pair| !pair.is_empty());
    let query =
        pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(key, value)| (decode(key), decode(value)));
    Request {
        path: uri.path().to_owned(),
        query: query.collect(),
        user_agent: headers.get("user-agent").and_then(|value| value.to_str().ok()).map(str::to_owned),
        raw_query,
    }
}

fn decide(stage: &mut Stage, request: &Request) -> Answer {
    if request.path != PATH {
        return Answer::plain(404, "API not found");
    }
    // The gateway blocks clients that do not say who they are.
    if request.user_agent.is_none() {
        return Answer::html(400, "<html><body>Request Blocked</body></html>");
    }
    let Stage { rows, envelope, faults, shift, cut, .. } = stage;
    if let Some(shift) = shift {
        shift(0, rows);
    }
    let fits = |fault: &Fault| fault.page.is_none() || fault.page == request.page();
    if let Some(at) = faults.iter().position(fits) {
        faults[at].times -= 1;
        let answer = faults[at].answer.clone();
        if faults[at].times == 0 {
            faults.remove(at);
        }
        return answer;
    }
    match request.get("serviceKey") {
        None | Some("") => return Answer::error(ErrorForm::Xml, "20", "SERVICE_KEY_IS_NULL"),
        Some(key) if key != KEY => return Answer::error(ErrorForm::Xml, "30", "SERVICE_KEY_IS_NOT_REGISTERED_ERROR"),
        Some(_) => {}
    }
    let (Some(page), Some(size)) = (request.page(), request.number("numOfRows")) else {
        return Answer::error(ErrorForm::Json, "11", "NO_MANDATORY_REQUEST_PARAMETERS_ERROR");
    };
    if request.get("type") != Some("json") || page == 0 || size == 0 || size > 1000 {
        return Answer::error(ErrorForm::Json, "10", "INVALID_REQUEST_PARAMETER_ERROR");
    }
    let items: Vec<&Row> = match cut {
        Some(cut) => cut(page, size, rows.len()).into_iter().map(|at| &rows[at]).collect(),
        None => rows.iter().skip((page - 1) * size).take(size).collect(),
    };
    Answer::page(*envelope, &items, rows.len(), page, size)
}

#[cfg(test)]
mod tests;
