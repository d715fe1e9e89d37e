//! The life of a job in spans of time (waiting, running, delayed): as one picture, and by attempt with their times.

use maud::{Markup, html};
use tenure_core::events::{Event, EventType};
use tenure_core::job::{JobState, JobView};
use tenure_core::time::{Moment, Span};

use crate::language::sentences;
use crate::show::{BarPart, bar, clock, for_people};
use crate::visit::Visit;

sentences! { TimelineWords;
    waited: "waited", "等待";
    ran: "ran", "运行";
    rested: "delayed", "尚不可运行";
    rest: "Rest", "推迟";
    wait: "Wait", "等待";
    run: "Run", "运行";
    attempt: "Attempt", "尝试";
    began: "Began", "开始";
    ended: "Ended", "结束";
    succeeded: "succeeded", "成功";
    failed: "failed", "失败";
    lost: "lost", "丢失";
    snoozed: "snoozed", "已推迟";
    released: "given back", "已归还";
    cancelled: "cancelled", "已取消";
    runs: "runs", "运行中";
    earlier(n): "and {n} earlier attempts", "以及之前的 {n} 次尝试";
}

/// The activity of a job in a span of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    Waits,
    Runs,
    Rests,
}

/// A span of a job's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LifeSpan {
    doing: Doing,
    from: Moment,
    to: Moment,
    /// Of a run: the number of the attempt, and the event that ended it; `None` while it runs.
    attempt: u32,
    end: Option<EventType>,
}

impl LifeSpan {
    fn length(&self) -> Span {
        self.to.since(self.from)
    }
}

/// The spans of a job's life, in their order, from its first event to its end or to now.
pub(super) fn spans_of(now: Moment, job: &JobView, events: &[Event]) -> Vec<LifeSpan> {
    let mut spans: Vec<LifeSpan> = Vec::new();
    // A job that may run at once has no event `ready`: it is ready from its push on.
    let first = events.iter().find(|event| {
        matches!(
            event.happened.kind,
            EventType::JobReady | EventType::JobGranted | EventType::JobBlocked
        )
    });
    let is_held = match first {
        Some(event) => event.happened.kind == EventType::JobReady,
        None => matches!(job.state, JobState::Scheduled | JobState::Dependent),
    };
    let begin = if is_held { Doing::Rests } else { Doing::Waits };
    let mut open = LifeSpan { doing: begin, from: job.created_at, to: now, attempt: 0, end: None };
    for event in events {
        let (at, about) = (event.happened.at, &event.happened.about);
        let is_later = about.run_at.is_some_and(|run_at| run_at > at);
        let doing = match event.happened.kind {
            EventType::JobGranted => Doing::Runs,
            EventType::JobRetrying
            | EventType::JobSnoozed
            | EventType::JobReleased
            | EventType::JobLost => {
                if is_later {
                    Doing::Rests
                } else {
                    Doing::Waits
                }
            }
            EventType::JobReady | EventType::JobBlocked => Doing::Waits,
            EventType::JobSucceeded | EventType::JobFailed | EventType::JobCancelled => {
                spans.push(LifeSpan { to: at, end: Some(event.happened.kind), ..open });
                return spans;
            }
            _ => continue,
        };
        if doing == open.doing && doing != Doing::Runs {
            continue;
        }
        if at > open.from || open.doing == Doing::Runs {
            spans.push(LifeSpan { to: at, end: Some(event.happened.kind), ..open });
        }
        open = LifeSpan {
            doing,
            from: at,
            to: now,
            attempt: about.attempt.unwrap_or_default(),
            end: None,
        };
    }
    spans.push(open);
    spans
}

/// The legend of the colours.
pub(super) fn legend(visit: &Visit) -> Markup {
    let words = TimelineWords(visit.tongue);
    html! {
        p class="legend" {
            span class="ready" { i {} (words.waited()) }
            span class="running" { i {} (words.ran()) }
            span class="scheduled" { i {} (words.rested()) }
        }
    }
}

/// Attempts that have a row.
const ATTEMPTS_SHOWN: usize = 20;

/// All of it as one bar; below that a row for each attempt, if there is one.
pub(super) fn picture(visit: &Visit, spans: &[LifeSpan]) -> Markup {
    let words = TimelineWords(visit.tongue);
    let parts: Vec<BarPart> = spans
        .iter()
        .map(|span| {
            let class = match span.doing {
                Doing::Waits => "ready",
                Doing::Runs => "running",
                Doing::Rests => "scheduled",
            };
            (class, span.length().us())
        })
        .collect();
    let runs: Vec<usize> = (0..spans.len()).filter(|at| spans[*at].doing == Doing::Runs).collect();
    let earlier = runs.len().saturating_sub(ATTEMPTS_SHOWN);
    html! {
        (bar(&parts, 0, false))
        @if !runs.is_empty() {
            div class="scroll" tabindex="0" {
                table class="attempts" {
                    thead {
                        tr {
                            th scope="col" class="num" { (words.attempt()) }
                            th scope="col" class="num" { (words.rest()) }
                            th scope="col" class="num" { (words.wait()) }
                            th scope="col" { (words.began()) }
                            th scope="col" class="num" { (words.run()) }
                            th scope="col" { (words.ended()) }
                        }
                    }
                    tbody { @for at in &runs[earlier..] { (row(visit, words, spans, *at)) } }
                }
            }
            @if earlier > 0 { p class="faint" { (words.earlier(earlier)) } }
        }
    }
}

/// One attempt, with the time between it and the one before.
fn row(visit: &Visit, words: TimelineWords, spans: &[LifeSpan], at: usize) -> Markup {
    let run = &spans[at];
    let before = spans[..at].iter().rev().take_while(|span| span.doing != Doing::Runs);
    let (mut rested, mut waited) = (0, 0);
    for span in before {
        match span.doing {
            Doing::Rests => rested += span.length().us(),
            _ => waited += span.length().us(),
        }
    }
    let time = |us: u64| if us == 0 { String::new() } else { for_people(Span::from_us(us)) };
    let (class, how) = match run.end {
        Some(EventType::JobSucceeded) => ("succeeded", words.succeeded()),
        Some(EventType::JobSnoozed) => ("scheduled", words.snoozed()),
        Some(EventType::JobReleased) => ("cancelled", words.released()),
        Some(EventType::JobCancelled) => ("cancelled", words.cancelled()),
        Some(EventType::JobLost) => ("failed", words.lost()),
        Some(_) => ("failed", words.failed()),
        None => ("running", words.runs()),
    };
    html! {
        tr {
            td class="num" { (run.attempt) }
            td class="num soft" { (time(rested)) }
            td class="num soft" { (time(waited)) }
            td { (clock(visit, run.from)) }
            td class="num" { (for_people(run.length())) }
            td { span class={ "state " (class) } { (how) } }
        }
    }
}
