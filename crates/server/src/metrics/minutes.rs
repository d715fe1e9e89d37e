//! Keeps the counts of each minute of the last day, for pictures of namespaces and of their queues.
//!
//! Memory is bounded. Only minutes with counts are kept: a day of each of [`NAMESPACES_MAX`] namespaces, and
//! [`QUEUE_MINUTES_MAX`] of [`QUEUES_MAX`] queues together. That is at most 50 MB, and up to 50 MB more that is
//! reserved. A queue with events in each minute of a day takes about 500 KB. A picture begins after the forgotten time,
//! and never draws that time as idle.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::names::{Namespace, QueueName};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{Clock, SystemClock};

use crate::metrics::minute::{Minute, number_of};

/// A day, and the current minute.
const MINUTES_KEPT: usize = 24 * 60 + 1;
/// Namespaces that are counted; later ones have no pictures.
const NAMESPACES_MAX: usize = 64;
/// Queues of all namespaces that are counted; the one that has been idle longest makes room for another.
const QUEUES_MAX: usize = 256;
/// Minutes of all queues that are kept; the oldest ones go first. A minute takes about 330 bytes.
const QUEUE_MINUTES_MAX: usize = 65_536;

/// The time of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// Now. If the clock steps back, counting goes on in the last minute.
    Now,
    /// This moment, which is at most a day old.
    Then(Moment),
}

/// A job that was granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrantedJob<'j> {
    pub queue: &'j QueueName,
    /// Time since it was due; `None` if unknown.
    pub wait: Option<Duration>,
    /// The previous run of the job was lost.
    pub lost: bool,
}

/// A run that succeeded or failed.
#[derive(Clone, Debug)]
pub(crate) struct EndedRun {
    /// `None`: this process does not know the run.
    pub queue: Option<QueueName>,
    pub succeeded: bool,
    /// Time since its grant; `None` if unknown.
    pub ran: Option<Duration>,
}

#[derive(Debug, Default)]
struct OfQueue {
    /// The first minute that is known completely; 0 if that is true since its namespace is counted.
    since: u64,
    /// Minutes with counts, oldest first.
    minutes: VecDeque<Minute>,
}

#[derive(Debug, Default)]
struct OfNamespace {
    /// The first known minute.
    since: u64,
    /// Minutes with counts, oldest first.
    minutes: VecDeque<Minute>,
    queues: HashMap<QueueName, OfQueue>,
}

/// The minutes of each namespace and queue.
#[derive(Debug, Default)]
pub struct Minutes(Mutex<AllMinutes>);

impl Minutes {
    /// The last `most` minutes (at most a day) of a namespace, or of one of its queues, oldest first, up to the current
    /// one. Idle minutes are included, unknown ones are not.
    pub fn last(
        &self,
        namespace: &Namespace,
        queue: Option<&QueueName>,
        most: usize,
    ) -> Vec<Minute> {
        self.lock().last(number_of(SystemClock.now()), namespace, queue, most)
    }

    /// The namespaces with counts, by name.
    pub fn namespaces(&self) -> Vec<Namespace> {
        let mut known: Vec<_> = self.lock().namespaces.keys().cloned().collect();
        known.sort_unstable();
        known
    }

    /// The namespaces in which something happened or waited within the last hour. A look at the others would only keep
    /// them from being forgotten.
    pub fn busy(&self) -> Vec<Namespace> {
        self.lock().busy(number_of(SystemClock.now()))
    }

    /// Records the age of a namespace's oldest ready job.
    pub fn looked(&self, namespace: &Namespace, oldest_ready: Span) {
        self.lock().count(When::Now, namespace, None, |minute| {
            minute.oldest_ready = minute.oldest_ready.max(Some(oldest_ready));
        });
    }

    /// Counts pushed jobs of one queue.
    pub(crate) fn pushed(&self, when: When, namespace: &Namespace, queue: &QueueName, jobs: u64) {
        self.lock().count(when, namespace, Some(queue), |minute| minute.pushed += jobs);
    }

    pub(crate) fn granted(&self, when: When, namespace: &Namespace, jobs: &[GrantedJob<'_>]) {
        let mut all = self.lock();
        // The jobs of one call are mostly of one queue.
        for same in jobs.chunk_by(|one, next| one.queue == next.queue) {
            all.count(when, namespace, Some(same[0].queue), |minute| {
                minute.granted += same.len() as u64;
                minute.lost += same.iter().filter(|job| job.lost).count() as u64;
                same.iter().filter_map(|job| job.wait).for_each(|wait| minute.waits.count(wait));
            });
        }
    }

    pub(crate) fn ended(&self, when: When, namespace: &Namespace, runs: &[EndedRun]) {
        let mut all = self.lock();
        for same in runs.chunk_by(|one, next| one.queue == next.queue) {
            all.count(when, namespace, same[0].queue.as_ref(), |minute| {
                let succeeded = same.iter().filter(|run| run.succeeded).count() as u64;
                minute.succeeded += succeeded;
                minute.failed += same.len() as u64 - succeeded;
                same.iter().filter_map(|run| run.ran).for_each(|ran| minute.runs.count(ran));
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, AllMinutes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct AllMinutes {
    namespaces: HashMap<Namespace, OfNamespace>,
    /// The number of queues in all namespaces.
    queues: usize,
    /// The number of minutes in all queues.
    queue_minutes: usize,
    /// A queue without an entry has been idle from this minute on.
    forgot: u64,
}

impl AllMinutes {
    fn last(
        &self,
        now: u64,
        namespace: &Namespace,
        queue: Option<&QueueName>,
        most: usize,
    ) -> Vec<Minute> {
        let Some(of) = self.namespaces.get(namespace) else { return Vec::new() };
        let none = VecDeque::new();
        let (minutes, since) = match queue.map(|queue| of.queues.get(queue)) {
            None => (&of.minutes, of.since),
            Some(Some(queue)) => (&queue.minutes, queue.since.max(of.since)),
            Some(None) => (&none, self.forgot.max(of.since)),
        };
        let newest = of.minutes.back().map_or(now, |minute| minute.number().max(now));
        let from = since.max((newest + 1).saturating_sub(most.min(MINUTES_KEPT) as u64));
        let mut there = minutes.iter().skip_while(|minute| minute.number() < from).peekable();
        let minute = |number| {
            let busy = there.next_if(|minute| minute.number() == number);
            busy.copied().unwrap_or_else(|| Minute::of(number))
        };
        (from..=newest).map(minute).collect()
    }

    fn busy(&self, now: u64) -> Vec<Namespace> {
        let is_busy = |minute: &Minute| minute.number() + 60 > now && minute.is_busy();
        let busy = self.namespaces.iter().filter(|(_, of)| of.minutes.iter().any(is_busy));
        busy.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// Counts for a namespace, and for one of its queues while there is room.
    fn count(
        &mut self,
        when: When,
        namespace: &Namespace,
        queue: Option<&QueueName>,
        count: impl Fn(&mut Minute),
    ) {
        let number = match when {
            When::Now => number_of(SystemClock.now()),
            When::Then(at) => number_of(at),
        };
        let goes_on = matches!(when, When::Now);
        self.count_at(number, goes_on, namespace, queue, count);
    }

    /// `goes_on`: never before the last minute with counts.
    fn count_at(
        &mut self,
        number: u64,
        goes_on: bool,
        namespace: &Namespace,
        queue: Option<&QueueName>,
        count: impl Fn(&mut Minute),
    ) {
        if !self.namespaces.contains_key(namespace) {
            if self.namespaces.len() >= NAMESPACES_MAX {
                return;
            }
            let begins = OfNamespace { since: number, ..OfNamespace::default() };
            self.namespaces.insert(namespace.clone(), begins);
        }
        let Some(of) = self.namespaces.get_mut(namespace) else { return };
        let last = of.minutes.back().filter(|_| goes_on).map_or(0, Minute::number);
        let number = number.max(last);
        of.since = of.since.min(number);
        count(minute_in(&mut of.minutes, number).0);
        forget_old(&mut of.minutes);
        let Some(queue) = queue else { return };
        if !of.queues.contains_key(queue) && !self.make_room(number) {
            return;
        }
        let Some(of) = self.namespaces.get_mut(namespace) else { return };
        if !of.queues.contains_key(queue) {
            let begins = OfQueue { since: self.forgot, ..OfQueue::default() };
            of.queues.insert(queue.clone(), begins);
            self.queues += 1;
        }
        let Some(of) = of.queues.get_mut(queue) else { return };
        let (minute, is_new) = minute_in(&mut of.minutes, number);
        count(minute);
        self.queue_minutes += usize::from(is_new);
        self.queue_minutes -= forget_old(&mut of.minutes);
        self.forget_oldest();
    }

    /// Makes room for a queue with counts in this minute; `false`: all others have had counts since.
    fn make_room(&mut self, number: u64) -> bool {
        if self.queues < QUEUES_MAX {
            return true;
        }
        let queues = self.namespaces.iter().flat_map(|(namespace, of)| {
            of.queues.iter().map(move |(queue, minutes)| (namespace, queue, minutes))
        });
        let last = |of: &OfQueue| of.minutes.back().map_or(0, Minute::number);
        let idle = queues.min_by_key(|(_, _, of)| last(of)).filter(|(_, _, of)| last(of) < number);
        let Some((namespace, queue, of)) = idle else {
            self.forgot = self.forgot.max(number + 1);
            return false;
        };
        self.forgot = self.forgot.max(last(of) + 1);
        let (namespace, queue) = (namespace.clone(), queue.clone());
        let of = self.namespaces.get_mut(&namespace);
        if let Some(gone) = of.and_then(|of| of.queues.remove(&queue)) {
            self.queues -= 1;
            self.queue_minutes -= gone.minutes.len();
        }
        true
    }

    fn forget_oldest(&mut self) {
        while self.queue_minutes > QUEUE_MINUTES_MAX {
            let queues = self.namespaces.values_mut().flat_map(|of| of.queues.values_mut());
            let first = |of: &OfQueue| of.minutes.front().map_or(u64::MAX, Minute::number);
            let oldest = queues.min_by_key(|of| first(of));
            let Some(of) = oldest else { return };
            let Some(gone) = of.minutes.pop_front() else { return };
            of.since = of.since.max(gone.number() + 1);
            self.queue_minutes -= 1;
        }
    }
}

/// The minute of this number, inserted if it is missing; returns whether it was.
fn minute_in(minutes: &mut VecDeque<Minute>, number: u64) -> (&mut Minute, bool) {
    // Mostly the last one.
    let is_last = minutes.back().is_some_and(|minute| minute.number() == number);
    let at = if is_last {
        minutes.len() - 1
    } else {
        minutes.partition_point(|minute| minute.number() < number)
    };
    let is_new = minutes.get(at).is_none_or(|minute| minute.number() != number);
    if is_new {
        minutes.insert(at, Minute::of(number));
    }
    (&mut minutes[at], is_new)
}

/// Forgets minutes older than a day; returns how many.
fn forget_old(minutes: &mut VecDeque<Minute>) -> usize {
    let newest = minutes.back().map_or(0, Minute::number);
    let is_old = |minute: &Minute| minute.number() + MINUTES_KEPT as u64 <= newest;
    if !minutes.front().is_some_and(is_old) {
        return 0;
    }
    let old = minutes.partition_point(is_old);
    minutes.drain(..old).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first minute of the tests.
    const BEGIN: u64 = 1_000_000;

    fn queue(n: usize) -> QueueName {
        QueueName::parse(&format!("q{n}")).unwrap()
    }

    /// Counts a successful run of a queue in this minute.
    fn succeeds(all: &mut AllMinutes, minute: u64, queue: Option<&QueueName>) {
        all.count_at(BEGIN + minute, true, &Namespace::main(), queue, |minute| {
            minute.succeeded += 1;
        });
    }

    /// The same, reported late.
    fn succeeded(all: &mut AllMinutes, minute: u64, queue: Option<&QueueName>) {
        all.count_at(BEGIN + minute, false, &Namespace::main(), queue, |minute| {
            minute.succeeded += 1;
        });
    }

    /// The successful runs of each minute up to this one.
    fn drawn(all: &AllMinutes, now: u64, queue: Option<&QueueName>, most: usize) -> Vec<u64> {
        let minutes = all.last(BEGIN + now, &Namespace::main(), queue, most);
        assert!(minutes.windows(2).all(|two| two[0].number() + 1 == two[1].number()));
        assert!(minutes.last().is_none_or(|minute| minute.number() == BEGIN + now));
        minutes.iter().map(|minute| minute.succeeded).collect()
    }

    #[test]
    fn minutes_are_drawn_without_gaps_even_if_idle() {
        let mut all = AllMinutes::default();
        // The last one comes from a clock that stepped back.
        for minute in [0, 0, 3, 2] {
            succeeds(&mut all, minute, Some(&queue(1)));
        }
        for queue in [None, Some(queue(1))] {
            assert_eq!(drawn(&all, 4, queue.as_ref(), 10), [2, 0, 0, 2, 0]);
            assert_eq!(drawn(&all, 4, queue.as_ref(), 2), [2, 0]);
        }
        assert_eq!(drawn(&all, 4, Some(&queue(2)), 10), [0; 5], "nothing happened in it");
        assert_eq!(all.queue_minutes, 2, "minutes in which nothing happened cost nothing");
        let other = Namespace::parse("other").unwrap();
        assert_eq!(all.last(BEGIN, &other, None, 2), []);
    }

    #[test]
    fn a_day_is_kept_and_a_long_silence_costs_nothing() {
        let mut all = AllMinutes::default();
        for minute in [0, 10, 5_000_000] {
            succeeds(&mut all, minute, Some(&queue(1)));
        }
        for queue in [None, Some(queue(1))] {
            let day = drawn(&all, 5_000_000, queue.as_ref(), usize::MAX);
            assert_eq!((day.len(), day.iter().sum::<u64>()), (MINUTES_KEPT, 1));
        }
        assert_eq!(all.queue_minutes, 1);
    }

    #[test]
    fn a_namespace_is_busy_for_an_hour_or_while_a_job_is_ready() {
        let mut all = AllMinutes::default();
        let names = ["still", "waits"].map(|name| Namespace::parse(name).unwrap());
        let [still, waits] = &names;
        let looks = |all: &mut AllMinutes, from: u64, to: u64| {
            for now in from..to {
                for (namespace, age) in [(still, Span::ZERO), (waits, Span::from_s(7))] {
                    all.count_at(BEGIN + now, true, namespace, None, |minute| {
                        minute.oldest_ready = Some(age);
                    });
                }
            }
            let mut busy = all.busy(BEGIN + to - 1);
            busy.sort_unstable();
            busy
        };
        assert_eq!(looks(&mut all, 0, 1), std::slice::from_ref(waits));
        all.count_at(BEGIN + 1, true, still, None, |minute| minute.succeeded += 1);
        assert_eq!(looks(&mut all, 2, 60), names);
        assert_eq!(looks(&mut all, 60, 62), std::slice::from_ref(waits));
    }

    #[test]
    fn the_worst_look_of_a_minute_is_kept() {
        let minutes = Minutes::default();
        let main = Namespace::main();
        for age in [3, 9, 0] {
            minutes.looked(&main, Span::from_s(age));
        }
        let last = minutes.last(&main, None, 2);
        let worst = last.iter().filter_map(|minute| minute.oldest_ready).max();
        assert_eq!(worst, Some(Span::from_s(9)));
    }

    #[test]
    fn the_queue_idle_for_longest_makes_room_for_another() {
        let mut all = AllMinutes::default();
        for n in 0..QUEUES_MAX {
            succeeds(&mut all, n as u64, Some(&queue(n)));
        }
        succeeds(&mut all, 300, Some(&queue(0)));
        succeeds(&mut all, 301, Some(&queue(QUEUES_MAX)));
        assert_eq!(all.queues, QUEUES_MAX);
        let runs = |n: usize| drawn(&all, 302, Some(&queue(n)), 1_000).iter().sum::<u64>();
        assert_eq!([0, 1, 2, QUEUES_MAX].map(runs), [2, 0, 1, 1]);
        assert_eq!(drawn(&all, 302, None, 1_000).iter().sum::<u64>(), QUEUES_MAX as u64 + 2);
        // A forgotten minute is not drawn as idle, even if the queue comes back.
        assert_eq!(drawn(&all, 302, Some(&queue(1)), 1_000).len(), 303 - 2);
        succeeds(&mut all, 303, Some(&queue(1)));
        assert_eq!(drawn(&all, 303, Some(&queue(1)), 1_000).len(), 304 - 3);
    }

    #[test]
    fn of_more_queues_at_once_than_are_counted_the_first_stay() {
        let mut all = AllMinutes::default();
        for n in 0..2 * QUEUES_MAX {
            succeeds(&mut all, 0, Some(&queue(n)));
        }
        assert_eq!((all.queues, all.queue_minutes), (QUEUES_MAX, QUEUES_MAX));
        assert_eq!(drawn(&all, 0, Some(&queue(0)), 10), [1]);
        assert_eq!(drawn(&all, 1, Some(&queue(QUEUES_MAX)), 10), [0], "of before nothing is known");
    }

    #[test]
    fn the_oldest_minutes_of_queues_are_dropped_at_the_limit() {
        let mut all = AllMinutes::default();
        let each = (QUEUE_MINUTES_MAX / QUEUES_MAX) as u64;
        for minute in 0..each + 10 {
            for n in 0..QUEUES_MAX {
                succeeds(&mut all, minute, Some(&queue(n)));
            }
        }
        assert_eq!(all.queue_minutes, QUEUE_MINUTES_MAX);
        let now = each + 9;
        assert_eq!(drawn(&all, now, Some(&queue(7)), 10_000), vec![1; each as usize]);
        assert_eq!(drawn(&all, now, None, 10_000).len(), each as usize + 10);
    }

    #[test]
    fn late_counts_go_into_their_minute_and_displace_nothing_newer() {
        let mut all = AllMinutes::default();
        for n in 0..QUEUES_MAX {
            succeeds(&mut all, 10, Some(&queue(n)));
        }
        for minute in [3, 7, 10] {
            succeeded(&mut all, minute, Some(&queue(0)));
        }
        succeeded(&mut all, 8, Some(&queue(QUEUES_MAX)));
        assert_eq!(drawn(&all, 11, Some(&queue(0)), 60), [1, 0, 0, 0, 1, 0, 0, 2, 0]);
        assert_eq!(all.queues, QUEUES_MAX);
        assert_eq!(drawn(&all, 11, Some(&queue(QUEUES_MAX)), 60), [0; 3], "from the ninth on");
    }
}
