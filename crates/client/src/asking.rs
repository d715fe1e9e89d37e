//! Repeats lease calls: chooses how long each one waits and under which id it is sent, which failures are retried, and
//! how long to pause.
//!
//! A wait is asked for in slices, so that a grant is always read while it is fresh. Each answered slice is followed by
//! one under a new request id. A call with an unknown outcome is retried under the same id, which finds its grant; a
//! grant found so counts from when its id was first sent.

use std::time::Duration;

use tenure_core::bounds::{TTL_US_DEFAULT, WAIT_US_MAX};
use tenure_core::names::RequestId;
use tenure_core::refusal::Code;
use tenure_core::time::Span;
use tenure_engine_api::{CallError, Fault};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::ids;
use crate::lease_clock::{LeaseClock, LeaseTime};
use crate::token_bounds;

/// The longest wait that one lease call asks for: a sixth of the ttl. A token (a ttl of zero) is held
/// by nobody and cannot be read too late, so that any slice serves.
pub fn slice(ttl: Span) -> Span {
    let ttl = if ttl == Span::ZERO { TTL_US_DEFAULT } else { ttl.us() };
    Span::from_us((ttl / 6).min(WAIT_US_MAX))
}

/// Whether a refusal is about the engine and not about the request: a later retry can succeed.
pub fn is_engines(code: Code) -> bool {
    matches!(code, Code::Draining | Code::NotOwner | Code::StoreFull | Code::Overloaded)
}

/// The fault of an answer that does not fit its call.
pub(crate) fn broken(what: &str) -> CallError {
    CallError::Fault(Fault::Broken(what.to_owned()))
}

/// Whether a retry of the same call can have another answer.
pub fn passes(error: &CallError) -> bool {
    match error {
        CallError::Fault(Fault::Unavailable(_) | Fault::StoreAway(_) | Fault::Unknown(_)) => true,
        CallError::Fault(_) => false,
        CallError::Refused(no) => is_engines(no.code),
    }
}

/// A wait without an end is given up after this long without an answer.
pub const AWAY_MAX: Duration = Duration::from_secs(60);

/// When a lease call was sent.
#[derive(Clone, Copy)]
pub struct Sent {
    /// On the clock by which answers are waited for.
    pub here: Instant,
    /// On the clock of leases: a grant counts from then.
    pub counts_from: LeaseTime,
}

impl Sent {
    /// A call that is sent now.
    pub fn now(clock: &LeaseClock) -> Self {
        // In this order: a pause between the two makes the grant older.
        let counts_from = clock.now();
        Sent { here: Instant::now(), counts_from }
    }
}

/// The state of a lease call that is repeated: its request id and its backoff.
pub struct Asking {
    /// Whether to wait for an engine that does not answer. By default only for one that answered before: otherwise its
    /// address may be wrong.
    waits: bool,
    /// When the first call after the last answer failed, or its answer was due if that is earlier.
    away_since: Option<Instant>,
    /// Whether it was away since a call was last answered well; a refusal in between does not tell the caller that it is
    /// back.
    was_away: bool,
    backoff: Backoff,
    /// The id of the next call.
    id: RequestId,
    /// When that id was first sent, if it may have got a grant since.
    unknown_since: Option<LeaseTime>,
}

/// What to do after an answer.
pub struct Answered {
    /// Whether it is the first answer after calls that failed.
    pub again: bool,
    /// How long to hold back before the next call.
    pub pause: Duration,
}

impl Asking {
    /// Before the first call.
    pub fn new() -> Self {
        Asking {
            waits: false,
            away_since: None,
            was_away: false,
            backoff: Backoff::default(),
            id: ids::request_id(),
            unknown_since: None,
        }
    }

    /// The same, but waits for an engine even if it never answered.
    pub fn patient() -> Self {
        Asking { waits: true, ..Asking::new() }
    }

    /// The id of the next call, and when it was first sent, if that is not now: a grant counts from then.
    pub fn call(&self) -> (RequestId, Option<LeaseTime>) {
        (self.id.clone(), self.unknown_since)
    }

    /// A call that waited for `wait` was answered after `took`. The next one has another id. An engine that drains
    /// answers at once and with nothing: the pause keeps the caller from a tight loop.
    pub fn answered(&mut self, granted: bool, wait: Span, took: Duration) -> Answered {
        self.waits = true;
        self.id = ids::request_id();
        self.unknown_since = None;
        self.away_since = None;
        let again = std::mem::take(&mut self.was_away);
        if granted || took >= wait.std() / 2 {
            self.backoff = Backoff::default();
            return Answered { again, pause: Duration::ZERO };
        }
        Answered { again, pause: self.backoff.wait() }
    }

    /// The same as [`Asking::failed`] for a call that may have been granted something.
    pub fn lease_failed(&mut self, error: &CallError, sent: Sent, wait: Span) -> Option<Duration> {
        if matches!(error, CallError::Fault(Fault::Unknown(_))) {
            self.unknown_since.get_or_insert(sent.counts_from);
        }
        self.failed(error, sent.here, wait)
    }

    /// The call sent at `sent`, with a wait of `wait`, failed. Returns how long to pause before the retry; `None` if a
    /// retry is useless, because the call was refused or nothing ever answered.
    pub fn failed(&mut self, error: &CallError, sent: Instant, wait: Span) -> Option<Duration> {
        if let Some(pause) = token_bounds::wait_after_error(error) {
            // The engine is there. The id stays: nothing happened, and an earlier call under it may have a grant.
            self.waits = true;
            self.away_since = None;
            return Some(pause);
        }
        // It was sent, so something listens there.
        self.waits |= matches!(error, CallError::Fault(Fault::Unknown(_)));
        if !self.waits || !passes(error) {
            return None;
        }
        self.away_since.get_or_insert_with(|| Instant::now().min(sent + wait.std()));
        self.was_away = true;
        Some(self.backoff.wait())
    }

    /// Whether to wait for an engine that does not answer.
    pub fn has_met(&self) -> bool {
        self.waits
    }

    /// Since when nothing has answered.
    pub fn away_since(&self) -> Option<Instant> {
        self.away_since
    }

    /// How long nothing has answered.
    pub fn away(&self) -> Duration {
        self.away_since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease_clock::Slept;
    use tenure_core::refusal::Refusal;
    use tenure_core::sentences::AccessRefusal;

    thread_local! {
        /// Of the test, whose runtime has this thread alone.
        static CLOCK: LeaseClock = LeaseClock::of_tokio(&Slept::default());
    }

    fn sent_now() -> Sent {
        CLOCK.with(Sent::now)
    }
    fn unavailable() -> CallError {
        CallError::Fault(Fault::Unavailable("away".to_owned()))
    }
    fn unknown() -> CallError {
        CallError::Fault(Fault::Unknown("cut off".to_owned()))
    }
    fn refused(code: Code) -> CallError {
        CallError::Refused(Refusal::heard(code, "no", ""))
    }

    /// An engine that has answered.
    fn met() -> Asking {
        let mut asking = Asking::new();
        asking.answered(false, Span::from_s(5), Duration::from_secs(5));
        asking
    }

    #[tokio::test(start_paused = true)]
    async fn passing_errors_are_retried_once_an_engine_has_answered() {
        let broken = CallError::Fault(Fault::Broken("nonsense".to_owned()));
        for (error, again) in [
            (unavailable(), true),
            (unknown(), true),
            (refused(Code::Draining), true),
            (refused(Code::NotOwner), true),
            (refused(Code::StoreFull), true),
            (refused(Code::Overloaded), true),
            (refused(Code::InvalidField), false),
            (refused(Code::LineFull), false),
            (broken, false),
        ] {
            let failed = |mut asking: Asking| asking.lease_failed(&error, sent_now(), Span::ZERO);
            assert_eq!(failed(met()).is_some(), again, "{error:?}");
            assert_eq!(failed(Asking::patient()).is_some(), again, "{error:?}");
            let sent = error == unknown();
            assert_eq!(failed(Asking::new()).is_some(), sent, "{error:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_bounds_of_a_token_are_waited_for_under_the_same_id() {
        let (caller, calls) = ("crawler".to_owned(), "2/1s".to_owned());
        let no: Refusal = AccessRefusal::TooManyCalls { caller, calls, wait_s: 90 }.into();
        let wait = Span::from_s(5);
        let mut asking = Asking::new();
        let first = asking.call().0;
        asking.lease_failed(&unknown(), sent_now(), wait).unwrap();
        tokio::time::advance(Duration::from_secs(20)).await;
        for _ in 0..3 {
            let pause = asking.lease_failed(&no.clone().into(), sent_now(), wait);
            assert_eq!(pause, Some(Duration::from_secs(90)));
            tokio::time::advance(Duration::from_secs(90)).await;
            // It answers: that is no absence. But the first call may have got a grant.
            assert_eq!((asking.away(), asking.call().0), (Duration::ZERO, first.clone()));
            assert!(asking.call().1.is_some());
        }
        assert!(asking.answered(true, wait, Duration::ZERO).again, "it was away before");
        assert!(!asking.answered(true, wait, Duration::ZERO).again);
        assert!(Asking::new().lease_failed(&no.into(), sent_now(), wait).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_call_in_doubt_is_repeated_under_its_first_id() {
        let mut asking = met();
        let (first, begun) = (asking.call().0, sent_now());
        for error in [unavailable(), unknown(), unavailable(), unknown()] {
            tokio::time::advance(Duration::from_secs(70)).await;
            asking.lease_failed(&error, sent_now(), Span::ZERO).unwrap();
            assert_eq!(asking.call().0, first);
        }
        // The first request never arrived, so it cannot have got a grant.
        assert_eq!(asking.call().1, Some(begun.counts_from + Duration::from_secs(140)));
        asking.answered(true, Span::from_s(5), Duration::ZERO);
        let (next, since) = asking.call();
        assert!(next != first && since.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_absence_lasts_from_the_first_failure_to_the_next_answer() {
        let mut asking = met();
        assert_eq!(asking.away(), Duration::ZERO);
        asking.lease_failed(&unavailable(), sent_now(), Span::ZERO);
        tokio::time::advance(Duration::from_secs(7)).await;
        asking.lease_failed(&unavailable(), sent_now(), Span::ZERO);
        assert_eq!(asking.away(), Duration::from_secs(7));
        let wait = Span::from_s(5);
        assert!(asking.answered(false, wait, wait.std()).again);
        assert!(!asking.answered(false, wait, wait.std()).again);
        assert_eq!(asking.away(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_engine_is_away_since_its_answer_was_due() {
        for (wait_s, away_s) in [(5, 10), (60, 0)] {
            let mut asking = met();
            let sent = sent_now();
            tokio::time::advance(Duration::from_secs(15)).await;
            asking.lease_failed(&unknown(), sent, Span::from_s(wait_s));
            assert_eq!(asking.away(), Duration::from_secs(away_s), "a wait of {wait_s} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn empty_answers_that_come_at_once_cause_growing_pauses() {
        let (mut asking, wait) = (met(), Span::from_s(5));
        let mut longest = Duration::ZERO;
        for _ in 0..20 {
            longest = asking.answered(false, wait, Duration::from_millis(1)).pause;
            assert!(longest > Duration::ZERO);
        }
        assert!(longest >= Duration::from_secs(1), "{longest:?}");
        for (granted, took) in [(true, Duration::ZERO), (false, wait.std())] {
            assert_eq!(asking.answered(granted, wait, took).pause, Duration::ZERO);
        }
    }

    #[test]
    fn a_slice_is_a_sixth_of_the_ttl() {
        for (ttl, want) in [
            (Span::from_s(30), Span::from_s(5)),
            (Span::from_s(3_600), Span::from_us(WAIT_US_MAX)),
            (Span::ZERO, Span::from_s(5)),
        ] {
            assert_eq!(slice(ttl), want);
        }
    }
}
