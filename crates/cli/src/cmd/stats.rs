//! `tenure stats`: totals.

use tenure::Client;
use tenure_core::job::JobState;
use tenure_core::requests::{GetStats, ScheduleStats, Stats};
use tenure_core::time::Moment;

use crate::exit::Failure;
use crate::output::clock;
use crate::output::page::Page;
use crate::output::table::{Table, when};
use crate::output::{Output, size};

/// Shows the totals of the namespace.
pub async fn run(client: &Client, out: Output) -> Result<(), Failure> {
    let stats = client.run(GetStats).await?;
    out.answer(&stats, people)
}

fn people(stats: &Stats) -> String {
    let now = clock::now();
    let states = JobState::ALL.map(JobState::as_str);
    let mut table = Table::new(&[&["QUEUE"], &states[..]].concat()).numbers(&states);
    for (queue, counts) in &stats.queues {
        let of = |state: &JobState| counts.get(state).copied().unwrap_or(0).to_string();
        table.row(std::iter::once(queue.to_string()).chain(JobState::ALL.iter().map(of)));
    }
    let all = |state: &JobState| stats.jobs.get(state).copied().unwrap_or(0).to_string();
    table.row(std::iter::once("(all)".to_owned()).chain(JobState::ALL.iter().map(all)));
    let mut page = Page::default();
    page.field("leases", stats.leases)
        .maybe("oldest ready", stats.oldest_ready_at.map(|at| when(at, now)))
        .maybe(
            "schedules",
            Some(schedules(&stats.schedules, now)).filter(|_| stats.schedules.count > 0),
        )
        .field("store", format!("{}, {}", stats.store.kind, size(stats.store.bytes)));
    table.render("") + "\n" + &page.render()
}

fn schedules(stats: &ScheduleStats, now: Moment) -> String {
    let ScheduleStats { count, paused, due, oldest_due_at } = stats;
    let since = oldest_due_at.map(|at| format!(", the oldest since {}", when(at, now)));
    format!("{count}, {paused} paused, {due} due{}", since.unwrap_or_default())
}
