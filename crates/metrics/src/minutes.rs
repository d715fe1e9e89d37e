//! What happened in each minute of the last day, for pictures.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::names::Namespace;
use tenure_core::time::{Moment, Span};
use tenure_seam::histogram::{WORK_BOUNDS, bucket_of};
use tenure_seam::{Clock, SystemClock};

const MINUTE_US: u64 = 60_000_000;
/// A day, and the minute that is not over.
const MINUTES_KEPT: usize = 24 * 60 + 1;
/// Namespaces that are counted; those that come later have no pictures.
const NAMESPACES_MAX: usize = 64;

/// What this process did in one minute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Minute {
    /// Its begin.
    pub at: Moment,
    /// Jobs that were pushed and not there already.
    pub pushed: u64,
    /// Jobs that were granted.
    pub granted: u64,
    /// Those of them whose run before was lost, its holder being gone.
    pub lost: u64,
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs that failed, for good or not.
    pub failed: u64,
    /// For how long the oldest ready job had been ready, at the worst look of this minute; zero if none was ready, `None` if
    /// nobody looked.
    pub oldest_ready: Option<Span>,
    waits: [u32; WORK_BOUNDS.len() + 1],
    /// The longest wait of the jobs that were granted.
    longest: Duration,
}

impl Minute {
    fn of(at: Moment) -> Self {
        let waits = [0; WORK_BOUNDS.len() + 1];
        let [pushed, granted, lost, succeeded, failed] = [0; 5];
        let longest = Duration::ZERO;
        Minute { at, pushed, granted, lost, succeeded, failed, oldest_ready: None, waits, longest }
    }

    /// Whether something was counted, or waited.
    fn is_busy(&self) -> bool {
        let counted = self.pushed + self.granted + self.succeeded + self.failed;
        counted > 0 || self.oldest_ready.is_some_and(|age| age > Span::ZERO)
    }

    /// The wait that this share (0 to 1) of the granted jobs did not exceed, interpolated within its bucket; at most the
    /// longest wait of the minute. `None` if none was granted.
    pub fn waited(&self, share: f64) -> Option<Span> {
        let all: u64 = self.waits.iter().map(|times| u64::from(*times)).sum();
        let wanted = all as f64 * share;
        let (mut below, mut from) = (0.0, 0.0);
        for (at, times) in self.waits.iter().enumerate() {
            let times = f64::from(*times);
            let longest = self.longest.as_secs_f64();
            let to = WORK_BOUNDS.get(at).map_or(longest, |bound| bound.min(longest)).max(from);
            if times > 0.0 && below + times >= wanted {
                let within = ((wanted - below) / times).clamp(0.0, 1.0);
                let waited = from + (to - from) * within;
                return Some(Span::from(Duration::from_secs_f64(waited)));
            }
            (below, from) = (below + times, to);
        }
        None
    }
}

/// The minutes of each namespace, oldest first.
#[derive(Debug, Default)]
pub struct Minutes(Mutex<HashMap<Namespace, VecDeque<Minute>>>);

impl Minutes {
    /// The last `most` minutes of a namespace, oldest first, the one that is not over last. Minutes before the process began
    /// are not there; those in which nothing happened are.
    pub fn last(&self, namespace: &Namespace, most: usize) -> Vec<Minute> {
        self.last_at(SystemClock.now(), namespace, most)
    }

    fn last_at(&self, now: Moment, namespace: &Namespace, most: usize) -> Vec<Minute> {
        let mut all = self.lock();
        let Some(minutes) = all.get_mut(namespace) else { return Vec::new() };
        up_to(minutes, now);
        let skipped = minutes.len().saturating_sub(most);
        minutes.iter().skip(skipped).copied().collect()
    }

    /// The namespaces that this process heard of, by name.
    pub fn namespaces(&self) -> Vec<Namespace> {
        let mut known: Vec<_> = self.lock().keys().cloned().collect();
        known.sort_unstable();
        known
    }

    /// The namespaces in which something happened or waited within the last hour: who looks at others only keeps them from being
    /// forgotten.
    pub fn busy(&self) -> Vec<Namespace> {
        let all = self.lock();
        let busy =
            all.iter().filter(|(_, minutes)| minutes.iter().rev().take(60).any(Minute::is_busy));
        busy.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// Notes for how long the oldest ready job of a namespace has been ready.
    pub fn looked(&self, namespace: &Namespace, oldest_ready: Span) {
        self.count(SystemClock.now(), namespace, |minute| {
            minute.oldest_ready = minute.oldest_ready.max(Some(oldest_ready));
        });
    }

    pub(crate) fn pushed(&self, namespace: &Namespace, jobs: u64) {
        self.count(SystemClock.now(), namespace, |minute| minute.pushed += jobs);
    }

    pub(crate) fn granted(&self, namespace: &Namespace, waits: &[Duration], lost: u64) {
        self.count(SystemClock.now(), namespace, |minute| {
            minute.granted += waits.len() as u64;
            minute.lost += lost;
            for wait in waits {
                let times = &mut minute.waits[bucket_of(&WORK_BOUNDS, *wait)];
                *times = times.saturating_add(1);
                minute.longest = minute.longest.max(*wait);
            }
        });
    }

    pub(crate) fn ended(&self, namespace: &Namespace, succeeded: u64, failed: u64) {
        self.count(SystemClock.now(), namespace, |minute| {
            minute.succeeded += succeeded;
            minute.failed += failed;
        });
    }

    fn count(&self, now: Moment, namespace: &Namespace, count: impl FnOnce(&mut Minute)) {
        let mut all = self.lock();
        if let Some(minutes) = all.get_mut(namespace) {
            up_to(minutes, now).map(count);
        } else if all.len() < NAMESPACES_MAX {
            let minutes = all.entry(namespace.clone()).or_default();
            up_to(minutes, now).map(count);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Namespace, VecDeque<Minute>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Goes on to the minute of `now`, which is answered. A clock that stepped back goes on with the last minute.
fn up_to(minutes: &mut VecDeque<Minute>, now: Moment) -> Option<&mut Minute> {
    let this = now.us() / MINUTE_US;
    let next = match minutes.back() {
        // After a gap of a day nothing of before is kept.
        Some(last) => (last.at.us() / MINUTE_US + 1).max(this.saturating_sub(MINUTES_KEPT as u64)),
        None => this,
    };
    for minute in next..=this {
        if minutes.len() >= MINUTES_KEPT {
            minutes.pop_front();
        }
        minutes.push_back(Minute::of(Moment::from_us(minute * MINUTE_US)));
    }
    minutes.back_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn at(minute: u64) -> Moment {
        Moment::from_us((1_000_000 + minute) * MINUTE_US + 7)
    }

    #[test]
    fn minutes_follow_each_other_also_those_in_which_nothing_happened() {
        let minutes = Minutes::default();
        let main = Namespace::main();
        minutes.count(at(0), &main, |minute| minute.succeeded += 2);
        minutes.count(at(3), &main, |minute| minute.failed += 1);
        // A clock that stepped back.
        minutes.count(at(2), &main, |minute| minute.failed += 1);
        let all = minutes.last_at(at(4), &main, 10);
        let told: Vec<_> = all.iter().map(|minute| (minute.succeeded, minute.failed)).collect();
        assert_eq!(told, [(2, 0), (0, 0), (0, 0), (0, 2), (0, 0)]);
        assert!(all.windows(2).all(|two| two[1].at.us() - two[0].at.us() == MINUTE_US));
        assert_eq!(minutes.last_at(at(4), &main, 2), all[3..]);
        let other = Namespace::parse("other").unwrap();
        assert_eq!(minutes.last_at(at(4), &other, 2), []);
    }

    #[test]
    fn a_day_is_kept_and_a_long_silence_costs_no_more_than_a_day() {
        let minutes = Minutes::default();
        let main = Namespace::main();
        for now in [0, 10, 5_000_000] {
            minutes.count(at(now), &main, |minute| minute.succeeded += 1);
        }
        let all = minutes.last_at(at(5_000_000), &main, usize::MAX);
        assert_eq!(all.len(), MINUTES_KEPT);
        assert_eq!(all.iter().map(|minute| minute.succeeded).sum::<u64>(), 1);
    }

    #[test]
    fn a_namespace_is_busy_for_an_hour_and_while_a_job_of_it_is_ready() {
        let minutes = Minutes::default();
        let names = ["still", "waits"].map(|name| Namespace::parse(name).unwrap());
        let [still, waits] = &names;
        let looks = |from: u64, to: u64| {
            for now in from..to {
                minutes.count(at(now), still, |minute| minute.oldest_ready = Some(Span::ZERO));
                minutes.count(at(now), waits, |minute| minute.oldest_ready = Some(Span::from_s(7)));
            }
            let mut busy = minutes.busy();
            busy.sort_unstable();
            busy
        };
        assert_eq!(looks(0, 1), std::slice::from_ref(waits));
        minutes.count(at(1), still, |minute| minute.succeeded += 1);
        assert_eq!(looks(2, 60), names);
        assert_eq!(looks(60, 62), std::slice::from_ref(waits));
    }

    #[test]
    fn the_worst_look_of_a_minute_is_kept() {
        let minutes = Minutes::default();
        let main = Namespace::main();
        for age in [3, 9, 0] {
            minutes.looked(&main, Span::from_s(age));
        }
        let worst = minutes.last(&main, 2).iter().filter_map(|minute| minute.oldest_ready).max();
        assert_eq!(worst, Some(Span::from_s(9)));
    }

    /// The minute in which jobs with these waits were granted.
    fn granted(waits: impl IntoIterator<Item = Duration>) -> Minute {
        let (minutes, main) = (Minutes::default(), Namespace::main());
        minutes.granted(&main, &waits.into_iter().collect::<Vec<_>>(), 0);
        *minutes.last(&main, 2).iter().find(|minute| minute.granted > 0).unwrap()
    }

    #[test]
    fn a_share_of_the_waits_is_told_between_two_bounds() {
        let minute = granted((1..=144).map(Duration::from_secs));
        for (share, s) in [(0.5, 72.0), (0.95, 136.8)] {
            let waited = Duration::from(minute.waited(share).unwrap()).as_secs_f64();
            assert!((waited - s).abs() < 3.0, "{share}: {waited} s");
        }
        assert_eq!(Minute::of(at(0)).waited(0.5), None);
    }

    #[test]
    fn no_wait_is_told_that_is_longer_than_the_longest() {
        for longest in [Duration::from_millis(3), Duration::from_secs(144), 3 * DAY] {
            let minute = granted([Duration::from_millis(2), longest, longest]);
            for share in [0.5, 0.95, 1.0] {
                let waited = Duration::from(minute.waited(share).unwrap());
                assert!(waited <= longest, "{waited:?} of {longest:?}");
            }
            assert_eq!(Duration::from(minute.waited(1.0).unwrap()), longest);
        }
    }
}
