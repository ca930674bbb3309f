//! The clients, built once: profiles and regions as the SDK finds them, TLS with ring.

use aws_config::{BehaviorVersion, Region};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

/// The real AWS.
#[derive(Debug, Clone)]
pub struct Aws {
    pub(super) ecs: aws_sdk_ecs::Client,
    pub(super) iam: aws_sdk_iam::Client,
    pub(super) logs: aws_sdk_cloudwatchlogs::Client,
    pub(super) scheduler: aws_sdk_scheduler::Client,
    pub(super) ssm: aws_sdk_ssm::Client,
    pub(super) sts: aws_sdk_sts::Client,
    /// The region that the clients speak to.
    pub(super) region: String,
}

impl Aws {
    /// Builds the clients for one region; asks AWS nothing yet.
    pub async fn connect(region: &str, profile: Option<&str>, endpoint_url: Option<&str>) -> anyhow::Result<Aws> {
        let http =
            aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let mut loader =
            aws_config::defaults(BehaviorVersion::latest()).region(Region::new(region.to_owned())).http_client(http);
        if let Some(profile) = profile {
            loader = loader.profile_name(profile);
        }
        if let Some(url) = endpoint_url {
            loader = loader.endpoint_url(url);
        }
        let config = loader.load().await;
        Ok(Aws {
            ecs: aws_sdk_ecs::Client::new(&config),
            iam: aws_sdk_iam::Client::new(&config),
            logs: aws_sdk_cloudwatchlogs::Client::new(&config),
            scheduler: aws_sdk_scheduler::Client::new(&config),
            ssm: aws_sdk_ssm::Client::new(&config),
            sts: aws_sdk_sts::Client::new(&config),
            region: region.to_owned(),
        })
    }
}
