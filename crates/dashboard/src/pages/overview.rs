//! The overview: concerns, the most important numbers, the last hour or day as pictures, the queues.

use maud::{Markup, html};
use tenure_core::count::grouped;
use tenure_core::job::JobState;
use tenure_core::requests::{GetStats, ListWorkers, Page, Stats};

use super::pictures::{Picture, Pictures};
use super::{PageRow, Section, draw, queues};
use crate::attention;
use crate::language::sentences;
use crate::show::for_people;
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Overview", "总览";
    waiting: "Waiting", "等待中";
    blocked(n): "{n} waiting for a need", "{n} 个在需求队列中";
    running: "Running", "运行中";
    workers(n): "workers: {n}", "{n} 个工作进程";
    oldest: "Oldest ready", "最早就绪";
    none_ready: "none", "无";
    ended: "Runs", "已结束的运行";
    in_hour: "within the last hour", "过去一小时";
    in_day: "within the last day", "过去一天";
    failed: "Failed runs", "失败的运行";
    failed_kept(n): "jobs failed for good: {n}", "{n} 个任务最终失败";
    failed_jobs: "Failed jobs", "失败的任务";
    kept: "still kept", "仍保留";
    queues: "Queues", "队列";
    all_queues: "All queues", "全部队列";
}

pub(super) const ROWS: &[PageRow] = &[PageRow::new(Section::Overview, "/").shows(draw!(show))];

const QUEUES_SHOWN: usize = 8;
const PICTURES: [Picture; 3] = [Picture::Runs, Picture::Waits, Picture::OldestReady];

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let stats = visit.ask(GetStats).await?;
    let mut attention = attention::look(visit, &stats).await?;
    let pictures = Pictures::of(visit, None);
    let workers = visit.ask(ListWorkers { page: Page { max: 1_000, cursor: None } }).await?;
    let mut busiest = std::mem::take(&mut attention.queues);
    busiest.sort_by_key(|queue| {
        let counts = &queue.counts;
        std::cmp::Reverse(counts.ready + counts.blocked + counts.running)
    });
    busiest.truncate(QUEUES_SHOWN);
    let body = html! {
        div class="head" {
            h1 { (says.title()) }
            @if let Some(pictures) = &pictures { (pictures.tabs(visit, "/")) }
        }
        (attention::panel(visit, &attention))
        (tiles(visit, &stats, workers.items.len(), pictures.as_ref()))
        @if let Some(pictures) = &pictures { (pictures.draw(&PICTURES)) }
        section class="panel" {
            header { h2 { (says.queues()) } p { a href=(visit.link("/queues")) { (says.all_queues()) } } }
            (queues::table(visit, &busiest, None))
        }
    };
    Sheet::live(says.title(), body)
}

fn of(stats: &Stats, state: JobState) -> u64 {
    stats.jobs.get(&state).copied().unwrap_or_default()
}

fn tiles(visit: &Visit, stats: &Stats, workers: usize, pictures: Option<&Pictures>) -> Markup {
    let says = Says(visit.tongue);
    let blocked = of(stats, JobState::Blocked);
    let waiting = blocked
        + of(stats, JobState::Ready)
        + of(stats, JobState::Scheduled)
        + of(stats, JobState::Dependent);
    let oldest = stats.oldest_ready_at.map(|at| for_people(visit.since(at)));
    let oldest = oldest.unwrap_or_else(|| says.none_ready());
    let tile = |link: String, label: String, number: String, note: String| {
        html! {
            a class="tile" href=(link) {
                span class="label" { (label) }
                span class="big" { (number) }
                span class="note" { (note) }
            }
        }
    };
    let failed_kept = says.failed_kept(grouped(of(stats, JobState::Failed)));
    html! {
        div class="tiles" {
            (tile(
                visit.to_jobs("state:ready,blocked,scheduled,dependent"),
                says.waiting(), grouped(waiting), says.blocked(grouped(blocked)),
            ))
            (tile(
                visit.link("/leases"),
                says.running(), grouped(of(stats, JobState::Running)), says.workers(workers),
            ))
            (tile(visit.to_jobs("state:ready"), says.oldest(), oldest, String::new()))
            @match pictures {
                Some(pictures) => {
                    @let (good, bad) = pictures.ended();
                    @let over = if pictures.is_day { says.in_day() } else { says.in_hour() };
                    (tile(visit.to_jobs("state:succeeded"), says.ended(), grouped(good + bad), over))
                    (tile(visit.link("/failures"), says.failed(), share(bad, good + bad), failed_kept))
                },
                None => {
                    (tile(visit.link("/failures"), says.failed_jobs(),
                        grouped(of(stats, JobState::Failed)), says.kept()))
                },
            }
        }
    }
}

/// A part of a whole in per cent, with one decimal.
fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "0 %".to_owned(),
        whole => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_nothing_is_nothing() {
        for (part, whole, text) in [(0, 0, "0 %"), (1, 3, "33.3 %"), (512, 128_402, "0.4 %")] {
            assert_eq!(share(part, whole), text);
        }
    }
}
