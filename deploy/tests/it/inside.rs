//! The library inside this process, speaking to a scene's local AWS.

use std::path::Path;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_sts::config::Credentials;
use deploy::cloud::Aws;
use deploy::config::Config;
use deploy::desired::Desired;
use deploy::normalise::Normalisers;
use deploy::observe::observe;
use deploy::plan::{Plan, Wish, plan};

use crate::scene::Scene;

/// Runs a future to its end.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Clients of a scene's local AWS.
pub async fn cloud(scene: &Scene) -> Aws {
    let config = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new(scene.world.region.clone()))
        .endpoint_url(scene.aws.endpoint())
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .load()
        .await;
    Aws::new(&config, scene.world.region.clone())
}

/// What a scene's `deploy.toml` wants.
pub fn desired(scene: &Scene) -> Desired {
    let path = scene.path().join("deploy.toml");
    let text = std::fs::read_to_string(&path).expect("deploy.toml");
    let config = Config::parse(&text, Path::new(&path)).expect("a good deploy.toml");
    let job = config.job(None).expect("one job");
    Desired::new(&config, job)
}

/// The plan of a scene, with these rules.
pub async fn planned(scene: &Scene, wish: Wish, normalisers: Normalisers) -> Plan {
    let (desired, cloud) = (desired(scene), cloud(scene).await);
    plan(&desired, &observe(&cloud, &desired).await.expect("it can be observed"), &wish, normalisers)
}
