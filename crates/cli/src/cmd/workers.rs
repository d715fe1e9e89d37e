//! `tenure workers`: the workers that asked for work within the last minute.

use tenure::Client;
use tenure_core::requests::{ListWorkers, WorkerView};

use crate::args::page::PageArgs;
use crate::cmd::holders;
use crate::cmd::next_page;
use crate::exit::Failure;
use crate::output::Output;
use crate::output::clock;
use crate::output::table::{Table, or_dash, when};

/// Lists the workers in a table.
pub async fn run(client: &Client, out: Output, page: PageArgs) -> Result<(), Failure> {
    let listed = client.run(ListWorkers { page: page.page() }).await?;
    next_page::answer(out, &listed, people)
}

fn people(workers: &[WorkerView]) -> String {
    let now = clock::now();
    let head = ["WORKER", "LEASES", "SEEN", "VERSION", "QUEUES", "ID"];
    let mut table = Table::new(&head).numbers(&["LEASES"]).ids(&["ID"]);
    for worker in workers {
        let queues: Vec<&str> = worker.queues.iter().map(|queue| queue.as_str()).collect();
        table.row([
            or_dash(holders::place(worker)),
            worker.leases.to_string(),
            when(worker.last_seen_at, now),
            or_dash(worker.version.as_ref()),
            queues.join(" "),
            worker.id.to_string(),
        ]);
    }
    table.render("no worker has asked for a job within the last minute")
}
