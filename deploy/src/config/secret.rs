//! `[[job.NAME.secret]]`: what the container must know, where it is kept and where its value comes from.

use serde::Deserialize;
use toml::Spanned;

use super::Secret;
use super::place::{Here, Place, is_name, is_variable};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretTable {
    env: Spanned<String>,
    parameter: Spanned<String>,
    from: Spanned<String>,
    kms_key: Option<Spanned<String>>,
}

impl SecretTable {
    pub(super) fn into_secret(self, at: &Place<'_>, here: &Here<'_>) -> anyhow::Result<Secret> {
        let where_it_stands = self.parameter.span();
        let parameter = at.check_unseen(
            self.parameter,
            "parameter",
            "a parameter's name such as /app/key (an ARN is none)",
            |v| {
                let path = v.strip_prefix('/').unwrap_or_default();
                let reserved = path.split('/').next().is_some_and(|s| {
                    let s = s.to_ascii_lowercase();
                    s.starts_with("aws") || s.starts_with("ssm")
                });
                v.len() <= 900
                    && !reserved
                    && path.split('/').count() <= 15
                    && path.split('/').all(|s| is_name(s, "-_.", 900))
            },
        )?;
        if here.keeps(&parameter) {
            let hint = "deploy itself keeps what it knows of a run there: name another parameter";
            return Err(at.stop(Some(where_it_stands), format!("parameter {parameter} is not free"), hint));
        }
        let span = self.from.span();
        let from = self.from.into_inner().parse().map_err(|error: crate::secret::UnknownOrigin| {
            at.stop(Some(span), error.to_string(), "write env:NAME, file:PATH, fd:N, stdin or prompt")
        })?;
        let kms_key = match self.kms_key {
            Some(key) => Some(at.check_here(
                key,
                "kms_key",
                "a key's ARN, its id, or alias/NAME",
                &here.of_any_account(),
                |v| {
                    let whole = v.starts_with("arn:") || !v.contains(':');
                    whole
                        && (1..=256).contains(&v.len())
                        && v.bytes().all(|b| b.is_ascii_alphanumeric() || b":/_-".contains(&b))
                },
            )?),
            None => None,
        };
        Ok(Secret {
            kms_key,
            env: at.check_unseen(self.env, "env", "the name of a variable", is_variable)?,
            parameter,
            from,
        })
    }
}
