//! Workers: the processes that ask for jobs, and the runs of each.

use std::collections::BTreeMap;

use maud::{Markup, html};
use tenure_core::bounds::LIST_MAX;
use tenure_core::count::grouped;
use tenure_core::lease::LeaseSummary;
use tenure_core::requests::{ListLeases, ListWorkers, Page, WorkerView};

use super::{PageRow, Section, draw};
use crate::language::sentences;
use crate::show::{ago, command, empty, id, number_cell, pager, scroll_table};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Workers", "工作进程";
    what: "Processes that asked within the last minute.", "过去一分钟内请求过的进程。";
    none: "No worker asked within the last minute. Start one: tenure work QUEUE -- CMD",
        "过去一分钟内没有工作进程。启动一个：tenure work QUEUE -- CMD";
    worker: "Worker", "工作进程";
    host: "Host", "主机";
    pid(pid): "pid {pid}", "进程 {pid}";
    version: "Version", "版本";
    queues: "Queues", "队列";
    leases: "Leases", "租约";
    runs: "Runs", "运行";
    idle: "idle", "空闲";
    seen: "Seen", "最近出现";
    more(n): "and {n} more", "以及另外 {n} 个";
    partial: "Runs are shown for the oldest 1,000 leases only.", "运行内容仅显示最早的 1,000 个租约。";
}

pub(super) const ROWS: &[PageRow] =
    &[PageRow::new(Section::Workers, "/workers").shows(draw!(show))];

/// Jobs of a worker that its row names.
const RUNS_SHOWN: usize = 3;

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let list = visit.ask(ListWorkers { page: visit.page() }).await?;
    let request =
        ListLeases { page: Page { max: LIST_MAX, cursor: None }, ..ListLeases::default() };
    let leases = visit.ask(request).await?;
    let mut held: BTreeMap<&str, Vec<&LeaseSummary>> = BTreeMap::new();
    for lease in &leases.items {
        held.entry(&lease.holder).or_default().push(lease);
    }
    let body = html! {
        div class="head" { div { h1 { (says.title()) } p class="sub" { (says.what()) } } }
        section class="panel" {
            @if list.items.is_empty() { (empty(&says.none())) } @else {
                (table(visit, says, &list.items, &held))
            }
            @if leases.next.is_some() { p class="pager" { (says.partial()) } }
            (pager(visit, "/workers", &[], list.next.as_deref(), list.partial))
        }
        (command(visit, &visit.command(&["workers"])))
    };
    Sheet::live(says.title(), body)
}

fn table(
    visit: &Visit,
    says: Says,
    workers: &[WorkerView],
    held: &BTreeMap<&str, Vec<&LeaseSummary>>,
) -> Markup {
    let heads = html! {
        th scope="col" { (says.worker()) }
        th scope="col" { (says.host()) }
        th scope="col" { (says.version()) }
        th scope="col" { (says.queues()) }
        th scope="col" class="num" { (says.leases()) }
        th scope="col" { (says.runs()) }
        th scope="col" class="num" { (says.seen()) }
    };
    let rows = html! {
        @for worker in workers {
            (row(visit, says, worker, held.get(worker.id.as_str()).map_or(&[], Vec::as_slice)))
        }
    };
    scroll_table(None, heads, rows)
}

fn row(visit: &Visit, says: Says, worker: &WorkerView, held: &[&LeaseSummary]) -> Markup {
    let shown = &held[..held.len().min(RUNS_SHOWN)];
    let more = worker.leases.saturating_sub(shown.len() as u64);
    html! {
        tr {
            th scope="row" class="mono" {
                a href=(visit.link_with("/leases", &[("worker", worker.id.as_str())])) { (worker.id) }
            }
            td {
                @if let Some(host) = &worker.host { (host) }
                @if let Some(pid) = worker.pid { " " span class="faint" { (says.pid(pid)) } }
            }
            td class="soft" { @if let Some(version) = &worker.version { (version) } }
            td {
                @for queue in &worker.queues {
                    a class="chip" href=(visit.to("queues", queue)) { (queue) } " "
                }
            }
            (number_cell(worker.leases))
            td {
                @for lease in shown {
                    div {
                        @match &lease.job {
                            Some(job) => a class="mono" href=(visit.to("jobs", job)) { (id(job.as_str())) },
                            None => @for limit in &lease.limits {
                                a class="mono" href=(visit.to("limits", limit)) { (limit) } " "
                            },
                        }
                        " " span class="soft" { (ago(visit, lease.granted_at)) }
                    }
                }
                @if shown.is_empty() && worker.leases == 0 { span class="faint" { (says.idle()) } }
                @if more > 0 { span class="faint" { (says.more(grouped(more))) } }
            }
            td class="num soft" { (ago(visit, worker.last_seen_at)) }
        }
    }
}
