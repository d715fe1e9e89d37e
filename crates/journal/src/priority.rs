//! Lowers the priority of threads. Only on Linux: elsewhere a thread has no priority of its own.

/// The added niceness: on a busy machine such a thread gets a third of the share of another thread, and all
/// of a processor that no other thread needs.
#[cfg(target_os = "linux")]
const NICER: i32 = 5;

/// Lowers the priority of the calling thread until it ends. Raising it again needs a right that servers do not have.
pub fn let_others_go_first() {
    #[cfg(target_os = "linux")]
    if let Err(why) = rustix::process::nice(NICER) {
        tracing::debug!("this thread keeps its priority: {why}");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{fs, thread};

    use super::*;

    /// The niceness of the calling thread, as the system reports it: the 19th field; the second is the name in
    /// parentheses.
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
