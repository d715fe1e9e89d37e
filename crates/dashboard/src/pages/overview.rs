//! The overview: what needs attention, the numbers that one looks at first, the last hour or day as pictures, the queues.

use maud::{Markup, html};
use tenure_core::count::grouped;
use tenure_core::job::JobState;
use tenure_core::requests::{GetStats, ListWorkers, Page, Stats};
use tenure_core::time::Span;

use super::{PageRow, Section, draw, queues};
use crate::attention;
use crate::history::Minute;
use crate::language::sentences;
use crate::show::{bars_of_two, for_people, lines_of_two};
use crate::visit::{Drawn, Sheet, Unanswered, Visit};

sentences! { Says;
    title: "Overview", "总览";
    hour: "Hour", "小时";
    day: "Day", "天";
    waiting: "Waiting", "等待中";
    blocked(n): "{n} in the line of a need", "{n} 个在需求队列中";
    running: "Running", "运行中";
    workers(n): "workers: {n}", "{n} 个工作进程";
    oldest: "Oldest ready", "最早就绪";
    none_ready: "none", "无";
    ended: "Runs", "已结束的运行";
    in_hour: "within the last hour", "过去一小时";
    in_day: "within the last day", "过去一天";
    failed: "Runs that failed", "失败的运行";
    failed_kept(n): "jobs failed for good: {n}", "{n} 个任务最终失败";
    failed_jobs: "Failed jobs", "失败的任务";
    kept: "that are kept", "仍保留";
    throughput_hour: "Runs per minute", "每分钟结束的运行";
    throughput_day: "Runs per 15 minutes", "每 15 分钟结束的运行";
    succeeded: "succeeded", "成功";
    pushed: "pushed", "推送";
    failed_word: "failed", "失败";
    wait: "Wait from due to start", "从到期到开始的等待";
    oldest_chart: "Age of the oldest ready job", "最早就绪任务的就绪时长";
    half: "half within", "一半不超过";
    most: "95 % within", "95% 不超过";
    hour_ago: "60 min ago", "60 分钟前";
    day_ago: "24 h ago", "24 小时前";
    now: "now", "现在";
    of_process: "Counted by this server since it started.", "由本服务器自启动以来统计。";
    queues: "Queues", "队列";
    all_queues: "All queues", "全部队列";
}

pub(super) const ROWS: &[PageRow] = &[PageRow::new(Section::Overview, "/").shows(draw!(show))];

const QUEUES_SHOWN: usize = 8;
const BARS_OF_DAY: usize = 96;

async fn show(visit: &Visit) -> Result<Drawn, Unanswered> {
    let says = Says(visit.tongue);
    let stats = visit.ask(GetStats).await?;
    let mut attention = attention::look(visit, &stats).await?;
    let is_day = visit.query.get("over") == Some("day");
    let minutes = visit
        .history
        .as_ref()
        .map(|history| history.minutes(&visit.namespace, if is_day { 24 * 60 } else { 60 }));
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
            @if minutes.is_some() {
                div class="tabs" {
                    a href=(visit.link("/")) aria-current=[(!is_day).then_some("true")] { (says.hour()) }
                    a href=(visit.link_with("/", &[("over", "day")]))
                        aria-current=[is_day.then_some("true")] { (says.day()) }
                }
            }
        }
        (attention::panel(visit, &attention))
        (tiles(visit, &stats, workers.items.len(), minutes.as_deref(), is_day))
        @if let Some(minutes) = &minutes { (charts(says, minutes, is_day)) }
        section class="panel" {
            header { h2 { (says.queues()) } p { a href=(visit.link("/queues")) { (says.all_queues()) } } }
            (queues::table(visit, &busiest))
        }
    };
    Sheet::live(says.title(), body)
}

fn of(stats: &Stats, state: JobState) -> u64 {
    stats.jobs.get(&state).copied().unwrap_or_default()
}

fn tiles(
    visit: &Visit,
    stats: &Stats,
    workers: usize,
    minutes: Option<&[Minute]>,
    is_day: bool,
) -> Markup {
    let says = Says(visit.tongue);
    let blocked = of(stats, JobState::Blocked);
    let waiting = blocked
        + of(stats, JobState::Ready)
        + of(stats, JobState::Scheduled)
        + of(stats, JobState::Dependent);
    let oldest = stats.oldest_ready_at.map(|at| for_people(visit.since(at)));
    let oldest = oldest.unwrap_or_else(|| says.none_ready());
    let over = if is_day { says.in_day() } else { says.in_hour() };
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
            @match minutes {
                Some(minutes) => {
                    @let good: u64 = minutes.iter().map(|minute| minute.succeeded).sum();
                    @let bad: u64 = minutes.iter().map(|minute| minute.failed).sum();
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

/// A part of a whole in per cent, with as many digits as it has a meaning.
fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "0 %".to_owned(),
        whole => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}

fn charts(says: Says, minutes: &[Minute], is_day: bool) -> Markup {
    let (per_bar, steps) = if is_day { (15, BARS_OF_DAY) } else { (1, 60) };
    let bars: Vec<&[Minute]> = minutes.rchunks(per_bar).rev().collect();
    let ended: Vec<(u64, u64)> = bars
        .iter()
        .map(|bar| {
            let sum = |pick: fn(&Minute) -> u64| bar.iter().map(pick).sum();
            (sum(|minute| minute.succeeded), sum(|minute| minute.failed))
        })
        .collect();
    let pushed: Vec<u64> =
        bars.iter().map(|bar| bar.iter().map(|minute| minute.pushed).sum()).collect();
    // The worst minute of a bar, since a mean would hide it.
    let worst = |bar: &[Minute], pick: fn(&Minute) -> Option<Span>| {
        bar.iter().filter_map(pick).max().map(|span| span.us() as f64)
    };
    let waits: Vec<_> = bars
        .iter()
        .map(|bar| {
            (worst(bar, |minute| minute.half_waited), worst(bar, |minute| minute.most_waited))
        })
        .collect();
    let oldest: Vec<_> =
        bars.iter().map(|bar| (worst(bar, |minute| minute.oldest_ready), None)).collect();
    let from = if is_day { says.day_ago() } else { says.hour_ago() };
    let (now, throughput) = (
        says.now(),
        match is_day {
            true => says.throughput_day(),
            false => says.throughput_hour(),
        },
    );
    let ends = [from.as_str(), now.as_str()];
    let age = |us: f64| for_people(Span::from_us(us as u64));
    html! {
        div class="grid" {
            section class="panel" {
                header {
                    h2 { (throughput) }
                    p class="legend" {
                        span class="ready" { i {} (says.succeeded()) }
                        span class="failed" { i {} (says.failed_word()) }
                        span class="came" { i {} (says.pushed()) }
                    }
                }
                div class="body" {
                    (bars_of_two(&throughput, &ended, &pushed, steps, ends, |n| grouped(n as u64)))
                }
            }
            section class="panel" {
                header {
                    h2 { (says.wait()) }
                    p class="legend" {
                        span class="ready" { i {} (says.half()) }
                        span class="scheduled" { i {} (says.most()) }
                    }
                }
                div class="body" {
                    (lines_of_two(&says.wait(), &waits, steps, ends, age))
                }
            }
            section class="panel" {
                header { h2 { (says.oldest_chart()) } }
                div class="body" {
                    (lines_of_two(&says.oldest_chart(), &oldest, steps, ends, age))
                }
            }
        }
        p class="faint" { (says.of_process()) }
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
