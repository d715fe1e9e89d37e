//! The story of a job: its events, as a list and as one bar of waits and runs. For times whose events are no longer
//! kept, the list has the job's own record, and names the moment.

use maud::{Markup, html};
use tenure_core::bounds::LIST_MAX;
use tenure_core::events::{BlockedOn, Event, EventFilter, EventType};
use tenure_core::job::{JobView, Outcome};
use tenure_core::requests::{EventsSince, GetStats, ReadEvents};
use tenure_core::time::Moment;

use super::timeline::{self, spans_of};
use crate::language::sentences;
use crate::show::{caller, clock};
use crate::visit::{Unanswered, Visit};

sentences! { StoryWords;
    title: "Event history", "发生了什么";
    pushed: "Pushed", "已推送";
    replaced: "Its content was replaced by a push with the same unique key", "内容被相同唯一键的推送替换";
    changed: "Changed", "已更改";
    ready: "Ready", "就绪";
    blocked(name): "Blocked: {name} is taken", "受阻：{name} 已被占用";
    granted(attempt, holder): "Attempt {attempt} granted to {holder}", "第 {attempt} 次尝试发放给 {holder}";
    succeeded: "Succeeded", "成功";
    failed: "Failed for good", "最终失败";
    cancelled: "Cancelled", "已取消";
    retrying: "The run failed and is retried", "运行失败；将重试";
    snoozed: "Snoozed", "已推迟";
    released: "Released without a result", "原样归还";
    lost: "Taken back: its holder stopped its heartbeat", "从停止心跳的持有者处收回";
    undelivered: "Taken back: the worker never received it", "已收回：工作进程从未收到";
    cancel_requested: "Asked to stop", "已请求停止";
    until: "until", "直到";
    at: "at", "于";
    lacks_before: "Events are kept since", "事件保留自";
    lacks_after: "Events were read up to", "事件读取至";
    rest_of_job: "only. The rest comes from the job itself.", "。其余为任务自身的记录。";
    left_out(n): "{n} events after the first are not shown.", "首个事件之后的 {n} 个事件未显示。";
    started: "The last run started", "最近一次运行开始";
    attempt_failed(n): "Attempt {n} failed", "第 {n} 次尝试失败";
}

/// Events that a page shows: the first of the job and the newest ones.
const EVENTS_SHOWN: usize = 200;
/// Calls that read them, of a thousand events each.
const CALLS_MAX: usize = 8;

pub(super) async fn panel(visit: &Visit, job: &JobView) -> Result<Markup, Unanswered> {
    let words = StoryWords(visit.tongue);
    let story = story_of(visit, job).await?;
    let is_whole = story.lacks_before.is_none() && story.lacks_after.is_none();
    let spans = if is_whole { spans_of(visit.now, job, &story.events) } else { Vec::new() };
    let left_out = story.events.len().saturating_sub(EVENTS_SHOWN);
    let first = story.events.iter().take(usize::from(left_out > 0));
    let newest = story.events.iter().skip(left_out + usize::from(left_out > 0));
    let mut steps: Vec<_> =
        first.chain(newest).filter_map(|event| of_event(visit, words, event)).collect();
    if !is_whole {
        let is_lacking = |step: &StoryStep| {
            story.lacks_before.is_some_and(|at| step.at < at)
                || story.lacks_after.is_some_and(|at| step.at > at)
        };
        steps.extend(of_memory(words, job).into_iter().filter(is_lacking));
        steps.sort_by_key(|step| step.at);
    }
    Ok(html! {
        section class="panel" {
            header {
                h2 { (words.title()) }
                @if is_whole { (timeline::legend(visit)) }
            }
            div class="body fields" {
                @if is_whole { (timeline::picture(visit, &spans)) }
                ol class="life" {
                    @for step in &steps {
                        li {
                            (clock(visit, step.at))
                            i class=(step.class) {}
                            div class="what" {
                                (step.says)
                                @if let Some(error) = step.error.as_deref().filter(|error| !error.is_empty()) {
                                    pre class="text" tabindex="0" { (error) }
                                }
                            }
                        }
                    }
                }
                @if left_out > 0 { p class="faint" { (words.left_out(left_out)) } }
                @if let Some(at) = story.lacks_before {
                    p class="faint" { (words.lacks_before()) " " (clock(visit, at)) " " (words.rest_of_job()) }
                }
                @if let Some(at) = story.lacks_after {
                    p class="faint" { (words.lacks_after()) " " (clock(visit, at)) " " (words.rest_of_job()) }
                }
            }
        }
    })
}

/// One entry of the list.
struct StoryStep {
    at: Moment,
    class: &'static str,
    says: Markup,
    error: Option<String>,
}

/// The events of a job, as far as they are kept and were read.
#[derive(Default)]
struct Story {
    events: Vec<Event>,
    /// The oldest kept event is from this moment, and the job was pushed before it.
    lacks_before: Option<Moment>,
    /// Events after this were not read.
    lacks_after: Option<Moment>,
}

/// Finds the events of the job among all kept events. A folder from an older release may not be indexed by job yet, so
/// a bounded number of events is looked at.
async fn story_of(visit: &Visit, job: &JobView) -> Result<Story, Unanswered> {
    let mut story = Story::default();
    let Some(end) = visit.ask(GetStats).await?.events.last else {
        story.lacks_before = Some(visit.now);
        return Ok(story);
    };
    let filter = EventFilter {
        job: Some(job.id.clone()),
        types: EventType::ALL.iter().copied().filter(|kind| is_told(*kind)).collect(),
        ..EventFilter::default()
    };
    let mut since = EventsSince::First;
    let mut is_read = false;
    for _ in 0..CALLS_MAX {
        let filter = filter.clone();
        let read = visit.ask(ReadEvents { since, filter, max: LIST_MAX, ..ReadEvents::default() });
        let read = read.await?;
        // A deleted job of the same id has events of its own.
        let is_of_this = |event: &Event| event.happened.at >= job.created_at;
        story.events.extend(read.items.into_iter().filter(is_of_this));
        is_read = read.next.number >= end.number;
        if is_read {
            break;
        }
        since = EventsSince::Id(read.next);
    }
    let first = story.events.first();
    if first.is_none_or(|event| event.happened.kind != EventType::JobPushed) {
        let oldest = ReadEvents { since: EventsSince::First, max: 1, ..ReadEvents::default() };
        let oldest = visit.ask(oldest).await?.items.first().map(|event| event.happened.at);
        story.lacks_before = Some(oldest.unwrap_or(visit.now));
    }
    if !is_read {
        let last = story.events.last().map(|event| event.happened.at);
        story.lacks_after = last.or(story.lacks_before);
    }
    Ok(story)
}

/// Whether an event has a line.
fn is_told(kind: EventType) -> bool {
    kind.as_str().starts_with("job.") && kind != EventType::JobProgress
}

fn of_event(visit: &Visit, words: StoryWords, event: &Event) -> Option<StoryStep> {
    let about = &event.happened.about;
    let (class, says) = match event.happened.kind {
        EventType::JobPushed => ("faint", words.pushed()),
        EventType::JobReplaced => ("faint", words.replaced()),
        EventType::JobChanged => ("faint", words.changed()),
        EventType::JobReady => ("ready", words.ready()),
        EventType::JobBlocked => {
            let name = match &about.on {
                Some(BlockedOn::Limit(limit)) => limit.to_string(),
                Some(BlockedOn::Pool(pool)) => pool.to_string(),
                None => String::new(),
            };
            ("blocked", words.blocked(name))
        }
        EventType::JobGranted => {
            let holder = about.holder.as_deref().unwrap_or("anonymous");
            ("running", words.granted(about.attempt.unwrap_or_default(), holder))
        }
        EventType::JobSucceeded => ("succeeded", words.succeeded()),
        EventType::JobFailed => ("failed", words.failed()),
        EventType::JobCancelled => ("cancelled", words.cancelled()),
        EventType::JobRetrying => ("failed", words.retrying()),
        EventType::JobSnoozed => ("scheduled", words.snoozed()),
        EventType::JobReleased => ("faint", words.released()),
        EventType::JobLost => ("failed", words.lost()),
        EventType::JobCancelRequested => ("blocked", words.cancel_requested()),
        _ => return None,
    };
    let until = match event.happened.kind {
        EventType::JobRetrying => words.at(),
        _ => words.until(),
    };
    let says = html! {
        (says)
        @if let Some(run_at) = about.run_at.filter(|run_at| *run_at > event.happened.at) {
            span class="soft" { " " (until) " " (clock(visit, run_at)) }
        }
        (caller(visit, about.by.as_ref()))
    };
    Some(StoryStep { at: event.happened.at, class, says, error: about.error.clone() })
}

/// The job's own record: its push, its last errors, its last run, its end.
fn of_memory(words: StoryWords, job: &JobView) -> Vec<StoryStep> {
    let step =
        |at, class, says: String, error| StoryStep { at, class, says: html! { (says) }, error };
    let mut steps = vec![step(job.created_at, "faint", words.pushed(), None)];
    for one in &job.errors {
        let says = match one.outcome {
            Outcome::Lost => words.lost(),
            Outcome::Undelivered => words.undelivered(),
            _ => words.attempt_failed(one.attempt),
        };
        steps.push(step(one.at, "failed", says, Some(one.error.clone())));
    }
    if let Some(at) = job.started_at {
        steps.push(step(at, "running", words.started(), None));
    }
    if let Some(at) = job.finished_at {
        let (class, says) = match job.state {
            tenure_core::job::JobState::Succeeded => ("succeeded", words.succeeded()),
            tenure_core::job::JobState::Cancelled => ("cancelled", words.cancelled()),
            _ => ("failed", words.failed()),
        };
        steps.push(step(at, class, says, None));
    }
    steps.sort_by_key(|step| step.at);
    steps
}
