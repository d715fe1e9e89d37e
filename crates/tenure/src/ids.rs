//! Ids that this side makes: by them a call can be repeated, and a process be told from others.
//!
//! They are random and sort by the moment they were made; nobody may read that moment back. Their
//! form is that of [`tenure_engine::ids`], which is also that of the ids that a server makes.

use std::sync::OnceLock;

use tenure_core::lease::Worker;
use tenure_core::names::{JobId, RequestId, WorkerId};
use tenure_engine::ids::written;
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
        // The form is always right; a loop says so without a panic in the library.
        if let Ok(id) = parse(&fresh(prefix)) {
            return id;
        }
    }
}

/// This process as a worker: a random id, the same for as long as it lives, with its host and pid.
/// Never a name that a later process could take over.
pub fn this_process() -> &'static Worker {
    static PROCESS: OnceLock<Worker> = OnceLock::new();
    PROCESS.get_or_init(|| Worker {
        id: Some(made(WorkerId::parse, "worker_")),
        host: gethostname::gethostname().into_string().ok().filter(|host| !host.is_empty()),
        pid: Some(std::process::id()),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_engine::ids::ALPHABET;

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
        assert!(this_process().holder().starts_with("worker_"));
    }
}
