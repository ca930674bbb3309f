//! The clients, built once: profiles and regions as the SDK finds them, TLS with ring.

use std::time::Duration;

use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::ProvideRegion;
use aws_config::profile::{ProfileFileCredentialsProvider, ProfileFileRegionProvider};
use aws_config::provider_config::ProviderConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_sts::config::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

use super::endpoint;
use crate::exit::Stop;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long one try of one call may take.
const ATTEMPT: Duration = Duration::from_secs(30);

/// The real AWS.
#[derive(Debug, Clone)]
pub struct Aws {
    pub(super) ecs: aws_sdk_ecs::Client,
    pub(super) iam: aws_sdk_iam::Client,
    pub(super) logs: aws_sdk_cloudwatchlogs::Client,
    pub(super) scheduler: aws_sdk_scheduler::Client,
    pub(super) sqs: aws_sdk_sqs::Client,
    pub(super) ssm: aws_sdk_ssm::Client,
    pub(super) sts: aws_sdk_sts::Client,
    /// The region that this machine is set to, if it is, else the one that the clients speak to.
    pub(super) region: String,
}

impl Aws {
    /// Builds the clients for one region; asks AWS nothing yet.
    pub async fn connect(region: &str, profile: Option<&str>, endpoint_url: Option<&str>) -> anyhow::Result<Aws> {
        let http =
            aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT).operation_attempt_timeout(ATTEMPT).build();
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new(region.to_owned()))
            .timeout_config(timeouts)
            // Else the SDK asks the environment and the profile, and panics at what other programs take: `retry_mode = legacy`.
            .retry_config(RetryConfig::standard())
            .http_client(http.clone());
        let mut named = None;
        if let Some(profile) = profile {
            // The SDK's own chain asks the environment first; whoever names a profile means it.
            let from_profile = ProviderConfig::default()
                .with_region(Some(Region::new(region.to_owned())))
                .with_http_client(http.clone());
            let credentials =
                ProfileFileCredentialsProvider::builder().configure(&from_profile).profile_name(profile).build();
            let credentials = SharedCredentialsProvider::new(credentials);
            named = Some((profile, credentials.clone()));
            loader = loader.profile_name(profile).credentials_provider(credentials);
        }
        if let Some(url) = endpoint_url {
            loader = loader.endpoint_url(url);
        }
        let config = loader.load().await;
        endpoint::check(endpoint_url, &config)?;
        // Before the first call, because the SDK buries what is wrong with a profile.
        if let Some((profile, credentials)) = named
            && credentials.provide_credentials().await.is_err()
        {
            let what = format!("profile `{profile}` gives no credentials");
            let hint = "is it in ~/.aws/config, and logged in? see: aws configure list-profiles";
            return Err(Stop::failed(what, hint).into());
        }
        let set = set_region(profile).await.unwrap_or_else(|| region.to_owned());
        Ok(Aws::new(&config, set))
    }

    /// Clients of a configuration that was loaded elsewhere. `set_region` is the region that this machine is set to.
    pub fn new(config: &SdkConfig, set_region: String) -> Aws {
        Aws {
            ecs: aws_sdk_ecs::Client::new(config),
            iam: aws_sdk_iam::Client::new(config),
            logs: aws_sdk_cloudwatchlogs::Client::new(config),
            scheduler: aws_sdk_scheduler::Client::new(config),
            sqs: aws_sdk_sqs::Client::new(config),
            ssm: aws_sdk_ssm::Client::new(config),
            sts: aws_sdk_sts::Client::new(config),
            region: set_region,
        }
    }
}

/// The region that the environment or the profile names. The SDK's own chain would also ask the machine, which takes seconds where
/// there is no metadata service.
pub(crate) async fn set_region(profile: Option<&str>) -> Option<String> {
    let mut from_profile = ProfileFileRegionProvider::builder();
    if let Some(profile) = profile {
        from_profile = from_profile.profile_name(profile);
    }
    let said = [EnvironmentVariableRegionProvider::new().region().await, from_profile.build().region().await];
    // A variable of CI that was never filled in says nothing.
    said.into_iter().flatten().map(|region| region.to_string()).find(|region| !region.is_empty())
}
