//! Threads that a store cannot do without: a panic in one of them ends the process.
//!
//! This lives here because all code that keeps a store depends on this crate. It knows nothing about the threads' work.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::{io, process};

/// The exit code of a process that ends because of a bug: `EX_SOFTWARE` of `sysexits.h`.
pub const BUG_EXIT_CODE: i32 = 70;

/// Starts a thread. If it panics, the process ends with [`BUG_EXIT_CODE`].
///
/// A dead thread is worse than a dead process: its locks protect half-done work, other threads wait for it, calls get
/// 503 for good, and nothing restarts a living process. Panics of single calls are not for this: the task of a call may
/// panic alone.
///
/// # Errors
/// The system starts no thread.
pub fn spawn_or_die<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let named = name.to_owned();
    Builder::new().name(name.to_owned()).spawn(move || or_die(&named, run))
}

/// The same for a scoped thread.
///
/// # Errors
/// The system starts no thread.
pub fn spawn_scoped_or_die<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    run: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let named = name.to_owned();
    Builder::new().name(name.to_owned()).spawn_scoped(scope, move || or_die(&named, run))
}

/// Runs a function; if it panics, the process ends.
pub fn or_die<T>(name: &str, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| die(&format!("{name} panicked: {}", message(&*panic))))
}

/// Ends the process because of a bug. The panic hook has already reported the place.
pub fn die(why: &str) -> ! {
    // Not through the log, which may be the cause of the panic.
    eprintln!(
        "error: this is a bug: {why}; the process ends, and all that was answered is in its store"
    );
    process::exit(BUG_EXIT_CODE);
}

/// The same for a task.
pub async fn task_or_die<T>(name: &str, task: impl Future<Output = T>) -> T {
    let mut task = Box::pin(task);
    poll_fn(|context| or_die(name, || task.as_mut().poll(context))).await
}

fn message(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "no message",
    }
}
