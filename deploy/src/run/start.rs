//! Starting the run.

use std::time::Duration;

use super::ending::Ending;
use crate::cloud::{Aws, CloudError, ErrorKind};
use crate::explain::may_be_propagation;
use crate::interrupt::Interrupt;
use crate::model::run_task::Run;
use crate::model::task::Task;

/// How long a new role may take until ECS can assume it.
pub const ROLE_PROPAGATION: Duration = Duration::from_secs(120);

/// Starts the task. A role that was made seconds ago cannot be assumed yet; that is waited for, and nothing else is tried twice
/// (the SDK repeats what is safe to repeat: the client token is in the request).
///
/// The outer error: no answer came, and nobody knows whether a task was started.
pub async fn start(aws: &Aws, run: &Run, patience: Duration) -> Result<Result<Task, Ending>, CloudError> {
    let begun = tokio::time::Instant::now();
    let mut pause = Duration::from_secs(1);
    let mut interrupt = Interrupt::listen();
    loop {
        if interrupt.came() {
            return Ok(Err(Ending::Interrupted));
        }
        match aws.run_task(run).await {
            Err(error) if may_be_propagation(&error) && begun.elapsed() < patience => {
                if pause == Duration::from_secs(1) {
                    err!("ECS cannot assume the task's role yet; waiting up to 2 minutes for IAM");
                }
                let _ = interrupt.sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(10));
            }
            Err(error)
                if matches!(error.kind, ErrorKind::NoCredentials | ErrorKind::Unreachable | ErrorKind::Failing) =>
            {
                return Err(error);
            }
            Err(error) => return Ok(Err(Ending::Refused(error))),
            Ok(answer) => return Ok(answer.map_err(Ending::NotPlaced)),
        }
    }
}
