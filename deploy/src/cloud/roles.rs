//! Roles and their inline policies.

use aws_sdk_iam::types::Tag;

use super::{Answer, Aws, CloudError, ErrorKind, Roles};
use crate::model::{NewRole, PolicyDocument, Role, RolePolicies, Tags};

impl Roles for Aws {
    async fn role(&self, name: &str) -> Answer<Role> {
        let answer = self.iam.get_role().role_name(name).send().await;
        let answer = answer.map_err(|e| CloudError::new("iam:GetRole", name, &e))?;
        let role = answer.role.ok_or_else(|| CloudError::local("iam:GetRole", name, "the answer holds no role"))?;
        Ok(Role {
            arn: role.arn,
            boundary: role.permissions_boundary.and_then(|boundary| boundary.permissions_boundary_arn),
            trust: PolicyDocument(role.assume_role_policy_document.unwrap_or_default()),
            tags: role.tags.unwrap_or_default().into_iter().map(|tag| (tag.key, tag.value)).collect(),
        })
    }

    async fn role_policy(&self, role: &str, policy: &str) -> Answer<PolicyDocument> {
        let answer = self.iam.get_role_policy().role_name(role).policy_name(policy).send().await;
        let answer = answer.map_err(|e| CloudError::new("iam:GetRolePolicy", format!("{role}/{policy}"), &e))?;
        Ok(PolicyDocument(answer.policy_document))
    }

    async fn role_policies(&self, role: &str) -> Answer<RolePolicies> {
        let inline = self.iam.list_role_policies().role_name(role).send();
        let attached = self.iam.list_attached_role_policies().role_name(role).send();
        let (inline, attached) = tokio::join!(inline, attached);
        let inline = inline.map_err(|e| CloudError::new("iam:ListRolePolicies", role, &e))?;
        let attached = attached.map_err(|e| CloudError::new("iam:ListAttachedRolePolicies", role, &e))?;
        let attached = attached.attached_policies.unwrap_or_default();
        let attached = attached.into_iter().filter_map(|policy| policy.policy_arn).collect();
        Ok(RolePolicies { inline: inline.policy_names, attached })
    }

    async fn policy_version(&self, arn: &str) -> Answer<String> {
        let answer = self.iam.get_policy().policy_arn(arn).send().await;
        let policy = answer.map_err(|e| CloudError::new("iam:GetPolicy", arn, &e))?.policy;
        // One that is deleted and made anew under its name counts its versions from 1 again.
        let version = policy.and_then(|policy| Some(format!("{} {}", policy.policy_id?, policy.default_version_id?)));
        version.ok_or_else(|| CloudError::local("iam:GetPolicy", arn, "the answer names no version"))
    }

    async fn create_role(&self, role: &NewRole) -> Answer<()> {
        let NewRole { name, path, trust, boundary, tags } = role;
        let call = self.iam.create_role().role_name(name).path(path).assume_role_policy_document(&trust.0);
        let call = call.set_permissions_boundary(boundary.clone());
        let call = call.description(NewRole::DESCRIPTION);
        let answer = call.set_tags(Some(to_sdk(tags))).send().await;
        answer.map(drop).map_err(|e| CloudError::new("iam:CreateRole", name, &e))
    }

    async fn put_boundary(&self, role: &str, boundary: &str) -> Answer<()> {
        let call = self.iam.put_role_permissions_boundary().role_name(role).permissions_boundary(boundary);
        call.send().await.map(drop).map_err(|e| CloudError::new("iam:PutRolePermissionsBoundary", role, &e))
    }

    async fn update_trust(&self, role: &str, trust: &PolicyDocument) -> Answer<()> {
        let call = self.iam.update_assume_role_policy().role_name(role).policy_document(&trust.0);
        call.send().await.map(drop).map_err(|e| CloudError::new("iam:UpdateAssumeRolePolicy", role, &e))
    }

    async fn tag_role(&self, role: &str, tags: &Tags) -> Answer<()> {
        let call = self.iam.tag_role().role_name(role).set_tags(Some(to_sdk(tags)));
        call.send().await.map(drop).map_err(|e| CloudError::new("iam:TagRole", role, &e))
    }

    async fn put_role_policy(&self, role: &str, policy: &str, document: &PolicyDocument) -> Answer<()> {
        let call = self.iam.put_role_policy().role_name(role).policy_name(policy).policy_document(&document.0);
        let answer = call.send().await;
        answer.map(drop).map_err(|e| CloudError::new("iam:PutRolePolicy", format!("{role}/{policy}"), &e))
    }

    async fn delete_role_policy(&self, role: &str, policy: &str) -> Answer<()> {
        let answer = self.iam.delete_role_policy().role_name(role).policy_name(policy).send().await;
        match answer.map_err(|e| CloudError::new("iam:DeleteRolePolicy", format!("{role}/{policy}"), &e)) {
            Err(error) if error.kind != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn to_sdk(tags: &Tags) -> Vec<Tag> {
    let tag = |(key, value): (&String, &String)| Tag::builder().key(key).value(value).build().ok();
    tags.iter().filter_map(tag).collect()
}
