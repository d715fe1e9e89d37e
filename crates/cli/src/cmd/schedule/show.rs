//! Schedules as people read them: a line each, or a page.

use tenure_core::job::{JobState, JobView};
use tenure_core::schedule::{ScheduleView, TimingSpec};
use tenure_core::time::Moment;

use crate::cmd::job::json;
use crate::cmd::queue;
use crate::cmd::schedule_preview::moments;
use crate::output::clock::{self, second, sentence};
use crate::output::page::Page;
use crate::output::table::{Table, or_dash, when};

/// A line for each schedule.
pub fn table(schedules: &[ScheduleView]) -> String {
    let now = clock::now();
    let mut table = Table::new(&[
        "SCHEDULE",
        "OWNER",
        "TIMING",
        "ZONE",
        "QUEUE",
        "NEXT",
        "UNFINISHED",
        "PAUSED",
    ]);
    for schedule in schedules {
        let settings = &schedule.settings;
        let next = match (schedule.ended, schedule.next_at) {
            (true, _) => "ended".to_owned(),
            (false, next) => or_dash(next.map(|at| when(at, now))),
        };
        table.row([
            schedule.id.to_string(),
            or_dash(settings.owner.as_ref()),
            rhythm(&settings.timing),
            or_dash(settings.timing.zone.as_ref()),
            settings.job.queue.to_string(),
            next,
            schedule.unfinished.to_string(),
            queue::paused(schedule.paused, schedule.paused_until).unwrap_or_default(),
        ]);
    }
    table.render("no schedules")
}

/// The cron expression or the interval.
fn rhythm(timing: &TimingSpec) -> String {
    match (&timing.cron, timing.every) {
        (Some(cron), _) => cron.clone(),
        (None, every) => format!("every {}", every.unwrap_or_default()),
    }
}

/// The next event of a schedule, and the state of its last job.
pub fn state(schedule: &ScheduleView, job: Option<&JobView>) -> String {
    let now = clock::now();
    let summary = sentence(&schedule.summary);
    match (schedule.unfinished, job) {
        (0, _) => summary,
        (1, Some(job)) => {
            let since = match (job.state, job.started_at) {
                (JobState::Running, Some(at)) => format!(" since {}", when(at, now)),
                _ => String::new(),
            };
            format!("{summary}; its job {} is {}{since}", job.id, job.state)
        }
        (1, None) => format!("{summary}; a job of it has not ended"),
        (n, _) => format!("{summary}; {n} jobs of it have not ended"),
    }
}

/// All of a schedule but the payload of its job.
pub fn page(schedule: &ScheduleView, state: &str) -> String {
    let settings = &schedule.settings;
    let (timing, job) = (&settings.timing, &settings.job);
    let now = clock::now();
    let word = |word: String| word.trim_matches('"').to_owned();
    let mut notes = Vec::new();
    notes.extend(timing.zone.clone());
    notes.extend(timing.starts_at.map(|at| format!("from {}", second(at))));
    notes.extend(timing.ends_at.map(|at| format!("until {}", second(at))));
    notes.extend(
        Some(timing.jitter).filter(|jitter| jitter.us() > 0).map(|d| format!("jitter {d}")),
    );
    notes.push(format!("overlap {}", word(json(&settings.overlap))));
    notes.push(format!("catch up {}", word(json(&settings.catch_up))));
    let made = match job.kind.as_str() {
        "" => job.queue.to_string(),
        kind => format!("{} {kind}", job.queue),
    };
    let needs = job.needs.as_deref().map(|needs| match needs {
        [] => "needs nothing".to_owned(),
        needs => format!(
            "needs {}",
            needs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        ),
    });
    let owner = settings.owner.as_ref().map(|owner| format!("of {owner}"));
    let mut page = Page::default();
    page.noted("schedule", &schedule.id, &owner.unwrap_or_default())
        .noted("timing", rhythm(timing), &notes.join(", "))
        .noted("job", made, &needs.unwrap_or_default())
        .field("state", state)
        .maybe("next", coming(schedule, now))
        .maybe(
            "last ended",
            schedule
                .last_ended
                .as_ref()
                .map(|last| format!("{} {} {}", last.job, last.state, when(last.finished_at, now))),
        )
        .maybe("succeeded", schedule.last_succeeded_at.map(|at| when(at, now)))
        .field(
            "so far",
            format!(
                "{} fired, {} skipped, {} missed",
                schedule.fired, schedule.skipped, schedule.missed
            ),
        );
    page.render()
}

/// The next moments by the wall clock of its zone, a line each; one that a job set is called so.
fn coming(schedule: &ScheduleView, now: Moment) -> Option<String> {
    let next = schedule.next.as_deref().filter(|next| !next.is_empty())?;
    let text = moments(next, &schedule.settings.timing, now);
    match (schedule.moved, text.split_once('\n')) {
        (true, Some((first, rest))) => Some(format!("{first}, as its job said\n{rest}")),
        _ => Some(text),
    }
}
