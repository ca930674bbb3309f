//! The data.go.kr client: one page at a time, retried within a deadline.
//!
//! Architecture invariant: a URL with the service key is formed in `Upstream::request` and nowhere else, and no error of the HTTP
//! client leaves this module with its URL.

mod envelope;
mod errors;
mod key;
mod paging;

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

pub use envelope::{Field, Item, stored as item};
pub use errors::{Class, Fault, UpstreamError};
pub use key::{KeyError, ServiceKey};
pub use paging::{Crawl, Flaw, Progress, Published, crawl, multiset};

use crate::session::Lease;
use crate::tls;
use envelope::Answer;

/// Rows that a page usually has; the portal's maximum.
pub const ROWS_PER_PAGE: u64 = 1000;

/// A page larger than this is no page (1000 rows are about 0.84 MB). It also bounds for how long reading a page keeps a signal waiting.
const MAX_PAGE_BYTES: usize = 8 << 20;

/// The gateway delays or blocks requests that have none.
const USER_AGENT: &str = concat!("geuneul-ingest/", env!("CARGO_PKG_VERSION"), " (monthly mirror of public data)");

/// How patient a run is. The programme uses [`Pace::UNATTENDED`]; tests bring their own.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// One request, from connecting to the last byte.
    pub request: Duration,
    /// One page with all its retries. Shorter than the lease, which only a page renews.
    pub page: Duration,
    /// All pages of all crawls.
    pub fetch: Duration,
    /// Everything.
    pub run: Duration,
    /// The wait before the second attempt; it doubles with each further one.
    pub first_delay: Duration,
    /// The longest wait between two attempts.
    pub longest_delay: Duration,
}

impl Pace {
    /// For a job with nobody watching: a run within 15 minutes, a page within half of the 5-minute lease.
    pub const UNATTENDED: Pace = Pace {
        request: Duration::from_secs(30),
        page: Duration::from_secs(150),
        fetch: Duration::from_secs(13 * 60),
        run: Duration::from_secs(15 * 60),
        first_delay: Duration::from_millis(700),
        longest_delay: Duration::from_secs(20),
    };

    /// The same patience, but no page takes longer than a lease allows.
    pub fn within(self, lease: Lease) -> Pace {
        let page = lease.page();
        Pace { page, request: self.request.min(page), ..self }
    }

    fn delay_after(&self, attempt: u32) -> Duration {
        self.first_delay.saturating_mul(1 << (attempt - 1).min(16)).min(self.longest_delay)
    }
}

/// Where the pages come from.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Scheme and host.
    pub base: reqwest::Url,
    /// Who asks.
    pub key: ServiceKey,
}

/// A client of one API of the portal.
pub struct Upstream {
    http: reqwest::Client,
    address: reqwest::Url,
    key: ServiceKey,
    is_field: fn(&str) -> bool,
    pace: Pace,
    give_up: Instant,
}

/// Attempts at a fault that may or may not pass.
const FEW: u32 = 3;

impl Upstream {
    /// A client for the API at `path`, of whose rows the fields that `is_field` knows are kept. The time for fetching starts now.
    pub fn new(
        endpoint: &Endpoint,
        path: &str,
        is_field: fn(&str) -> bool,
        pace: Pace,
    ) -> Result<Self, reqwest::Error> {
        let mut http = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(Duration::from_secs(10).min(pace.request))
            // A redirect would carry the key to wherever it points.
            .redirect(reqwest::redirect::Policy::none())
            .tls_backend_preconfigured(tls::public());
        if endpoint.base.scheme() == "http" {
            // Only this machine is spoken to without TLS, and no proxy is between.
            http = http.no_proxy();
        }
        let http = http.build()?;
        let mut address = endpoint.base.clone();
        address.set_path(path);
        let give_up = Instant::now() + pace.fetch;
        Ok(Upstream { http, address, key: endpoint.key.clone(), is_field, pace, give_up })
    }

    /// The one place where the key meets a URL.
    fn request(&self, page: u32, size: u64) -> reqwest::RequestBuilder {
        let mut url = self.address.clone();
        let key = self.key.encoded();
        url.set_query(Some(&format!("serviceKey={key}&pageNo={page}&numOfRows={size}&type=json")));
        self.http.get(url)
    }

    /// Asks for one page until it comes, or its deadline, or an error that asking again does not change.
    async fn page(&self, page: u32, size: u64) -> Result<Answer, UpstreamError> {
        let started = Instant::now();
        let deadline = (started + self.pace.page).min(self.give_up);
        for attempt in 1.. {
            let fault = match timeout(deadline.saturating_duration_since(Instant::now()), self.ask(page, size)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(fault)) => fault,
                Err(_) => Fault::new(Class::Retryable, "no answer in time"),
            };
            tracing::warn!(page, attempt, class = ?fault.class, "the upstream gave no page: {fault}");
            match fault.class {
                Class::Key => return Err(UpstreamError::Key { page, fault }),
                Class::Quota => return Err(UpstreamError::Quota { page, fault }),
                Class::Fatal => return Err(UpstreamError::Fatal { page, fault }),
                Class::Retryable | Class::RetryableFew => {}
            }
            let next = Instant::now() + self.pace.delay_after(attempt);
            if next >= deadline || (fault.class == Class::RetryableFew && attempt >= FEW) {
                let seconds = started.elapsed().as_secs();
                return Err(UpstreamError::Exhausted { page, attempts: attempt, seconds, fault });
            }
            sleep(next - Instant::now()).await;
        }
        unreachable!("the loop has no end of its own")
    }

    /// A row without what is not kept of it: a number that each answer counts anew would make every row another one. What is no row at all
    /// has its text under no name.
    fn published(&self, mut item: Item) -> Published {
        item.retain(|name, _| name.is_empty() || (self.is_field)(name));
        item.into()
    }

    /// One request and its answer. The one way out for what the other side said: nothing that repeats the key gets through.
    async fn ask(&self, page: u32, size: u64) -> Result<Answer, Fault> {
        let asked = self.exchange(page, size).await;
        asked.map_err(|fault| if self.key.is_repeated_in(&fault.said) { fault.unsaid() } else { fault })
    }

    async fn exchange(&self, page: u32, size: u64) -> Result<Answer, Fault> {
        let exchange = async {
            let mut response = self.request(page, size).send().await.map_err(transport)?;
            let status = response.status().as_u16();
            if let 300..=399 = status {
                return Err(redirect(status, response.headers()));
            }
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(transport)? {
                if body.len() + chunk.len() > MAX_PAGE_BYTES {
                    return Err(Fault::new(Class::Fatal, format!("a page of more than {MAX_PAGE_BYTES} bytes")));
                }
                body.extend_from_slice(&chunk);
            }
            let key = self.key.clone();
            // On a thread of its own, so that a signal is heard meanwhile. Bytes that are no UTF-8 become U+FFFD, and a row that has one
            // is set aside.
            // No more than the portal's maximum, whatever was asked for: a server may have pages of its own.
            let read = move || envelope::read(status, &key.redact(String::from_utf8_lossy(&body)), ROWS_PER_PAGE);
            match tokio::task::spawn_blocking(read).await {
                Ok(answer) => answer,
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        };
        let late = |_| Fault::new(Class::Retryable, format!("no answer within {} s", self.pace.request.as_secs_f32()));
        timeout(self.pace.request, exchange).await.map_err(late)?
    }
}

/// What went wrong below HTTP, with its causes and without its URL.
fn transport(error: reqwest::Error) -> Fault {
    Fault::new(Class::Retryable, crate::error::chain(&error.without_url()))
}

/// Where a redirect leads, without the query that it may repeat.
fn redirect(status: u16, headers: &reqwest::header::HeaderMap) -> Fault {
    let location = headers.get(reqwest::header::LOCATION).and_then(|value| value.to_str().ok()).unwrap_or("nowhere");
    let location = location.split(['?', '#']).next().unwrap_or_default();
    Fault::new(Class::Fatal, format!("HTTP {status} to {location}; redirects are not followed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let pace = Pace::UNATTENDED;
        let waits: Vec<_> = (1..=7).map(|attempt| pace.delay_after(attempt).as_millis()).collect();
        assert_eq!(waits, [700, 1400, 2800, 5600, 11_200, 20_000, 20_000]);
        assert_eq!(pace.delay_after(u32::MAX), pace.longest_delay);
    }

    #[test]
    fn a_page_is_shorter_than_the_lease() {
        assert_eq!(Pace::UNATTENDED.within(Lease::UNATTENDED).page, Pace::UNATTENDED.page);
        for text in ["1s", "10s", "5m", "60m"] {
            let lease = Lease::new(text.parse().unwrap()).unwrap();
            let pace = Pace::UNATTENDED.within(lease);
            assert!(pace.request <= pace.page && pace.page < Duration::from_secs(lease.seconds()), "{text}");
        }
        assert_eq!(Lease::new("61m".parse().unwrap()), None);
    }

    #[test]
    fn the_key_is_encoded_once() {
        let base = "http://127.0.0.1:9".parse().unwrap();
        let endpoint = Endpoint { base, key: ServiceKey::parse("0123456789a+b/c=").unwrap() };
        let upstream = Upstream::new(&endpoint, "/openapi/x", |_| true, Pace::UNATTENDED).unwrap();
        let request = upstream.request(2, 1000).build().unwrap();
        assert_eq!(
            request.url().as_str(),
            "http://127.0.0.1:9/openapi/x?serviceKey=0123456789a%2Bb%2Fc%3D&pageNo=2&numOfRows=1000&type=json"
        );
    }
}
