//! A world in memory, behind the same traits as AWS, that fills in the same defaults: for properties over thousands of worlds.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use deploy::cloud::{
    Answer, CloudError, Clusters, ErrorKind, LogGroups, Parameters, Receipts, Roles, Schedules, TaskDefinitions, Whoami,
};
use deploy::model::{
    Elsewhere, Group, Identity, NewRole, Parameter, ParameterType, PolicyDocument, Role, RolePolicies, Schedule, Tags,
    TaskDefinition,
};
use deploy::secret::SecretValue;
use serde_json::{Map, Value, json};

pub const ACCOUNT: &str = "123456789012";
pub const REGION: &str = "ap-northeast-2";

/// Everything that is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct World {
    pub parameters: BTreeMap<String, Parameter>,
    pub families: BTreeMap<String, Vec<TaskDefinition>>,
    pub roles: BTreeMap<String, Role>,
    pub policies: BTreeMap<(String, String), PolicyDocument>,
    pub groups: BTreeMap<String, Tags>,
    pub schedules: BTreeMap<(String, String), Schedule>,
    /// Receipts and records, by their parameters' names.
    pub texts: BTreeMap<String, String>,
}

/// The world, with a count of writes, and a write at which it breaks off.
#[derive(Debug)]
pub struct Memory {
    world: RefCell<World>,
    writes: RefCell<usize>,
    break_at: Option<usize>,
}

impl Memory {
    pub fn new(world: World, break_at: Option<usize>) -> Memory {
        Memory { world: RefCell::new(world), writes: RefCell::new(0), break_at }
    }

    pub fn world(&self) -> World {
        self.world.borrow().clone()
    }

    /// What somebody else does.
    pub fn change(&self, change: impl FnOnce(&mut World)) {
        change(&mut self.world.borrow_mut());
    }

    /// The same world, which breaks off at another write.
    pub fn breaking(&self, at: Option<usize>) -> Memory {
        Memory::new(self.world(), at)
    }

    fn read<T>(&self, thing: &str, get: impl FnOnce(&World) -> Option<T>) -> Answer<T> {
        get(&self.world.borrow()).ok_or_else(|| error(thing, ErrorKind::NotFound, "NotFound"))
    }

    fn write<T>(&self, thing: &str, change: impl FnOnce(&mut World) -> Answer<T>) -> Answer<T> {
        let nth = self.writes.replace_with(|count| *count + 1);
        if self.break_at == Some(nth) {
            return Err(error(thing, ErrorKind::Other, "InternalServerException"));
        }
        change(&mut self.world.borrow_mut())
    }
}

fn error(thing: &str, kind: ErrorKind, said: &str) -> CloudError {
    CloudError { action: "memory:Call", thing: thing.to_owned(), kind, said: said.to_owned() }
}

fn missing(thing: &str) -> CloudError {
    error(thing, ErrorKind::NotFound, "NotFound")
}

/// A document as IAM returns it.
pub fn encoded(document: &PolicyDocument) -> PolicyDocument {
    PolicyDocument(percent_encoding::utf8_percent_encode(&document.0, percent_encoding::NON_ALPHANUMERIC).to_string())
}

/// A revision as ECS describes it: with its number, and the defaults filled in.
pub fn revision(members: &Map<String, Value>, tags: &Tags, number: usize) -> TaskDefinition {
    let mut members = members.clone();
    let family = members["family"].as_str().unwrap_or_default().to_owned();
    for container in members.get_mut("containerDefinitions").and_then(Value::as_array_mut).into_iter().flatten() {
        let container = container.as_object_mut().expect("a container");
        container.entry("cpu").or_insert(json!(0));
        container.entry("essential").or_insert(json!(true));
        for list in ["environment", "mountPoints", "portMappings", "systemControls", "volumesFrom"] {
            container.entry(list).or_insert(json!([]));
        }
    }
    members.insert("revision".into(), json!(number));
    members.insert("status".into(), json!("ACTIVE"));
    let arn = format!("arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/{family}:{number}");
    members.insert("taskDefinitionArn".into(), json!(arn));
    TaskDefinition { members, tags: tags.clone() }
}

impl Whoami for Memory {
    async fn identity(&self) -> Answer<Identity> {
        let arn = format!("arn:aws:iam::{ACCOUNT}:user/test");
        Ok(Identity { account: ACCOUNT.into(), arn, region: REGION.into() })
    }
}

impl Parameters for Memory {
    async fn parameter(&self, name: &str) -> Answer<Parameter> {
        self.read(name, |world| world.parameters.get(name).cloned())
    }

    async fn versions(&self, names: &BTreeSet<String>) -> Answer<BTreeMap<String, String>> {
        let world = self.world();
        let found =
            names.iter().filter_map(|name| Some((name.clone(), world.parameters.get(name)?.version.to_string())));
        Ok(found.collect())
    }

    async fn create_parameter(&self, name: &str, _value: &SecretValue, key: Option<&str>, tags: &Tags) -> Answer<i64> {
        self.write(name, |world| {
            if world.parameters.contains_key(name) {
                return Err(error(name, ErrorKind::Conflict, "ParameterAlreadyExists"));
            }
            let (kind, tags) = (ParameterType::SecureString, Some(tags.clone()));
            let key = key.map(str::to_owned);
            let made = Parameter { name: name.into(), kind, key, version: 1, written_ms: None, tags };
            world.parameters.insert(name.into(), made);
            Ok(1)
        })
    }

    async fn overwrite_parameter(&self, name: &str, _value: &SecretValue, key: Option<&str>) -> Answer<i64> {
        self.write(name, |world| {
            let found = world.parameters.get_mut(name).ok_or_else(|| missing(name))?;
            found.version += 1;
            found.key = key.map(str::to_owned);
            Ok(found.version)
        })
    }

    async fn tag_parameter(&self, name: &str, tags: &Tags) -> Answer<()> {
        self.write(name, |world| {
            let found = world.parameters.get_mut(name).ok_or_else(|| missing(name))?;
            found.tags.get_or_insert_default().extend(tags.clone());
            Ok(())
        })
    }
}

impl TaskDefinitions for Memory {
    async fn task_definition(&self, reference: &str) -> Answer<TaskDefinition> {
        let is_active = |one: &&TaskDefinition| one.text("status") == Some("ACTIVE");
        self.read(reference, |world| match reference.starts_with("arn:") {
            true => {
                world.families.values().flatten().find(|one| one.text("taskDefinitionArn") == Some(reference)).cloned()
            }
            false => world.families.get(reference)?.iter().rfind(is_active).cloned(),
        })
    }

    async fn register(&self, members: &Map<String, Value>, tags: &Tags) -> Answer<TaskDefinition> {
        let family = members["family"].as_str().unwrap_or_default();
        self.write(family, |world| {
            let revisions = world.families.entry(family.into()).or_default();
            revisions.push(revision(members, tags, revisions.len() + 1));
            Ok(revisions.last().cloned().expect("just pushed"))
        })
    }
}

impl Roles for Memory {
    async fn role(&self, name: &str) -> Answer<Role> {
        self.read(name, |world| world.roles.get(name).cloned())
    }

    async fn role_policy(&self, role: &str, policy: &str) -> Answer<PolicyDocument> {
        self.read(policy, |world| world.policies.get(&(role.into(), policy.into())).cloned())
    }

    async fn role_policies(&self, role: &str) -> Answer<RolePolicies> {
        self.read(role, |world| {
            let inline = world.policies.keys().filter(|(of, _)| of == role).map(|(_, policy)| policy.clone()).collect();
            world.roles.contains_key(role).then_some(RolePolicies { inline, attached: Vec::new() })
        })
    }

    async fn policy_version(&self, _arn: &str) -> Answer<String> {
        Ok("v1".into())
    }

    async fn create_role(&self, role: &NewRole) -> Answer<()> {
        let NewRole { name, path, trust, boundary, tags } = role.clone();
        self.write(&role.name, |world| {
            let arn = format!("arn:aws:iam::{ACCOUNT}:role{path}{name}");
            match world.roles.insert(name, Role { arn, trust: encoded(&trust), boundary, tags }) {
                None => Ok(()),
                Some(_) => Err(error(&role.name, ErrorKind::Conflict, "EntityAlreadyExists")),
            }
        })
    }

    async fn put_boundary(&self, role: &str, boundary: &str) -> Answer<()> {
        self.write(role, |world| {
            world.roles.get_mut(role).ok_or_else(|| missing(role))?.boundary = Some(boundary.into());
            Ok(())
        })
    }

    async fn update_trust(&self, role: &str, trust: &PolicyDocument) -> Answer<()> {
        self.write(role, |world| {
            world.roles.get_mut(role).ok_or_else(|| missing(role))?.trust = encoded(trust);
            Ok(())
        })
    }

    async fn tag_role(&self, role: &str, tags: &Tags) -> Answer<()> {
        self.write(role, |world| {
            world.roles.get_mut(role).ok_or_else(|| missing(role))?.tags.extend(tags.clone());
            Ok(())
        })
    }

    async fn put_role_policy(&self, role: &str, policy: &str, document: &PolicyDocument) -> Answer<()> {
        self.write(policy, |world| {
            world.policies.insert((role.into(), policy.into()), encoded(document));
            Ok(())
        })
    }

    async fn delete_role_policy(&self, role: &str, policy: &str) -> Answer<()> {
        self.write(policy, |world| {
            world.policies.remove(&(role.into(), policy.into()));
            Ok(())
        })
    }
}

impl Schedules for Memory {
    async fn group(&self, name: &str, _arn: &str) -> Answer<Group> {
        let group = |tags: &Tags| Group { name: name.into(), tags: tags.clone() };
        self.read(name, |world| world.groups.get(name).map(group))
    }

    async fn create_group(&self, name: &str, tags: &Tags) -> Answer<()> {
        self.write(name, |world| match world.groups.insert(name.into(), tags.clone()) {
            None => Ok(()),
            Some(_) => Err(error(name, ErrorKind::Conflict, "ConflictException")),
        })
    }

    async fn tag_group(&self, arn: &str, tags: &Tags) -> Answer<()> {
        let name = arn.rsplit('/').next().unwrap_or_default();
        self.write(name, |world| {
            world.groups.get_mut(name).ok_or_else(|| missing(name))?.extend(tags.clone());
            Ok(())
        })
    }

    async fn schedule(&self, group: &str, name: &str) -> Answer<Schedule> {
        self.read(name, |world| world.schedules.get(&(group.into(), name.into())).cloned())
    }

    async fn schedules_named(&self, name: &str) -> Answer<Vec<Elsewhere>> {
        let world = self.world.borrow();
        let named = world.schedules.iter().filter(|((_, one), _)| one == name);
        Ok(named.map(|((group, _), one)| Elsewhere { group: group.clone(), state: one.state() }).collect())
    }

    async fn create_schedule(&self, schedule: &Schedule) -> Answer<()> {
        self.put(schedule, true)
    }

    async fn update_schedule(&self, schedule: &Schedule) -> Answer<()> {
        self.put(schedule, false)
    }

    async fn delete_schedule(&self, group: &str, name: &str) -> Answer<()> {
        self.write(name, |world| {
            world.schedules.remove(&(group.into(), name.into())).map(drop).ok_or_else(|| missing(name))
        })
    }
}

impl Memory {
    fn put(&self, schedule: &Schedule, is_new: bool) -> Answer<()> {
        let text = |member: &str| schedule.text(member).unwrap_or("default").to_owned();
        let (group, name) = (text("GroupName"), text("Name"));
        self.write(&name, |world| {
            let found = world.schedules.contains_key(&(group.clone(), name.clone()));
            if found == is_new || !world.groups.contains_key(&group) {
                return Err(error(&name, ErrorKind::Conflict, "ConflictException"));
            }
            world.schedules.insert((group, name.clone()), stored(schedule));
            Ok(())
        })
    }
}

/// A schedule as Scheduler shows it: with the defaults filled in.
pub fn stored(schedule: &Schedule) -> Schedule {
    let mut members = schedule.writable();
    members.entry("State").or_insert(json!("ENABLED"));
    members.entry("ActionAfterCompletion").or_insert(json!("NONE"));
    members.insert("Arn".into(), json!("arn:aws:scheduler:..."));
    members.insert("CreationDate".into(), json!(1_764_000_000.0));
    Schedule(members)
}

impl LogGroups for Memory {
    async fn log_group(&self, name: &str) -> Answer<String> {
        Ok(name.to_owned())
    }
}

impl Clusters for Memory {
    async fn cluster(&self, _name: &str) -> Answer<String> {
        Ok("ACTIVE".to_owned())
    }
}

impl Receipts for Memory {
    async fn receipt(&self, name: &str) -> Answer<String> {
        self.read(name, |world| world.texts.get(name).cloned())
    }

    async fn receipts(&self, names: [&str; 2]) -> Answer<[Option<String>; 2]> {
        Ok(names.map(|name| self.world.borrow().texts.get(name).cloned()))
    }
}
