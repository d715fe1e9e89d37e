//! What happened to a job: its events, as a list and as one bar of waits and runs. Where its events are not kept any more,
//! what the job itself remembers.

use maud::{Markup, html};
use tenure_core::bounds::EVENTS_SCAN_MAX;
use tenure_core::events::{BlockedOn, Event, EventFilter, EventId, EventType};
use tenure_core::job::{JobView, Outcome};
use tenure_core::requests::{EventsSince, GetStats, ReadEvents};
use tenure_core::time::Moment;

use super::timeline::{self, spans_of};
use crate::language::sentences;
use crate::show::clock;
use crate::visit::{Unanswered, Visit};

sentences! { StoryWords;
    title: "What happened", "发生了什么";
    pushed: "Pushed", "已推送";
    replaced: "Its content was replaced by a push with the same unique key", "内容被相同唯一键的推送替换";
    changed: "Changed", "已更改";
    ready: "Ready", "就绪";
    blocked(name): "Blocked: {name} is taken", "受阻：{name} 已被占用";
    granted(attempt, holder): "Attempt {attempt} granted to {holder}", "第 {attempt} 次尝试发放给 {holder}";
    succeeded: "Succeeded", "成功";
    failed: "Failed for good", "最终失败";
    cancelled: "Cancelled", "已取消";
    retrying: "The run failed; it is tried again", "运行失败；将重试";
    snoozed: "Snoozed", "已推迟";
    released: "Given back untouched", "原样归还";
    lost: "Taken back from a holder that stopped its heartbeat", "从停止心跳的持有者处收回";
    undelivered: "Taken back: the worker never heard of it", "已收回：工作进程从未收到";
    cancel_requested: "Asked to stop", "已请求停止";
    until: "until", "直到";
    earlier: "Earlier events are not kept any more.", "更早的事件已不再保留。";
    started: "Its last run began", "最近一次运行开始";
    attempt_failed(n): "Attempt {n} failed", "第 {n} 次尝试失败";
}

/// Events that a page shows, the first ones of the job.
const EVENTS_SHOWN: usize = 200;

pub(super) async fn panel(visit: &Visit, job: &JobView) -> Result<Markup, Unanswered> {
    let words = StoryWords(visit.tongue);
    let events = events_of(visit, job).await?;
    let begins = events.first().is_some_and(|event| event.happened.kind == EventType::JobPushed);
    let spans = if begins { spans_of(visit.now, job, &events) } else { Vec::new() };
    let steps = match begins {
        true => events.iter().filter_map(|event| of_event(visit, words, event)).collect(),
        false => of_memory(words, job),
    };
    Ok(html! {
        section class="panel" {
            header {
                h2 { (words.title()) }
                @if begins { (timeline::legend(visit)) }
            }
            div class="body fields" {
                @if begins { (timeline::picture(visit, &spans)) }
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
                @if !begins { p class="faint" { (words.earlier()) } }
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

/// The events of the job, from its push on: of the ten thousand events that follow its push, its own.
async fn events_of(visit: &Visit, job: &JobView) -> Result<Vec<Event>, Unanswered> {
    let Some(since) = before(visit, job.created_at).await? else { return Ok(Vec::new()) };
    let filter = EventFilter { job: Some(job.id.clone()), ..EventFilter::default() };
    let asked = ReadEvents { since, filter, max: EVENTS_SHOWN, ..ReadEvents::default() };
    Ok(visit.ask(asked).await?.items)
}

/// A place in the stream before everything that happened at or after a moment: found by halving, in some twenty small
/// calls at most, since a stream can be longer than one call may look at.
async fn before(visit: &Visit, moment: Moment) -> Result<Option<EventsSince>, Unanswered> {
    let kept = visit.ask(GetStats).await?.events;
    let (Some(first), Some(last)) = (kept.first, kept.last) else { return Ok(None) };
    if last.number - first.number < EVENTS_SCAN_MAX as u64 || first.life != last.life {
        return Ok(Some(EventsSince::First));
    }
    // Everything up to `low` is earlier.
    let (mut low, mut high) = (first.number.saturating_sub(1), last.number);
    while high - low > EVENTS_SCAN_MAX as u64 / 4 {
        let middle = low + (high - low) / 2;
        let since = EventsSince::Id(EventId { life: first.life, number: middle });
        let read = visit.ask(ReadEvents { since, max: 1, ..ReadEvents::default() }).await?;
        match read.items.first() {
            Some(event) if event.happened.at < moment => low = middle,
            _ => high = middle,
        }
    }
    Ok(Some(EventsSince::Id(EventId { life: first.life, number: low })))
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
    let says = html! {
        (says)
        @if let Some(run_at) = about.run_at.filter(|run_at| *run_at > event.happened.at) {
            span class="soft" { " " (words.until()) " " (clock(visit, run_at)) }
        }
    };
    Some(StoryStep { at: event.happened.at, class, says, error: about.error.clone() })
}

/// What the job remembers: its push, its last errors, its last run, its end.
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
