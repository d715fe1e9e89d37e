//! Names of holders as people know them: `host:pid`, or the name that a worker was given.
//!
//! A lease names its holder by the id of its worker, which a process makes for itself. The ids of this repository's
//! clients begin with host and pid. For an id without them, host and pid stand in the list of workers, if the worker
//! was heard of within the last minute.

use std::collections::BTreeMap;

use tenure::Client;
use tenure::ids::holder_shown;
use tenure_core::bounds::LIST_MAX;
use tenure_core::requests::{ListWorkers, Page, WorkerView};

use crate::output::Output;

/// The beginning of an id that a process made for itself.
const MADE: &str = "worker_";

/// `host:pid` of the workers whose ids do not show it, by id.
#[derive(Debug, Default)]
pub struct Holders(BTreeMap<String, String>);

impl Holders {
    /// Requests the workers, if the output is for people and one of these holders has nothing but an id. If that fails,
    /// the ids are shown.
    pub async fn ask<'h>(
        client: &Client,
        out: Output,
        holders: impl IntoIterator<Item = &'h str>,
    ) -> Self {
        if out.json || !holders.into_iter().any(|holder| holder.starts_with(MADE)) {
            return Holders::default();
        }
        let page = Page { max: LIST_MAX, cursor: None };
        match client.run(ListWorkers { page }).await {
            Ok(listed) => Holders::of(&listed.items),
            Err(_) => Holders::default(),
        }
    }

    fn of(workers: &[WorkerView]) -> Self {
        let place = |worker: &WorkerView| {
            let id = worker.id.to_string();
            place(worker).filter(|_| id.starts_with(MADE)).map(|place| (id, place))
        };
        Holders(workers.iter().filter_map(place).collect())
    }

    /// The holder's name for people.
    pub fn name<'n>(&'n self, holder: &'n str) -> &'n str {
        self.0.get(holder).map_or(holder_shown(holder), String::as_str)
    }
}

/// `host:pid` of a worker.
pub fn place(worker: &WorkerView) -> Option<String> {
    Some(format!("{}:{}", worker.host.as_ref()?, worker.pid?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::names::WorkerId;
    use tenure_core::time::Moment;

    fn worker(id: &str, host: Option<&str>) -> WorkerView {
        WorkerView {
            id: WorkerId::parse(id).unwrap(),
            host: host.map(str::to_owned),
            pid: Some(7),
            version: None,
            queues: Vec::new(),
            leases: 1,
            last_seen_at: Moment::ZERO,
        }
    }

    #[test]
    fn a_generated_id_is_shown_as_host_and_pid_and_a_name_as_is() {
        let all =
            [worker("worker_1", Some("a")), worker("worker_2", None), worker("ann", Some("b"))];
        let holders = Holders::of(&all);
        for (id, name) in [
            ("worker_1", "a:7"),
            ("worker_2", "worker_2"),
            ("ann", "ann"),
            ("gone", "gone"),
            ("b:8:0123456789ab", "b:8"),
        ] {
            assert_eq!(holders.name(id), name);
        }
    }
}
