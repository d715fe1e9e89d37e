//! All queues, as a table.

use std::cmp::Reverse;

use maud::{Markup, html};
use tenure_core::count::grouped;
use tenure_core::requests::ListQueues;
use tenure_core::settings::QueueView;

use super::{PageRow, Section, draw};
use crate::attention::OLD;
use crate::language::sentences;
use crate::show::{bar, command, empty, for_people, number_cell, pager, scroll_table};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Queues", "队列";
    none: "There is no queue yet. A queue exists from its first use: push a job to it, or start a worker for it.",
        "还没有队列。队列在首次使用时出现：推送一个任务或启动一个工作进程即可。";
    queue: "Queue", "队列";
    jobs: "Jobs", "任务";
    ready: "Ready", "就绪";
    blocked: "Blocked", "受阻";
    scheduled: "Scheduled", "已定时";
    dependent: "Dependent", "等待依赖";
    running: "Running", "运行中";
    oldest: "Oldest ready", "最早就绪";
    workers: "Workers", "工作进程";
    paused: "paused", "已暂停";
    none_asks: "no worker", "没有工作进程";
}

pub(super) const ROWS: &[PageRow] = &[PageRow::new(Section::Queues, "/queues").shows(draw!(show))];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let page = visit.page();
    let is_first = page.cursor.is_none();
    let mut list = visit.ask(ListQueues { page }).await?;
    // Only a complete list can be sorted.
    let is_whole = is_first && list.next.is_none() && !list.partial;
    let sort = is_whole.then(|| Sort::of(visit));
    if let Some(sort) = sort {
        sort.apply(&mut list.items);
    }
    let body = html! {
        div class="head" { h1 { (says.title()) } }
        section class="panel" {
            @if list.items.is_empty() { (empty(&says.none())) } @else { (table(visit, &list.items, sort)) }
            (pager(visit, "/queues", &[], list.next.as_deref(), list.partial))
        }
        (command(visit, &visit.command(&["queue"])))
    };
    Sheet::live(says.title(), body)
}

/// The order of the queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    Name,
    Ready,
    Running,
    Oldest,
}

impl Sort {
    const ALL: [Sort; 4] = [Sort::Name, Sort::Ready, Sort::Running, Sort::Oldest];

    /// The word in links.
    const fn word(self) -> &'static str {
        match self {
            Sort::Name => "name",
            Sort::Ready => "ready",
            Sort::Running => "running",
            Sort::Oldest => "oldest",
        }
    }

    /// The order that the visit asks for; by name without a valid one.
    fn of(visit: &Visit) -> Self {
        let column = visit.query.get("sort");
        Sort::ALL.into_iter().find(|sort| column == Some(sort.word())).unwrap_or(Sort::Name)
    }

    /// The most and the oldest first; equal ones by name.
    fn apply(self, queues: &mut [QueueView]) {
        queues.sort_by(|one, other| one.name.cmp(&other.name));
        match self {
            Sort::Name => {}
            Sort::Ready => queues.sort_by_key(|queue| Reverse(queue.counts.ready)),
            Sort::Running => queues.sort_by_key(|queue| Reverse(queue.counts.running)),
            Sort::Oldest => {
                queues.sort_by_key(|queue| (queue.oldest_ready_at.is_none(), queue.oldest_ready_at))
            }
        }
    }

    /// The direction of a sorted column, for HTML.
    const fn direction(self) -> &'static str {
        match self {
            Sort::Name => "ascending",
            // The column shows the age of the oldest job, not its moment.
            Sort::Ready | Sort::Running | Sort::Oldest => "descending",
        }
    }
}

/// Queues, one per row. `sort`: their order, if the heads of columns link to other orders.
pub(super) fn table(visit: &Visit, queues: &[QueueView], sort: Option<Sort>) -> Markup {
    let says = Says(visit.tongue);
    let head = |class: &str, text: String, by: Sort| {
        let is_by = sort == Some(by);
        html! {
            th scope="col" class=[(!class.is_empty()).then_some(class)] aria-sort=[is_by.then(|| by.direction())] {
                @match sort {
                    Some(_) => a href=(visit.link_with("/queues", &[("sort", by.word())])) { (text) },
                    None => (text),
                }
            }
        }
    };
    let heads = html! {
        (head("", says.queue(), Sort::Name))
        th scope="col" { (says.jobs()) }
        (head("num", says.ready(), Sort::Ready))
        th scope="col" class="num" { (says.blocked()) }
        th scope="col" class="num" { (says.scheduled()) }
        th scope="col" class="num" { (says.dependent()) }
        (head("num", says.running(), Sort::Running))
        (head("num", says.oldest(), Sort::Oldest))
        th scope="col" class="num" { (says.workers()) }
    };
    scroll_table(None, heads, html! { @for queue in queues { (row(visit, says, queue)) } })
}

fn row(visit: &Visit, says: Says, queue: &QueueView) -> Markup {
    let counts = &queue.counts;
    let parts = [
        ("ready", counts.ready),
        ("blocked", counts.blocked),
        ("scheduled", counts.scheduled),
        ("dependent", counts.dependent),
        ("running", counts.running),
    ];
    let oldest = queue.oldest_ready_at.map(|at| visit.since(at));
    let is_old = oldest.is_some_and(|age| age > OLD);
    html! {
        tr {
            th scope="row" {
                a href=(visit.to("queues", &queue.name)) { (queue.name) }
                @if queue.paused { " " span class="state paused" { (says.paused()) } }
            }
            td class="wide" { (bar(&parts, 0, false)) }
            @for n in [counts.ready, counts.blocked, counts.scheduled, counts.dependent, counts.running] {
                (number_cell(n))
            }
            td class="num" {
                @if let Some(age) = oldest {
                    span class=[is_old.then_some("blocked")] { (for_people(age)) }
                }
            }
            td class="num" {
                @match (queue.workers, counts.ready) {
                    (0, 1..) => span class="state failed" { (says.none_asks()) },
                    (workers, _) => (grouped(workers)),
                }
            }
        }
    }
}
