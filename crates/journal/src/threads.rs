//! Threads without which a store is not kept: a panic in one of them ends the process.
//!
//! It is here because all that keeps a store depends on this crate. It knows nothing of what a thread does.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::{io, process};

/// The exit code of a process that ends because of a bug: `EX_SOFTWARE` of `sysexits.h`.
pub const BUG_EXIT_CODE: i32 = 70;

/// Starts a thread. If it panics, the process ends with [`BUG_EXIT_CODE`].
///
/// A thread that is gone is worse than a process that is gone: its locks hold what it left half done, the others wait for it,
/// calls are answered 503 for good, and nothing restarts a process that lives. Panics of single calls do not belong here: the
/// task of a call may panic alone.
///
/// # Errors
/// The system gives no thread.
pub fn spawn_or_die<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let named = name.to_owned();
    Builder::new().name(name.to_owned()).spawn(move || or_die(&named, run))
}

/// The same for a thread that a scope waits for.
///
/// # Errors
/// The system gives no thread.
pub fn spawn_scoped_or_die<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    run: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let named = name.to_owned();
    Builder::new().name(name.to_owned()).spawn_scoped(scope, move || or_die(&named, run))
}

/// Runs something without which the process must not go on.
pub fn or_die<T>(name: &str, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| die(&format!("{name} panicked: {}", message(&*panic))))
}

/// Ends the process because of a bug. The hook of panics has said where it is.
pub fn die(why: &str) -> ! {
    // Not by the log, which may be what panicked.
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
