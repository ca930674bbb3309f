//! The environment, read once at the edge.
//!
//! Architecture invariant: nothing else in the crate reads an environment variable (but the HTTP client's proxy settings and RUST_LOG).

use geuneul::Trigger;
use tokio_postgres::config::{Host, SslMode};

use crate::ping::PingUrl;
use crate::session::Lease;
use crate::tls;
use crate::upstream::{Endpoint, ServiceKey};

/// Looks a variable up. Tests bring a map.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A variable that is missing or malformed. The value itself is never part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {problem}")]
pub struct ConfigError {
    variable: &'static str,
    problem: String,
    hint: String,
    trigger: Option<Trigger>,
    occurrence: Option<String>,
    ping: Option<Box<PingUrl>>,
}

impl ConfigError {
    fn new(variable: &'static str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        let (problem, hint) = (problem.into(), hint.into());
        ConfigError { variable, problem, hint, trigger: None, occurrence: None, ping: None }
    }

    /// What `INGEST_TRIGGER` says, if at least that can be read: the report names who started the run.
    pub fn trigger(&self) -> Option<Trigger> {
        self.trigger
    }

    /// What `INGEST_OCCURRENCE` says, if at least that can be read: the report names the job whose run it is.
    pub fn occurrence(&self) -> Option<String> {
        self.occurrence.clone()
    }

    /// Whom to tell, if at least that can be read.
    pub fn ping(&self) -> Option<&PingUrl> {
        self.ping.as_deref()
    }

    /// A stable word.
    pub fn code(&self) -> &'static str {
        "configuration"
    }

    /// The way out.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

/// The schema that holds our tables: a plain lower-case identifier. It may still be a word of SQL's own, such as `order`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema(String);

impl Schema {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Nobody chose another one.
    pub fn is_default(&self) -> bool {
        self.0 == DEFAULT_SCHEMA
    }

    /// The name, as SQL takes it.
    pub fn quoted(&self) -> String {
        format!("\"{}\"", self.0)
    }

    /// A schema of this name, for tests.
    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        Schema::parse(name).expect("a plain identifier")
    }

    fn parse(name: &str) -> Result<Self, &'static str> {
        let mut bytes = name.bytes();
        let first = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let rest = bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !(first && rest && name.len() <= 63) {
            return Err("is no plain identifier");
        }
        if name == "public" || name == "information_schema" || name.starts_with("pg_") {
            return Err("names a schema that is not ours to fill");
        }
        Ok(Schema(name.to_owned()))
    }
}

/// Which database, and how to trust it.
#[derive(Clone)]
pub struct Database {
    /// Host, port, name, role, password.
    pub(crate) driver: tokio_postgres::Config,
    /// Absent on loopback and sockets.
    pub(crate) tls: Option<rustls::ClientConfig>,
    /// Where our tables are.
    pub schema: Schema,
    /// How long a session may be silent.
    pub lease: Lease,
}

/// Everything that a run takes from its environment.
#[derive(Clone)]
pub struct Settings {
    /// The database.
    pub database: Database,
    /// The upstream.
    pub endpoint: Endpoint,
    /// What `INGEST_TRIGGER` says.
    pub trigger: Option<Trigger>,
    /// What `INGEST_OCCURRENCE` says: which fire time of the schedule this run is for.
    pub occurrence: Option<String>,
    /// Whom to tell that a run begins and how it ends.
    pub ping: Option<PingUrl>,
}

const DEFAULT_SCHEMA: &str = "ingest";
const DEFAULT_BASE_URL: &str = "https://api.data.go.kr";

impl Settings {
    /// Reads everything that a run needs.
    pub fn read(env: Lookup<'_>) -> Result<Self, ConfigError> {
        let read = || {
            Ok(Settings {
                database: Database::read(env)?,
                endpoint: endpoint(env)?,
                trigger: trigger(env)?,
                occurrence: occurrence(env)?,
                ping: ping(env)?,
            })
        };
        read().map_err(|error| ConfigError {
            trigger: trigger(env).ok().flatten(),
            occurrence: occurrence(env).ok().flatten(),
            ping: ping(env).ok().flatten().map(Box::new),
            ..error
        })
    }
}

/// A variable that is set to nothing is not set: task definitions have no other way to say so.
fn get(env: Lookup<'_>, name: &str) -> Option<String> {
    env(name).filter(|value| !value.trim().is_empty())
}

fn endpoint(env: Lookup<'_>) -> Result<Endpoint, ConfigError> {
    let name = "DATA_GO_KR_SERVICE_KEY";
    let hint = "store the key of your data.go.kr account as the portal shows it, in either of its two forms";
    let key = get(env, name).ok_or_else(|| ConfigError::new(name, "is not set", hint))?;
    let key = ServiceKey::parse(&key).map_err(|error| ConfigError::new(name, format!("is refused: {error}"), hint))?;

    let name = "DATA_GO_KR_BASE_URL";
    let hint =
        format!("leave it unset for {DEFAULT_BASE_URL}, or give scheme, host and port, such as http://127.0.0.1:8080");
    let wrong = |problem| ConfigError::new(name, problem, hint.clone());
    let base = get(env, name).unwrap_or_else(|| DEFAULT_BASE_URL.to_owned());
    let base: reqwest::Url = base.trim().parse().map_err(|_| wrong("is no URL"))?;
    let host = base.host_str().ok_or_else(|| wrong("has no host"))?;
    match base.scheme() {
        "https" => {}
        "http" if is_loopback(host) => {}
        _ => {
            return Err(wrong(
                "would send the service key in the clear; only https, or http to this machine, is accepted",
            ));
        }
    }
    if base.path() != "/" || base.query().is_some() || !base.username().is_empty() || base.password().is_some() {
        return Err(wrong("has more than scheme, host and port"));
    }
    Ok(Endpoint { base, key })
}

fn trigger(env: Lookup<'_>) -> Result<Option<Trigger>, ConfigError> {
    let name = "INGEST_TRIGGER";
    let read = |word: String| {
        word.trim().parse().map_err(|_| {
            ConfigError::new(
                name,
                format!("is {:?}", word.trim()),
                "say manual, scheduled or backfill, or leave it unset for manual",
            )
        })
    };
    get(env, name).map(read).transpose()
}

/// What `INGEST_OCCURRENCE` says.
pub(crate) fn occurrence(env: Lookup<'_>) -> Result<Option<String>, ConfigError> {
    let name = "INGEST_OCCURRENCE";
    match get(env, name) {
        Some(text) if text.len() > 200 || text.chars().any(char::is_control) => Err(ConfigError::new(
            name,
            "is longer than 200 bytes or has control characters",
            "give the schedule's fire time",
        )),
        other => Ok(other),
    }
}

impl Database {
    /// Reads `DATABASE_URL`, or the `DB_*` variables when it is not set, and what belongs to them.
    pub fn read(env: Lookup<'_>) -> Result<Self, ConfigError> {
        let (driver, ssl_mode) = match get(env, "DATABASE_URL") {
            Some(url) => from_url(url.trim())?,
            None => from_parts(env)?,
        };
        let mut database = Database { driver, tls: tls_roots(env)?, schema: schema(env)?, lease: lease(env)? };
        database.decide_tls(ssl_mode.as_deref())?;
        Ok(database)
    }

    /// TLS with a verified certificate is required, but for loopback and sockets, where it is off unless asked for.
    fn decide_tls(&mut self, ssl_mode: Option<&str>) -> Result<(), ConfigError> {
        let local = match self.driver.get_hosts() {
            [Host::Tcp(host)] => is_loopback(host),
            [_] => true,
            _ => {
                return Err(ConfigError::new(
                    "DATABASE_URL",
                    "must name exactly one host",
                    "name the writer's endpoint",
                ));
            }
        };
        let wanted = match ssl_mode {
            None => !local,
            Some("disable" | "allow" | "prefer") => false,
            Some("require" | "verify-ca" | "verify-full") => true,
            Some(_) => {
                return Err(ConfigError::new(
                    "sslmode",
                    "is none of libpq's words",
                    "leave it out, or say verify-full",
                ));
            }
        };
        if !wanted && !local {
            let hint = "leave it out, or say verify-full, and give the server's certificate authority in INGEST_DB_CA";
            return Err(ConfigError::new("sslmode", "would allow a connection without TLS to another machine", hint));
        }
        self.tls = self.tls.take().filter(|_| wanted);
        self.driver.ssl_mode(if wanted { SslMode::Require } else { SslMode::Disable });
        Ok(())
    }
}

fn lease(env: Lookup<'_>) -> Result<Lease, ConfigError> {
    let name = "INGEST_LEASE";
    let Some(text) = get(env, name) else { return Ok(Lease::UNATTENDED) };
    let lease = text.trim().parse().ok().and_then(Lease::new);
    lease.ok_or_else(|| {
        ConfigError::new(name, format!("is {:?}", text.trim()), "say from 1s to 60m, or leave it unset for 5m")
    })
}

/// Never part of an error: whoever knows the URL can speak for the job.
fn ping(env: Lookup<'_>) -> Result<Option<PingUrl>, ConfigError> {
    let name = "INGEST_PING_URL";
    let hint = "give the URL as the monitoring service shows it, such as https://hc-ping.com/…, or leave it unset";
    let Some(text) = get(env, name) else { return Ok(None) };
    let url = text.trim().parse::<reqwest::Url>().ok().filter(|url| url.host_str().is_some());
    let url = url.ok_or_else(|| ConfigError::new(name, "is no URL", hint))?;
    match url.scheme() {
        "https" => {}
        "http" if url.host_str().is_some_and(is_loopback) => {}
        _ => return Err(ConfigError::new(name, "would be sent in the clear; only https is accepted", hint)),
    }
    Ok(Some(PingUrl::new(url)))
}

fn schema(env: Lookup<'_>) -> Result<Schema, ConfigError> {
    let name = get(env, "INGEST_DB_SCHEMA").unwrap_or_else(|| DEFAULT_SCHEMA.to_owned());
    let hint = "use lower-case letters, digits and _, such as ingest; never public";
    Schema::parse(name.trim()).map_err(|problem| ConfigError::new("INGEST_DB_SCHEMA", problem, hint))
}

/// `INGEST_DB_CA` is PEM text, or the path of a file with it (nothing can be mounted on Fargate). Without it, the public roots.
fn tls_roots(env: Lookup<'_>) -> Result<Option<rustls::ClientConfig>, ConfigError> {
    let Some(ca) = get(env, "INGEST_DB_CA") else { return Ok(Some(tls::public())) };
    let hint = "give the PEM text, or the path of a PEM file, of the authority that signed the server's certificate";
    let wrong = |problem| ConfigError::new("INGEST_DB_CA", problem, hint);
    let pem = if ca.contains("-----BEGIN") {
        ca.into_bytes()
    } else {
        std::fs::read(ca.trim()).map_err(|error| wrong(format!("names a file that cannot be read: {error}")))?
    };
    tls::only(&pem).map(Some).map_err(wrong)
}

/// The driver knows three of libpq's six words for `sslmode`, so that one is taken out first. Its errors are not passed on: they can
/// repeat parts of a URL that has a password in it.
fn from_url(url: &str) -> Result<(tokio_postgres::Config, Option<String>), ConfigError> {
    let hint = "write postgres://USER:PASSWORD@HOST:5432/NAME, with special characters of the password percent-encoded";
    let wrong = |problem| ConfigError::new("DATABASE_URL", problem, hint);
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        return Err(wrong("does not begin with postgres://"));
    }
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let (ssl_mode, rest): (Vec<&str>, Vec<&str>) =
        query.split('&').filter(|pair| !pair.is_empty()).partition(|pair| pair.starts_with("sslmode="));
    let ssl_mode = ssl_mode.last().map(|pair| pair["sslmode=".len()..].to_owned());
    let driver: tokio_postgres::Config =
        format!("{address}?{}", rest.join("&")).parse().map_err(|_| wrong("cannot be read"))?;
    for (missing, problem) in [
        (driver.get_hosts().is_empty(), "names no host"),
        (driver.get_user().is_none(), "names no user"),
        (driver.get_dbname().is_none(), "names no database"),
        (!driver.get_hostaddrs().is_empty(), "has a hostaddr, which would escape the check of the host's certificate"),
    ] {
        if missing {
            return Err(wrong(problem));
        }
    }
    Ok((driver, ssl_mode))
}

fn from_parts(env: Lookup<'_>) -> Result<(tokio_postgres::Config, Option<String>), ConfigError> {
    let hint = "set DATABASE_URL, or DB_HOST, DB_PORT, DB_NAME, DB_USERNAME and DB_PASSWORD";
    let need = |name| get(env, name).ok_or_else(|| ConfigError::new(name, "is not set", hint));
    if get(env, "DB_HOST").is_none() {
        return Err(ConfigError::new("DATABASE_URL", "is not set, and neither is DB_HOST", hint));
    }
    let mut driver = tokio_postgres::Config::new();
    let port = get(env, "DB_PORT").unwrap_or_else(|| "5432".to_owned());
    let port = port.trim().parse().map_err(|_| ConfigError::new("DB_PORT", "is no port number", hint))?;
    driver.host(need("DB_HOST")?.trim()).port(port).dbname(need("DB_NAME")?).user(need("DB_USERNAME")?);
    // A password may begin or end with blanks: it is taken as it is.
    if let Some(password) = env("DB_PASSWORD").filter(|password| !password.is_empty()) {
        driver.password(password);
    }
    Ok((driver, get(env, "DB_SSLMODE").map(|word| word.trim().to_owned())))
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;
