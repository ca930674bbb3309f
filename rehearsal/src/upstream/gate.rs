//! A gate before the answers: how a test stops a run at a known point without sleeping.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Held by the test. Dropping it releases whoever waits.
#[derive(Debug)]
pub struct Gate {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    counts: Mutex<Counts>,
    arrived: Condvar,
    open: watch::Sender<bool>,
}

#[derive(Debug)]
struct Counts {
    passes: usize,
    waiting: usize,
}

pub(super) fn new(passes: usize) -> (Gate, Arc<Inner>) {
    let counts = Mutex::new(Counts { passes, waiting: 0 });
    let inner = Arc::new(Inner { counts, arrived: Condvar::new(), open: watch::Sender::new(false) });
    (Gate { inner: inner.clone() }, inner)
}

impl Inner {
    pub(super) async fn pass(&self) {
        {
            let mut counts = self.counts.lock().expect("nobody panics with the counts");
            if counts.passes > 0 {
                counts.passes -= 1;
                return;
            }
            counts.waiting += 1;
            self.arrived.notify_all();
        }
        // The sender lives as long as this: waiting cannot fail.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}

impl Gate {
    /// Blocks until a request waits before the gate; panics after a minute.
    pub fn wait_for_request(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut counts = self.inner.counts.lock().expect("nobody panics with the counts");
        while counts.waiting == 0 {
            let left = deadline.checked_duration_since(Instant::now()).expect("a request arrives within a minute");
            counts = self.inner.arrived.wait_timeout(counts, left).expect("nobody panics with the counts").0;
        }
    }

    /// Lets everybody through from now on.
    pub fn release(&self) {
        self.inner.open.send_replace(true);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.release();
    }
}
