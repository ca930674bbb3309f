//! Whose account is this.

use super::{Answer, Aws, CloudError, Whoami};
use crate::model::Identity;

impl Whoami for Aws {
    async fn identity(&self) -> Answer<Identity> {
        let answer = self.sts.get_caller_identity().send().await;
        let answer = answer.map_err(|e| CloudError::new("sts:GetCallerIdentity", "the caller", &e))?;
        Ok(Identity {
            account: answer.account.unwrap_or_default(),
            arn: answer.arn.unwrap_or_default(),
            region: self.region.clone(),
        })
    }
}
