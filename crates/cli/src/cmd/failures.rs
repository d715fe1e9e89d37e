//! `tenure failures`: failed jobs, counted by queue, kind and error.

use tenure::Client;
use tenure_core::count::grouped;
use tenure_core::requests::{FailureGroup, ListFailures};
use tenure_core::time::Moment;

use crate::args::jobs::FailuresArgs;
use crate::exit::Failure;
use crate::output::Output;
use crate::output::clock;
use crate::output::table::{Table, when};

/// Shows the groups, those with the most jobs first.
pub async fn run(client: &Client, out: Output, args: FailuresArgs) -> Result<(), Failure> {
    let FailuresArgs { queue, kind, finished_after, max } = args;
    let one_queue = queue.is_some();
    let request = ListFailures { queue, kind, finished_after, max };
    let found = client.run(request).await?;
    out.answer(&found, |found| people(&found.items, one_queue, clock::now()))?;
    if found.partial && !out.json {
        crate::output::hint("only 10,000 failed jobs were read; there are more");
    }
    Ok(())
}

/// The groups for people, with their queue if more than one was requested.
fn people(groups: &[FailureGroup], one_queue: bool, now: Moment) -> String {
    const COUNT: &str = "COUNT";
    let counts: Vec<String> = groups.iter().map(|group| grouped(group.count)).collect();
    let width = counts.iter().map(String::len).max().unwrap_or(0).max(COUNT.len());
    // Numbers are read from their last digit.
    let right = |text: &str| format!("{text:>width$}");
    let head = right(COUNT);
    let columns: &[&str] = if one_queue {
        &[&head, "ERROR", "LAST", "KIND", "ONE OF THEM"]
    } else {
        &[&head, "ERROR", "LAST", "QUEUE", "KIND", "ONE OF THEM"]
    };
    let mut table = Table::new(columns);
    for (group, count) in groups.iter().zip(counts) {
        let count = right(&count);
        let (error, last) = (group.error.clone(), when(group.last_at, now));
        let (kind, job) = (group.kind.clone(), group.job.to_string());
        if one_queue {
            table.row([count, error, last, kind, job]);
        } else {
            table.row([count, error, last, group.queue.to_string(), kind, job]);
        }
    }
    table.render("no failed jobs")
}
