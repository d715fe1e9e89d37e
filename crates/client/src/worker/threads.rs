//! Threads of a run, for code that blocks: nothing can stop them, so the run is over only when they have ended.

use std::sync::Arc;

use tokio::sync::watch;

/// The number of running threads of one run. Starts at zero.
#[derive(Default)]
pub(super) struct RunThreads {
    running: Arc<watch::Sender<usize>>,
}

/// Counts one running thread; dropped when it ends.
pub(super) struct RunningThread(Arc<watch::Sender<usize>>);

impl Drop for RunningThread {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

impl RunThreads {
    /// Counts a thread until the result is dropped.
    pub(super) fn begin(&self) -> RunningThread {
        self.running.send_modify(|running| *running += 1);
        RunningThread(self.running.clone())
    }

    pub(super) fn any(&self) -> bool {
        *self.running.borrow() > 0
    }

    /// Returns when no thread runs.
    pub(super) async fn ended(&self) {
        // This holds the sender, so the wait cannot fail.
        let _ = self.running.subscribe().wait_for(|running| *running == 0).await;
    }
}
