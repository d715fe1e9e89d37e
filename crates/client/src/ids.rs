//! Ids that the client makes: an id makes a call repeatable, and tells a process from others.
//!
//! They are random and sort by the time at which they were made; no reader may rely on that time. Their form is that of
//! [`tenure_engine_api::ids`], which is also that of the ids that a server makes.

use std::sync::OnceLock;

use tenure_core::lease::Worker;
use tenure_core::names::{JobId, RequestId, WorkerId};
use tenure_engine_api::ids::{ALPHABET, written};
use uuid::Uuid;

fn fresh(prefix: &str) -> String {
    written(prefix, Uuid::now_v7().as_u128())
}

/// A new job's id: `job_` and 26 digits.
pub fn job_id() -> JobId {
    made(JobId::parse, "job_")
}

/// A new lease call's id: `req_` and 26 digits.
pub fn request_id() -> RequestId {
    made(RequestId::parse, "req_")
}

fn made<T, E>(parse: impl Fn(&str) -> Result<T, E>, prefix: &str) -> T {
    loop {
        // The form is always right; a loop shows it without a panic in the library.
        if let Ok(id) = parse(&fresh(prefix)) {
            return id;
        }
    }
}

/// This process as a worker: its host and pid, and an id that is the same for as long as it lives. The id begins with
/// host and pid, since lists of holders show it, and ends at random: no later process can take over such a name.
pub fn this_process() -> &'static Worker {
    static PROCESS: OnceLock<Worker> = OnceLock::new();
    PROCESS.get_or_init(|| {
        let host = gethostname::gethostname().into_string().ok().filter(|host| !host.is_empty());
        let pid = std::process::id();
        Worker {
            id: Some(worker_id(host.as_deref(), pid)),
            host,
            pid: Some(pid),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }
    })
}

/// Digits at the end of a worker's id: 60 bits, beside the host and the pid.
const RANDOM_DIGITS: usize = 12;

fn worker_id(host: Option<&str>, pid: u32) -> WorkerId {
    let fits = |c: &char| c.is_ascii_alphanumeric() || "-._".contains(*c);
    let host: String = host.unwrap_or_default().chars().filter(fits).take(64).collect();
    let host = if host.is_empty() { "worker".to_owned() } else { host };
    loop {
        let digits = fresh("");
        let random = &digits[digits.len() - RANDOM_DIGITS..];
        // The form is always right; see `made`.
        if let Ok(id) = WorkerId::parse(&format!("{host}:{pid}:{random}")) {
            return id;
        }
    }
}

/// The host and the pid of a holder, which people use to tell processes apart: the start of the id of [`this_process`].
/// An id of another form is returned whole.
pub fn holder_shown(holder: &str) -> &str {
    let Some((shown, random)) = holder.rsplit_once(':') else { return holder };
    let is_ours = random.len() == RANDOM_DIGITS
        && random.bytes().all(|c| ALPHABET.contains(&c))
        && shown.rsplit_once(':').is_some_and(|(_, pid)| pid.parse::<u32>().is_ok());
    if is_ours { shown } else { holder }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_30_characters_sort_by_time_and_never_repeat() {
        let made: Vec<String> = (0..1_000).map(|_| job_id().to_string()).collect();
        let mut sorted = made.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(made, sorted);
        for id in made {
            assert_eq!(id.len(), 30);
            assert!(id[4..].bytes().all(|c| ALPHABET.contains(&c)), "{id}");
        }
    }

    #[test]
    fn a_process_has_one_worker_id() {
        assert_eq!(this_process(), this_process());
        let (first, second) = (worker_id(Some("host"), 7), worker_id(Some("host"), 7));
        assert_ne!(first, second);
        let shown = holder_shown(this_process().holder());
        assert!(shown.ends_with(&format!(":{}", std::process::id())), "{shown}");
    }

    #[test]
    fn a_holder_is_shown_by_its_host_and_pid() {
        for (host, shown) in [
            (Some("web-1.example"), "web-1.example:7"),
            (Some("a:b c/ü"), "abc:7"),
            (Some("ü"), "worker:7"),
            (None, "worker:7"),
        ] {
            assert_eq!(holder_shown(worker_id(host, 7).as_str()), shown);
        }
        for name in ["worker_01jd8x3k9mf5wt2c6h4vbqzr7e", "crawler", "a:b", "a:7:crawler", ""] {
            assert_eq!(holder_shown(name), name);
        }
    }
}
