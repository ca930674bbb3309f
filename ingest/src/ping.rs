//! Tells a dead-man service (healthchecks.io, or anything of its shape) that a run starts and how it ended.
//!
//! `POST base/start` once the lock is ours, `POST base` after a success, `POST base/fail` after anything that ended with another code
//! than 0. A skipped run says nothing: it is no success, and the run in its way speaks for itself. `rid` pairs the start with its end.
//!
//! Architecture invariant: a ping never decides how a run ends, and nothing waits for it longer than eight seconds.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use geuneul::{Outcome, RunId, RunReport};
use reqwest::Url;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::error::chain;
use crate::tls;

/// How long the end of a run may wait for its pings, all attempts included.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(3);
/// After a signal: whoever sent it waits.
const IN_A_HURRY: Duration = Duration::from_secs(1);

/// The address of a check. A secret: whoever knows it can speak for the job.
#[derive(Clone, PartialEq, Eq)]
pub struct PingUrl(Url);

impl PingUrl {
    /// Takes a URL that has been checked.
    pub fn new(url: Url) -> Self {
        PingUrl(url)
    }

    fn message(&self, word: Option<&str>, run: &RunId) -> Url {
        let mut url = self.0.clone();
        if let (Some(word), Ok(mut path)) = (word, url.path_segments_mut()) {
            path.pop_if_empty().push(word);
        }
        url.query_pairs_mut().append_pair("rid", run.as_str());
        url
    }
}

impl fmt::Debug for PingUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PingUrl(…)")
    }
}

/// The pings of one run.
pub struct Ping {
    line: Option<(reqwest::Client, PingUrl)>,
    run: RunId,
    started: Mutex<Option<JoinHandle<()>>>,
}

impl Ping {
    /// Without a URL nobody is told.
    pub fn new(url: Option<&PingUrl>, run: &RunId) -> Self {
        let line = url.and_then(|url| Some((client(url)?, url.clone())));
        Ping { line, run: run.clone(), started: Mutex::new(None) }
    }

    /// The run has the lock. Does not wait; must be called inside a runtime.
    pub fn start(&self) {
        if let Some((http, url)) = &self.line {
            let telling = tell(http.clone(), url.message(Some("start"), &self.run), String::new());
            *self.started.lock().expect("nobody panics with the handle") = Some(tokio::spawn(telling));
        }
    }

    /// The run is over. The start is waited for, so that it cannot arrive after the end; after a signal it is given up.
    pub async fn finish(self, report: &RunReport) {
        let Some((http, url)) = self.line else { return };
        let word = match report.outcome {
            Outcome::Succeeded => None,
            outcome if outcome.exit_code() == 0 => return,
            _ => Some("fail"),
        };
        let started = self.started.into_inner().expect("nobody panics with the handle");
        let in_a_hurry = report.outcome == Outcome::Interrupted;
        let telling = async {
            match started {
                Some(started) if in_a_hurry => started.abort(),
                Some(started) => drop(started.await),
                None => {}
            }
            tell(http, url.message(word, &self.run), report.to_line()).await;
        };
        let patience = if in_a_hurry { IN_A_HURRY } else { PATIENCE };
        if timeout(patience, telling).await.is_err() {
            tracing::warn!("the ping was given up");
        }
    }
}

fn client(url: &PingUrl) -> Option<reqwest::Client> {
    let mut http = reqwest::Client::builder()
        .user_agent(concat!("geuneul-ingest/", env!("CARGO_PKG_VERSION")))
        .timeout(ATTEMPT)
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls::public());
    if url.0.scheme() == "http" {
        http = http.no_proxy();
    }
    let built = http.build();
    built.map_err(|error| tracing::warn!("no ping is possible: {}", chain(&error.without_url()))).ok()
}

/// Two attempts. No error leaves here with the URL.
async fn tell(http: reqwest::Client, url: Url, body: String) {
    for _ in 0..2 {
        match http.post(url.clone()).body(body.clone()).send().await {
            Ok(answer) if answer.status().is_success() => return,
            Ok(answer) => tracing::warn!(status = answer.status().as_u16(), "the ping was refused"),
            Err(error) => tracing::warn!("the ping did not arrive: {}", chain(&error.without_url())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_word_behind_the_address() {
        let run: RunId = "7b0b1f3e-1111-4222-8333-944445555666".parse().unwrap();
        for (base, word, expected) in [
            ("https://hc.example/a-b", None, "https://hc.example/a-b"),
            ("https://hc.example/a-b", Some("start"), "https://hc.example/a-b/start"),
            ("https://hc.example/a-b/", Some("fail"), "https://hc.example/a-b/fail"),
        ] {
            let url = PingUrl::new(base.parse().unwrap());
            assert_eq!(url.message(word, &run).as_str(), format!("{expected}?rid={run}"));
            assert_eq!(format!("{url:?}"), "PingUrl(…)");
        }
    }
}
