//! `tenure events`: what happened, one line an event.

use std::fmt::Write;

use tenure::{Client, Told};
use tenure_core::events::{About, BlockedOn, Event, Gap, GapWhy};
use tenure_core::requests::EventsSince;

use crate::args::events::EventsArgs;
use crate::exit::Failure;
use crate::output::clock::{exactly, second};
use crate::output::{Output, hint, printable, tell};

/// Shows events until there are no more, or without end.
pub async fn run(client: &Client, out: Output, args: EventsArgs) -> Result<(), Failure> {
    let begin = if args.follow { EventsSince::Now } else { EventsSince::First };
    let mut events = client.events_since(args.since.unwrap_or(begin), args.filter());
    let mut printed = 0;
    loop {
        let next = if args.follow { events.next().await? } else { events.next_now().await? };
        match next {
            Some(Told::Event(event)) => {
                out.line(&*event, line)?;
                printed += 1;
                if args.max == Some(printed) {
                    if !out.json {
                        hint(&format!("there may be more: continue with --since {}", event.id));
                    }
                    return Ok(());
                }
            }
            Some(Told::Gap(gap)) => tell(&sentence(&gap)),
            None => return Ok(()),
        }
    }
}

fn sentence(gap: &Gap) -> String {
    match gap.why {
        GapWhy::Dropped => format!("events before {} are no longer kept", gap.first),
        GapWhy::Restarted => {
            format!(
                "the store may have lost events after {}; continuing with {}",
                gap.after, gap.first
            )
        }
    }
}

/// The moment, the type, the subject, and the details.
fn line(event: &Event) -> String {
    let happened = &event.happened;
    let About { job, queue, schedule, .. } = &happened.about;
    let mut text = format!("{}  {:<20}", exactly(happened.at), happened.kind.as_str());
    // The schedule of a schedule's event stands first, otherwise the queue.
    let first = match (schedule, queue) {
        (Some(schedule), _) if happened.kind.family() == "schedule" => Some(schedule.to_string()),
        (_, Some(queue)) => Some(queue.to_string()),
        _ => None,
    };
    let mut say = |word: &str| {
        // Writing to a String cannot fail.
        let _ = write!(text, "  {}", printable(word).replace(['\n', '\t'], " "));
    };
    first.iter().for_each(|word| say(word));
    let is_job = happened.kind.family() == "job";
    if let Some(job) = job {
        say(&if is_job { job.to_string() } else { format!("job {job}") });
    }
    said(&happened.about, is_job).iter().for_each(|words| say(words));
    text.push('\n');
    text
}

/// The details of an event, in the order of the reference.
fn said(about: &About, is_job: bool) -> Vec<String> {
    let About { flow, why, on, lease, holder, run_at, error, outcome, .. } = about;
    let About { limit, pool, resource, until, external, moment, n, counts, attempt, by, .. } =
        about;
    let mut words = Vec::new();
    let name = |name: &dyn ToString| name.to_string();
    words.extend(limit.as_ref().map(|limit| name(limit)));
    words.extend(pool.as_ref().map(|pool| name(pool)));
    words.extend(resource.as_ref().map(|resource| name(resource)));
    words.extend(flow.as_ref().filter(|_| !is_job).map(|flow| name(flow)));
    words.extend(lease.as_ref().filter(|_| !is_job).map(|lease| format!("lease {lease}")));
    words.extend(moment.map(|moment| format!("at {}", second(moment))));
    words.extend(n.filter(|n| *n != 1).map(|n| format!("{n} moments")));
    words.extend(why.as_ref().map(|why| why.to_string()));
    words.extend(on.as_ref().map(|on| match on {
        BlockedOn::Limit(limit) => format!("limit {limit}"),
        BlockedOn::Pool(pool) => format!("pool {pool}"),
    }));
    words.extend(outcome.map(|outcome| outcome.as_str().to_owned()));
    words.extend(external.map(|external| format!("{external} outside")));
    words.extend(counts.map(|counts| {
        let (good, bad, off) = (counts.succeeded, counts.failed, counts.cancelled);
        format!("{good} succeeded, {bad} failed, {off} cancelled")
    }));
    words.extend(holder.as_ref().map(|holder| format!("to {holder}")));
    words.extend(match (attempt, error) {
        (Some(attempt), Some(error)) => Some(format!("attempt {attempt}: {error}")),
        (Some(attempt), None) => Some(format!("attempt {attempt}")),
        (None, Some(error)) => Some(error.clone()),
        (None, None) => None,
    });
    words.extend(run_at.map(|at| format!("again at {}", exactly(at))));
    words.extend(until.map(|until| format!("until {}", exactly(until))));
    words.extend(by.as_ref().map(|by| format!("by {by}")));
    words
}

#[cfg(test)]
mod tests {
    use tenure_core::access::TokenName;
    use tenure_core::events::{EventId, EventType, Happened};
    use tenure_core::names::{JobId, LimitName, QueueName, ScheduleId};
    use tenure_core::time::Moment;

    use super::*;

    fn shown(kind: EventType, about: About) -> String {
        let at: Moment = "2026-12-01T08:00:04.120877Z".parse().unwrap();
        let id = EventId { life: 10, number: 7 };
        line(&Event { id, happened: Happened::new(at, kind, about) })
    }

    #[test]
    fn an_event_is_one_line() {
        let job = JobId::parse("news-42@2026-12-01T08:00:00Z").ok();
        let schedule = ScheduleId::parse("news-42").ok();
        let failed = About {
            job: job.clone(),
            queue: QueueName::parse("news-cn").ok(),
            schedule: schedule.clone(),
            attempt: Some(3),
            error: Some("http 500\nno\u{1b}[2J".to_owned()),
            ..About::default()
        };
        assert_eq!(
            shown(EventType::JobFailed, failed),
            "2026-12-01T08:00:04.120877Z  job.failed            news-cn  \
             news-42@2026-12-01T08:00:00Z  attempt 3: http 500 no\\u001b[2J\n"
        );
        let fired = About { job, schedule, ..About::default() };
        assert_eq!(
            shown(EventType::ScheduleFired, fired),
            "2026-12-01T08:00:04.120877Z  schedule.fired        news-42  \
             job news-42@2026-12-01T08:00:00Z\n"
        );
        let observed =
            About { limit: LimitName::parse("scrapy").ok(), external: Some(3), ..About::default() };
        assert_eq!(
            shown(EventType::LimitObserved, observed),
            "2026-12-01T08:00:04.120877Z  limit.observed        scrapy  3 outside\n"
        );
        let by = TokenName::known("ann");
        let changed = About { limit: LimitName::parse("scrapy").ok(), by, ..About::default() };
        assert_eq!(
            shown(EventType::LimitChanged, changed),
            "2026-12-01T08:00:04.120877Z  limit.changed         scrapy  by ann\n"
        );
    }

    #[test]
    fn a_gap_is_one_sentence() {
        let (after, first) = (EventId { life: 1, number: 2 }, EventId { life: 10, number: 7 });
        let gap = |why| sentence(&Gap { after, first, why });
        assert_eq!(gap(GapWhy::Dropped), "events before a-7 are no longer kept");
        assert!(gap(GapWhy::Restarted).contains("after 1-2"));
    }
}
