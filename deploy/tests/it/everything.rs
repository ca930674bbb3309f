//! A job for which everything is said that can be said, and a key of one's own for its secret.

use serde_json::json;

use crate::scene::Scene;

/// A managed policy that is always there.
pub const BOUNDARY: &str = "arn:aws:iam::aws:policy/SecurityAudit";
/// A queue that need not be there: only its name is looked at.
pub const QUEUE: &str = "arn:aws:sqs:ap-northeast-2:123456789012:undelivered";

/// A job for which everything is said that can be said.
pub fn everything() -> Scene {
    let scene = Scene::set();
    say_everything(&scene);
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    scene
}

/// Says in a scene's `deploy.toml` everything that can be said.
pub fn say_everything(scene: &Scene) {
    let key = key(scene, "alias/secrets");
    let document = json!({
        "executionRoleArn": scene.world.execution_role, "taskRoleArn": scene.world.task_role, "networkMode": "awsvpc",
        "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "1024", "ephemeralStorage": { "sizeInGiB": 30 },
        "containerDefinitions": [{
            "name": scene.world.container, "image": "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/job:1",
            "entryPoint": ["/job"], "command": ["serve", "--all"], "environment": [{ "name": "A", "value": "1" }],
            "portMappings": [{ "containerPort": 8080, "protocol": "tcp" }], "stopTimeout": 60, "user": "65532",
            "readonlyRootFilesystem": true,
            "logConfiguration": { "logDriver": "awslogs", "options": {
                "awslogs-group": scene.world.log_group, "awslogs-region": "ap-northeast-2", "awslogs-stream-prefix": "app"
            } },
        }],
    });
    std::fs::write(scene.path().join("task.json"), document.to_string()).unwrap();
    let groups = format!("{:?}", scene.world.security_groups);
    scene.edit_config(|config| {
        *config = config
            .replace("container = ", "revision = \"latest\"\ntask_definition = \"task.json\"\ncontainer = ")
            .replace("assign_public_ip = true", &format!(
                "assign_public_ip = true\nsecurity_groups = {groups}\nenvironment = {{ MODE = \"monthly\" }}\n\
                 capacity_providers = [{{ name = \"FARGATE_SPOT\", weight = 2, base = 1 }}]\nplatform_version = \"1.4.0\"\n\
                 tags = {{ team = \"library\" }}"
            ))
            .replace("cron = ", &format!(
                "role_path = \"/jobs/\"\npermissions_boundary = \"{BOUNDARY}\"\ndead_letter_queue = \"{QUEUE}\"\n\
                 flexible_window = \"15m\"\ncron = "
            ))
            .replace("from = ", &format!("kms_key = \"{key}\"\nfrom = "));
    });
}

/// A key of one's own, by its ARN, with an alias.
pub fn key(scene: &Scene, alias: &str) -> String {
    let made = scene.call("kms", "CreateKey", &json!({}));
    let made = &made["KeyMetadata"];
    scene.call("kms", "CreateAlias", &json!({ "AliasName": alias, "TargetKeyId": made["KeyId"] }));
    made["Arn"].as_str().expect("an ARN").to_owned()
}
