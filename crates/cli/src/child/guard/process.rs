//! Processes of the guards, as `tenure` sees them: starts them, waits for them, and ends those that do not listen.
//!
//! A thread of its own talks to the guards: a `tenure` whose other threads hang, because nobody reads its stderr, must
//! still send them its heartbeats. On Linux this process also adopts the processes that a killed guard leaves behind.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use nix::unistd::Pid;
use tokio::process::Command;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, watch};

/// How often processes without a guard are looked at.
pub const LOOK: Duration = Duration::from_millis(20);

/// Children of this process that no guard left behind: the guards, and the children that it had before them.
static KNOWN: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// Whether orphans below this process become its children.
static ADOPTS: AtomicBool = AtomicBool::new(false);
static RUNTIME: Mutex<Option<Handle>> = Mutex::new(None);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runtime that talks to the guards. Its thread ends with the process.
///
/// # Errors
/// The system gives no thread, or no event queue for it.
pub fn runtime() -> io::Result<Handle> {
    let mut runtime = locked(&RUNTIME);
    if let Some(runtime) = &*runtime {
        return Ok(runtime.clone());
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::Builder::new().name("tenure-guards".to_owned()).spawn(move || {
        match Builder::new_current_thread().enable_all().build() {
            Ok(built) => {
                let _ = sender.send(Ok(built.handle().clone()));
                built.block_on(std::future::pending::<()>());
            }
            Err(error) => {
                let _ = sender.send(Err(error));
            }
        }
    })?;
    let handle = receiver.recv().map_err(io::Error::other)??;
    Ok(runtime.insert(handle).clone())
}

/// From now on orphans below this process become its children, so that [`end_adopted`] finds those that a killed guard
/// left behind. Not for a process whose CMD may leave something behind on purpose: that would be taken for such an
/// orphan.
#[cfg(target_os = "linux")]
pub fn adopt_orphans() {
    use super::descendants;
    // A shell that became this process by `exec` may have started some.
    locked(&KNOWN).extend(descendants::of(nix::unistd::getpid()).into_iter().map(Pid::as_raw));
    let adopts = nix::sys::prctl::set_child_subreaper(true).is_ok();
    ADOPTS.store(adopts, Ordering::Relaxed);
}

/// Elsewhere orphans cannot be adopted.
#[cfg(not(target_os = "linux"))]
pub fn adopt_orphans() {}

/// Ends the processes that killed guards left behind, and waits for them; at most for this long.
#[cfg(target_os = "linux")]
pub async fn end_adopted(most: Duration) {
    use super::descendants;
    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{WaitPidFlag, waitpid};
    use nix::unistd::getpid;

    if !ADOPTS.load(Ordering::Relaxed) {
        return;
    }
    let until = tokio::time::Instant::now() + most;
    loop {
        {
            // No guard is started meanwhile: its number would not be known yet.
            let known = locked(&KNOWN);
            let (children, all) = descendants::children_except(getpid(), &known);
            for pid in all {
                let _ = kill(pid, Signal::SIGKILL);
            }
            // Children of a parent that ends here are adopted, and found in the next round.
            for pid in &children {
                let _ = waitpid(*pid, Some(WaitPidFlag::WNOHANG));
            }
            if children.is_empty() || tokio::time::Instant::now() >= until {
                return;
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Elsewhere orphans cannot be adopted.
#[cfg(not(target_os = "linux"))]
pub async fn end_adopted(_most: Duration) {}

/// A guard's process. A task waits for it, even after this is dropped.
#[derive(Clone)]
pub struct GuardProcess {
    pid: Pid,
    kill: Arc<Notify>,
    exited: watch::Receiver<bool>,
}

impl GuardProcess {
    /// Starts one.
    ///
    /// # Errors
    /// The system gives no process.
    pub fn spawn(call: &mut Command) -> io::Result<Self> {
        let runtime = runtime()?;
        let _inside = runtime.enter();
        let mut known = locked(&KNOWN);
        let mut child = call.spawn()?;
        // It is there until somebody has waited for the process.
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.ok_or_else(|| io::Error::other("a process without a number"))?;
        known.insert(pid);
        drop(known);
        let kill = Arc::new(Notify::new());
        let (tell, exited) = watch::channel(false);
        let killed = kill.clone();
        runtime.spawn(async move {
            tokio::select! {
                _ = child.wait() => {}
                () = killed.notified() => {
                    let _ = child.start_kill();
                    let _ = child.wait().await;
                }
            }
            locked(&KNOWN).remove(&pid);
            tell.send_replace(true);
        });
        Ok(GuardProcess { pid: Pid::from_raw(pid), kill, exited })
    }

    /// Its number, for as long as it has not exited.
    pub fn pid(&self) -> Option<Pid> {
        (!*self.exited.borrow()).then_some(self.pid)
    }

    /// Ends it, if it has not ended; then the processes below it belong to nobody, or to this process.
    pub async fn end(&self) {
        self.kill.notify_one();
        let _ = self.exited.clone().wait_for(|exited| *exited).await;
    }
}
