//! Where AWS is looked for when it is not at its own addresses: what is set wrongly would fail with every call, in the SDK's words,
//! or make it panic.

use aws_config::SdkConfig;
use aws_types::service_config::ServiceConfigKey;

use crate::exit::Stop;

/// The services that are called, those that credentials come from among them, by the names that the SDK has for them.
const SERVICES: [&str; 9] = ["STS", "SSO", "SSO OIDC", "ECS", "IAM", "CloudWatch Logs", "Scheduler", "SQS", "SSM"];
/// The variable of all services; that of one goes on with its name.
const VARIABLE: &str = "AWS_ENDPOINT_URL";

/// Refuses an address that is none: the flag's, and what the environment or the profile says of all services or of one.
pub(super) fn check(flag: Option<&str>, config: &SdkConfig) -> Result<(), Stop> {
    flag.map_or(Ok(()), |url| is_address("--endpoint-url", url))?;
    let Some(found) = config.service_config() else { return Ok(()) };
    SERVICES.into_iter().try_for_each(|service| {
        let key = ServiceConfigKey::builder().service_id(service).env(VARIABLE).profile("endpoint_url").build();
        let url = key.ok().and_then(|key| found.load_config(key));
        url.map_or(Ok(()), |url| is_address(&said_by(service), &url))
    })
}

fn said_by(service: &str) -> String {
    let of_one = format!("{VARIABLE}_{}", service.to_uppercase().replace(' ', "_"));
    let variable = [of_one, VARIABLE.to_owned()].into_iter().find(|name| std::env::var_os(name).is_some());
    variable.unwrap_or_else(|| "endpoint_url of the profile".to_owned())
}

fn is_address(said_by: &str, url: &str) -> Result<(), Stop> {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or_default();
    if host.is_empty() || host.contains(char::is_whitespace) {
        let what = format!("{said_by} is {url:?}, which is no address");
        return Err(Stop::usage(what, "write http://HOST:PORT or https://HOST, or leave it unset"));
    }
    Ok(())
}
