//! Threads that let others go first. On Linux alone: elsewhere a thread has no priority of its own to give up.

/// By how much such a thread is nicer: on a machine that is busy it gets a third of what another thread gets, and all
/// of a processor that nobody else needs.
#[cfg(target_os = "linux")]
const NICER: i32 = 5;

/// The calling thread lets others go first until it ends. There is no way back without a right that servers do not have.
pub(crate) fn let_others_go_first() {
    #[cfg(target_os = "linux")]
    if let Err(why) = rustix::process::nice(NICER) {
        tracing::debug!("this thread keeps its priority: {why}");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{fs, thread};

    use super::*;

    /// How nice the calling thread is, as the system says: the 19th field, and the name in parentheses is the second.
    fn niceness() -> i32 {
        let stat = fs::read_to_string("/proc/thread-self/stat").expect("it can be read");
        let (_, behind) = stat.rsplit_once(')').expect("it has a name");
        behind.split_whitespace().nth(16).and_then(|nice| nice.parse().ok()).expect("a number")
    }

    #[test]
    fn a_thread_that_lets_others_go_first_changes_no_other() {
        let before = niceness();
        let there = thread::spawn(|| {
            let_others_go_first();
            niceness()
        });
        assert_eq!(there.join().expect("it ends"), (before + NICER).min(19));
        assert_eq!(niceness(), before);
    }
}
