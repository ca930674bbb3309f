//! The stage: everything that stands in for the outside world, for `cargo rehearse` and for the tests of both programs.
//!
//! * [`toolbox()`] prepares, once and under a file lock, what the stage needs below `<target directory>/rehearsal`.
//! * [`postgres`] starts a real PostgreSQL of our own, [`pgbouncer`] a pooler in front of it, [`namespace`] makes a network that can be cut; [`upstream`] stands in for data.go.kr, with its real faults;
//!   [`local_aws`] is a local AWS that really runs tasks and fires schedules.
//! * [`podman`] builds the real image from the real Dockerfile, and runs tasks from it.
//! * [`snapshot`] reads and invents months of the library data set, with the chance of [`dice`]; [`binaries`] builds the two programs.
//!
//! Architecture invariants: every server binds loopback only and ends with the process that started it, however that process
//! ends; no port is fixed; no `aws-*` crate is below this one, so that `ingest` and its tests never compile one.

pub mod binaries;
pub mod dice;
pub mod guardian;
pub mod local_aws;
pub mod namespace;
pub mod pgbouncer;
pub mod podman;
pub mod postgres;
pub mod snapshot;
mod toolbox;
pub mod upstream;

pub use toolbox::{RunDir, Toolbox, toolbox};

/// Runs a future to its end on a thread of its own, so that it works inside and outside of a runtime.
pub(crate) fn blocking<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(future)
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
