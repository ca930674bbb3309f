//! No difference is missed: whatever this program decides is changed behind its back, field by field, and seen by the next plan.

use deploy::cloud::{Aws, Parameters, Roles, Schedules, TaskDefinitions};
use deploy::desired::{Desired, SCHEDULER_POLICY_NAME};
use deploy::model::{PolicyDocument, Schedule, Tags};
use deploy::normalise::Normalisers;
use deploy::plan::{Plan, Sign, Thing, Wish};
use deploy::secret::SecretValue;
use serde_json::{Value, json};

use crate::everything::{BOUNDARY, everything, key};
use crate::inside;
use crate::scene::{JOB, Scene};

/// Every way to a scalar of a document: `/Target/Input`.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(name, value)| leaves(value, &format!("{path}/{}", name.replace('/', "~1")), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, value)| leaves(value, &format!("{path}/{i}"), found));
        }
        _ => found.push(path.to_owned()),
    }
}

/// Another value that the service takes as well.
fn another(path: &str, value: &Value) -> Value {
    let by_path = [
        ("/ActionAfterCompletion", json!("DELETE")),
        ("/FlexibleTimeWindow/MaximumWindowInMinutes", json!(16)),
        ("/ScheduleExpression", json!("cron(5 4 1 * ? *)")),
        ("/ScheduleExpressionTimezone", json!("UTC")),
        ("/Target/RetryPolicy/MaximumEventAgeInSeconds", json!(7200)),
        ("/cpu", json!("512")),
        ("/memory", json!("2048")),
        ("/containerDefinitions/0/portMappings/0/protocol", json!("udp")),
    ];
    if let Some((_, other)) = by_path.into_iter().find(|(known, _)| *known == path) {
        return other;
    }
    match value {
        Value::String(text) => match text.as_str() {
            "Allow" => json!("Deny"),
            "2012-10-17" => json!("2008-10-17"),
            "ENABLED" => json!("DISABLED"),
            "DISABLED" => json!("ENABLED"),
            text => json!(format!("{text}0")),
        },
        Value::Number(number) => json!(number.as_i64().unwrap() + 1),
        Value::Bool(is) => json!(!is),
        other => panic!("{path} is {other}"),
    }
}

/// The document with one scalar changed, for each.
fn each_drift(document: &Value) -> Vec<(String, Value)> {
    let mut paths = Vec::new();
    leaves(document, "", &mut paths);
    let drift = |path: String| {
        let mut drifted = document.clone();
        let at = drifted.pointer_mut(&path).unwrap();
        *at = another(&path, at);
        (path, drifted)
    };
    paths.into_iter().map(drift).collect()
}

struct Watch<'a> {
    scene: &'a Scene,
    cloud: Aws,
    desired: Desired,
    seen: Vec<String>,
}

impl Watch<'_> {
    async fn plan(&self, disabled: bool) -> Plan {
        inside::planned(self.scene, Wish { disabled, ..Wish::default() }, Normalisers::default()).await
    }

    /// The plan says of this thing that it is not as wanted.
    async fn sees(&mut self, thing: Thing, field: &str) {
        let plan = self.plan(true).await;
        let moved =
            plan.items.iter().any(|item| item.thing == thing && (!item.steps.is_empty() || item.sign == Sign::Blocked));
        assert!(
            moved && !plan.is_empty(),
            "{} {field} drifted, and the plan does not see it: {plan:#?}",
            thing.as_str()
        );
        let silent = |item: &&deploy::plan::Item| item.sign == Sign::Change && item.details.is_empty();
        let silent = plan.items.iter().filter(|item| item.thing == thing).find(silent);
        assert!(silent.is_none(), "{} {field} drifted, and the plan does not say how: {silent:#?}", thing.as_str());
        self.seen.push(format!("{}: {field}", thing.as_str()));
    }

    async fn is_quiet(&self) {
        let plan = self.plan(false).await;
        assert!(plan.is_empty(), "after putting it right: {plan:#?}");
    }

    async fn schedule(&mut self) {
        let right = self.cloud.schedule(JOB, JOB).await.unwrap();
        let mut document = Value::Object(right.writable());
        for fixed in ["Name", "GroupName"] {
            document.as_object_mut().unwrap().remove(fixed);
        }
        let input: Value = serde_json::from_str(right.input().unwrap()).unwrap();
        document["Target"].as_object_mut().unwrap().remove("Input");
        let mut drifts = each_drift(&document);
        for (member, value) in [
            ("Description", json!("by hand")),
            ("EndDate", json!(4_000_000_000_u64)),
            ("StartDate", json!(4_000_000_000_u64)),
        ] {
            let mut drifted = document.clone();
            drifted[member] = value;
            drifts.push((format!("/{member}"), drifted));
        }
        let mut without = document.clone();
        without["Target"].as_object_mut().unwrap().remove("DeadLetterConfig");
        drifts.push(("/Target/DeadLetterConfig, removed".to_owned(), without));
        let mut off = document.clone();
        off["FlexibleTimeWindow"] = json!({ "Mode": "OFF" });
        drifts.retain(|(path, _)| path != "/FlexibleTimeWindow/Mode");
        drifts.push(("/FlexibleTimeWindow/Mode".to_owned(), off));
        let whole = |mut document: Value, input: &Value| {
            document["Name"] = json!(JOB);
            document["GroupName"] = json!(JOB);
            document["Target"]["Input"] = json!(input.to_string());
            Schedule(document.as_object().unwrap().clone())
        };
        // The role and the action are looked at by Scheduler before it takes a schedule.
        let refused = ["/Target/RoleArn", "/Target/Arn"];
        for (path, drifted) in drifts.into_iter().filter(|(path, _)| !refused.contains(&path.as_str())) {
            self.cloud.update_schedule(&whole(drifted, &input)).await.unwrap_or_else(|error| panic!("{path}: {error}"));
            self.sees(Thing::Schedule, &path).await;
        }
        let mut other_role = document.clone();
        self.cloud
            .create_role(&deploy::model::NewRole {
                name: "other".into(),
                path: "/".into(),
                trust: self.desired.trust(),
                boundary: None,
                tags: Tags::new(),
            })
            .await
            .unwrap();
        other_role["Target"]["RoleArn"] = json!("arn:aws:iam::123456789012:role/other");
        self.cloud.update_schedule(&whole(other_role, &input)).await.unwrap();
        self.sees(Thing::Schedule, "/Target/RoleArn").await;
        let mut other_action = document.clone();
        other_action["Target"]["Arn"] = json!("arn:aws:scheduler:::aws-sdk:ecs:stopTask");
        if self.cloud.update_schedule(&whole(other_action, &json!({ "Task": "x" }))).await.is_ok() {
            self.sees(Thing::Schedule, "/Target/Arn").await;
        }
        for (path, drifted) in each_drift(&input) {
            self.cloud
                .update_schedule(&whole(document.clone(), &drifted))
                .await
                .unwrap_or_else(|error| panic!("{path}: {error}"));
            self.sees(Thing::Schedule, &format!("/Target/Input{path}")).await;
        }
        let mut reordered = input.clone();
        reordered["Overrides"]["ContainerOverrides"][0]["Command"].as_array_mut().unwrap().reverse();
        self.cloud.update_schedule(&whole(document.clone(), &reordered)).await.unwrap();
        self.sees(Thing::Schedule, "the order of the command").await;
        self.cloud.update_schedule(&right).await.unwrap();
        self.is_quiet().await;
    }

    async fn roles(&mut self) {
        let role = self.desired.role.name.clone();
        let parsed = |document: &PolicyDocument| -> Value { serde_json::from_str(&document.0).unwrap() };
        for (path, drifted) in each_drift(&parsed(&self.desired.trust())) {
            if self.cloud.update_trust(&role, &PolicyDocument(drifted.to_string())).await.is_ok() {
                self.sees(Thing::Role, &format!("trust{path}")).await;
            }
        }
        self.cloud.update_trust(&role, &self.desired.trust()).await.unwrap();
        let document = self.cloud.task_definition(&self.scene.world.family).await.unwrap().members;
        let execution = self.scene.world.execution_role.rsplit('/').next().unwrap().to_owned();
        let policies = [
            (Thing::Role, role.clone(), SCHEDULER_POLICY_NAME.to_owned(), self.desired.scheduler_policy(&document)),
            (Thing::Policy, execution, self.desired.execution_policy_name(), self.desired.execution_policy()),
        ];
        for (thing, role, name, right) in policies {
            for (path, drifted) in each_drift(&parsed(&right)) {
                let drifted = PolicyDocument(drifted.to_string());
                self.cloud
                    .put_role_policy(&role, &name, &drifted)
                    .await
                    .unwrap_or_else(|error| panic!("{path}: {error}"));
                self.sees(thing, &format!("policy{path}")).await;
            }
            self.cloud.put_role_policy(&role, &name, &right).await.unwrap();
        }
        self.cloud.put_boundary(&role, "arn:aws:iam::aws:policy/ReadOnlyAccess").await.unwrap();
        self.sees(Thing::Role, "permissions boundary").await;
        self.cloud.put_boundary(&role, BOUNDARY).await.unwrap();
        self.is_quiet().await;
    }

    async fn tags(&mut self) {
        let (role, group) = (self.desired.role.name.clone(), self.desired.group_arn());
        let parameter = self.desired.parameters[0].name.clone();
        let right = self.desired.tags.clone();
        for key in right.keys() {
            let wrong = Tags::from([(key.clone(), "by-hand".to_owned())]);
            self.cloud.tag_role(&role, &wrong).await.unwrap();
            self.sees(Thing::Role, &format!("tag {key}")).await;
            self.cloud.tag_role(&role, &right).await.unwrap();
            self.cloud.tag_group(&group, &wrong).await.unwrap();
            self.sees(Thing::Group, &format!("tag {key}")).await;
            self.cloud.tag_group(&group, &right).await.unwrap();
            // A parameter that is not ours is used as it is: only what is ours is put right.
            if key == "team" {
                self.cloud.tag_parameter(&parameter, &wrong).await.unwrap();
                self.sees(Thing::Parameter, &format!("tag {key}")).await;
                self.cloud.tag_parameter(&parameter, &right).await.unwrap();
            }
        }
        let value =
            || SecretValue::new(b"value".to_vec()).map(|(value, _)| value).unwrap_or_else(|error| panic!("{error}"));
        let right_key = self.desired.parameters[0].kms_key.clone().unwrap();
        self.cloud
            .overwrite_parameter(&parameter, &value(), Some(key(self.scene, "alias/another").as_str()))
            .await
            .unwrap();
        self.sees(Thing::Parameter, "key").await;
        self.cloud.overwrite_parameter(&parameter, &value(), Some(&right_key)).await.unwrap();
        self.is_quiet().await;
    }

    async fn task_definition(&mut self) {
        let right = self.cloud.task_definition(&self.scene.world.family).await.unwrap();
        let mut document = Value::Object(right.writable());
        document.as_object_mut().unwrap().remove("family");
        for (path, mut drifted) in each_drift(&document) {
            drifted["family"] = json!(self.scene.world.family);
            match self.cloud.register(drifted.as_object().unwrap(), &right.tags).await {
                Ok(_) => self.sees(Thing::TaskDefinition, &path).await,
                // What no revision can have cannot drift.
                Err(_) => continue,
            }
        }
        self.cloud.register(&right.writable(), &right.tags).await.unwrap();
    }
}

#[test]
fn whatever_is_decided_here_and_changed_elsewhere_is_seen() {
    let scene = everything();
    inside::run(async {
        let (cloud, desired) = (inside::cloud(&scene).await, inside::desired(&scene));
        let mut watch = Watch { scene: &scene, cloud, desired, seen: Vec::new() };
        watch.schedule().await;
        watch.roles().await;
        watch.tags().await;
        watch.task_definition().await;
        // The list is the figure: so many fields are managed, were drifted, and were seen.
        watch.seen.sort();
        insta::with_settings!({ filters => Scene::filters(), omit_expression => true }, {
            insta::assert_snapshot!("every_field_that_is_managed", format!("{} fields\n{}", watch.seen.len(), watch.seen.join("\n")));
        });
    });
}
