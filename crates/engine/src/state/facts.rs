//! Reports the events of steps to the operator: logs each at debug, those that need attention as a counted warning,
//! and the number of each when the store is closed.
//!
//! It decides nothing, and a job that goes well has no line above debug. A condition that lasts, such as a clock
//! that leaps, is in the engine's health as well.

use std::time::Instant;

use tenure_core::events::{About, EventType, Happened};
use tenure_core::job::Outcome;
use tenure_core::names::Namespace;
use tenure_core::sentences::StoredNote;
use tenure_engine_api::Seldom;
use tenure_machine::facts::Fact;

/// Counts since the store was opened.
#[derive(Debug)]
pub(super) struct FactCounts {
    /// Indexed by the type of event.
    events: [u64; EventType::ALL.len()],
    reserved: u64,
    /// Rate-limited log lines, indexed by their kind.
    alarms: [Alarmed; Alarm::ALL.len()],
}

impl Default for FactCounts {
    fn default() -> Self {
        let events = [0; EventType::ALL.len()];
        FactCounts { events, reserved: 0, alarms: Default::default() }
    }
}

/// An event that needs the operator's attention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Alarm {
    /// The holder of a lease stopped heartbeating.
    LeaseLost,
    /// A job ended because too many of its workers were lost.
    Poison,
    /// Occurrences of a schedule passed while nothing could fire them.
    ScheduleMissed,
}

impl Alarm {
    const ALL: [Alarm; 3] = [Alarm::LeaseLost, Alarm::Poison, Alarm::ScheduleMissed];

    /// The alarm of an event, if it is one, with the number of occurrences that it stands for.
    fn of(happened: &Happened) -> Option<(Self, u64)> {
        let Happened { kind, about, .. } = happened;
        match kind {
            EventType::JobLost => Some((Alarm::LeaseLost, 1)),
            EventType::LeaseEnded if about.outcome == Some(Outcome::Lost) => {
                Some((Alarm::LeaseLost, 1))
            }
            EventType::JobFailed if ended_by_loss(about) => Some((Alarm::Poison, 1)),
            EventType::ScheduleMissed => Some((Alarm::ScheduleMissed, about.n.unwrap_or(1))),
            _ => None,
        }
    }

    /// Writes the line, with the last of the counted events as an example.
    fn tell(self, times: u64, namespace: &Namespace, about: &About) {
        let (namespace, job) = (namespace.as_str(), about.job.as_ref().map(|job| job.as_str()));
        let queue = about.queue.as_ref().map(|queue| queue.as_str());
        let schedule = about.schedule.as_ref().map(|schedule| schedule.as_str());
        match self {
            Alarm::LeaseLost => {
                let holder = about.holder.as_deref();
                tracing::warn!(
                    times,
                    namespace,
                    queue,
                    job,
                    holder,
                    "leases were lost: their holders stopped heartbeating; the jobs run again"
                );
            }
            Alarm::Poison => tracing::warn!(
                times,
                namespace,
                queue,
                job,
                "jobs failed because each of their workers was lost: do they kill their workers?"
            ),
            Alarm::ScheduleMissed => tracing::warn!(
                times,
                namespace,
                schedule,
                "moments of schedules were missed: they had passed before they could fire"
            ),
        }
    }
}

/// Logs an event at debug. The texts of users stay out of it: an error or a reason may quote anything.
fn tell(namespace: &Namespace, Happened { kind, about, .. }: &Happened) {
    let About { job, queue, flow, schedule, limit, pool, resource, holder, attempt, n, .. } = about;
    tracing::debug!(
        event = kind.as_str(),
        namespace = namespace.as_str(),
        queue = queue.as_ref().map(|name| name.as_str()),
        job = job.as_ref().map(|id| id.as_str()),
        flow = flow.as_ref().map(|name| name.as_str()),
        schedule = schedule.as_ref().map(|id| id.as_str()),
        limit = limit.as_ref().map(|name| name.as_str()),
        pool = pool.as_ref().map(|name| name.as_str()),
        resource = resource.as_ref().map(|id| id.as_str()),
        holder = holder.as_deref(),
        attempt,
        n,
        "event"
    );
}

/// True if a job failed because its workers were lost, and not because one of them reported a failure.
fn ended_by_loss(about: &About) -> bool {
    let by = |note: StoredNote| about.error.as_deref() == Some(note.as_str());
    by(StoredNote::HolderStopped) || by(StoredNote::GrantNeverReceived)
}

/// The log of one kind of alarm.
#[derive(Debug, Default)]
struct Alarmed {
    lines: Seldom,
    /// The last event that no line has reported.
    last: Option<(Namespace, About)>,
}

impl FactCounts {
    /// Counts the events and facts of one step.
    pub(super) fn take(
        &mut self,
        events: &[(Namespace, Vec<Happened>)],
        facts: &[(Namespace, Fact)],
    ) {
        for (namespace, events) in events {
            for event in events {
                self.events[event.kind as usize] += 1;
                tell(namespace, event);
                if let Some((alarm, times)) = Alarm::of(event) {
                    let Alarmed { lines, last } = &mut self.alarms[alarm as usize];
                    lines.happened(times);
                    *last = Some((namespace.clone(), event.about.clone()));
                }
            }
        }
        for (namespace, fact) in facts {
            self.reserved += u64::from(matches!(fact, Fact::Reserved { .. }));
            tracing::debug!(namespace = namespace.as_str(), ?fact);
        }
    }

    /// Writes the warnings that are due. Steps that follow each other at once share one line.
    pub(super) fn warn(&mut self) {
        for (alarm, Alarmed { lines, last }) in Alarm::ALL.into_iter().zip(&mut self.alarms) {
            if lines.untold() > 0
                && let Some(times) = lines.due(Instant::now())
                && let Some((namespace, about)) = last.take()
            {
                alarm.tell(times, &namespace, &about);
            }
        }
    }

    fn of(&self, kind: EventType) -> u64 {
        self.events[kind as usize]
    }

    /// Logs the total of each.
    pub(super) fn sum_up(&self) {
        tracing::info!(
            granted = self.of(EventType::JobGranted) + self.of(EventType::LeaseGranted),
            succeeded = self.of(EventType::JobSucceeded),
            failed = self.of(EventType::JobFailed),
            cancelled = self.of(EventType::JobCancelled),
            retrying = self.of(EventType::JobRetrying),
            snoozed = self.of(EventType::JobSnoozed),
            released = self.of(EventType::JobReleased),
            lost = self.of(EventType::JobLost),
            blocked = self.of(EventType::JobBlocked),
            reserved = self.reserved,
            "closing the store; what happened since it was opened"
        );
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::events::About;
    use tenure_core::time::Moment;

    use super::*;

    #[test]
    fn every_event_is_counted_under_its_own_name() {
        let (namespace, mut told) = (Namespace::parse("a").unwrap(), FactCounts::default());
        let happened = EventType::ALL.iter().zip(1..).flat_map(|(kind, times)| {
            let one = Happened { at: Moment::ZERO, kind: *kind, about: About::default() };
            std::iter::repeat_n(one, times)
        });
        let events = [(namespace.clone(), happened.collect())];
        told.take(&events, &[(namespace, Fact::Reserved { job: None })]);
        for (kind, times) in EventType::ALL.iter().zip(1..) {
            assert_eq!(told.of(*kind), times, "{kind}");
        }
        assert_eq!(told.reserved, 1);
    }
}
