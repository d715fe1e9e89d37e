//! A panic in an essential thread or task ends the process; each test runs in a child process of its own.
#![allow(clippy::unwrap_used)]

use std::process::Command;
use std::thread;
use std::time::Duration;

use tenure_journal::threads::{BUG_EXIT_CODE, spawn_or_die, spawn_scoped_or_die, task_or_die};

const IN_CHILD: &str = "TENURE_TEST_PANICS_HERE";

/// Runs `panics` in a child process that runs only this test, and checks how it ends. It would otherwise live for a
/// minute.
fn ends_the_process(test: &str, panics: impl FnOnce()) {
    if std::env::var_os(IN_CHILD).is_some() {
        panics();
        thread::sleep(Duration::from_secs(60));
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let ended = child.args(["--exact", test, "--nocapture"]).env(IN_CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(BUG_EXIT_CODE), "{said}");
    assert!(said.contains("this is a bug: its name panicked: boom 7"), "{said}");
}

#[test]
fn a_panic_in_a_thread_ends_the_process() {
    ends_the_process("a_panic_in_a_thread_ends_the_process", || {
        drop(spawn_or_die("its name", || panic!("boom {}", 7)).unwrap());
    });
}

#[test]
fn a_panic_in_a_thread_of_a_scope_ends_the_process() {
    ends_the_process("a_panic_in_a_thread_of_a_scope_ends_the_process", || {
        thread::scope(|scope| {
            drop(spawn_scoped_or_die(scope, "its name", || panic!("boom {}", 7)).unwrap());
        });
    });
}

#[test]
fn a_panic_in_a_task_ends_the_process() {
    ends_the_process("a_panic_in_a_task_ends_the_process", || {
        let mut task = Box::pin(task_or_die("its name", async { panic!("boom {}", 7) }));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let _: std::task::Poll<()> = task.as_mut().poll(&mut context);
    });
}

#[test]
fn a_thread_that_ends_well_gives_its_value() {
    assert_eq!(spawn_or_die("its name", || 7).unwrap().join().unwrap(), 7);
}
