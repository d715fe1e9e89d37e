//! Tells people what `lock` and `lease` wait for: after a second, and again when that has changed.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure::LockEvent;
use tenure_core::lease::Reason;

use super::why;
use crate::cmd::contact::Contact;
use crate::output::clock;
use crate::output::tell;

/// A change sooner than this after the last message is reported with a later look.
const AGAIN: Duration = Duration::from_secs(10);

/// The parts of a wait that make it news: the need, its holders, and the place in line. Times pass by themselves.
type WaitSeen = Vec<(String, Option<String>, Vec<String>, Option<u64>)>;

/// Tells people how one wait goes.
pub struct WaitTeller {
    /// Say nothing, except that the store is away.
    quiet: bool,
    contact: Contact,
    /// The last wait that was reported, and when.
    told: Mutex<Option<(WaitSeen, Instant)>>,
}

impl WaitTeller {
    /// Of a wait that begins.
    pub fn new(quiet: bool, url: &str) -> Self {
        WaitTeller { quiet, contact: Contact::with(url), told: Mutex::default() }
    }

    /// Tells people about an event, unless they know it already.
    pub fn hear(&self, event: &LockEvent) {
        match event {
            LockEvent::Waiting(last)
                if !self.quiet && self.is_news(&last.reasons, Instant::now()) =>
            {
                tell(&format!("waiting: {}", why::sentence(&last.reasons, clock::now())));
            }
            LockEvent::Trouble { error, away } => self.contact.lost(error, *away),
            LockEvent::Recovered => self.contact.found(),
            _ => {}
        }
    }

    fn is_news(&self, reasons: &[Reason], now: Instant) -> bool {
        let mut last = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let about = |reason: &Reason| {
            let holders = reason.holders.iter().map(|holder| holder.lease.clone()).collect();
            (reason.detail.clone(), reason.name.clone(), holders, reason.position)
        };
        let current: WaitSeen = reasons.iter().map(about).collect();
        let known = last.as_ref().is_some_and(|(known, at)| *known == current || now < *at + AGAIN);
        if known || current.is_empty() {
            return false;
        }
        *last = Some((current, now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::lease::ReasonKind;
    use tenure_core::settings::Holder;
    use tenure_core::time::{Moment, Span};

    fn held_by(lease: &str, since: u64, position: u64) -> Vec<Reason> {
        let holder = Holder {
            lease: lease.to_owned(),
            holder: "w".to_owned(),
            job: None,
            since: Moment::from_us(1).plus(Span::from_s(since)),
        };
        vec![Reason {
            kind: ReasonKind::Limit,
            name: Some("lock:x".to_owned()),
            in_use: Some(1),
            capacity: Some(1),
            holders: vec![holder],
            position: Some(position),
            ahead: None,
            earliest: None,
            detail: "1 of 1".to_owned(),
        }]
    }

    #[test]
    fn a_wait_is_told_when_it_changes_and_not_too_often() {
        let (waiting, begun) = (WaitTeller::new(false, "http://127.0.0.1:7171"), Instant::now());
        for (s, reasons, news) in [
            (1, held_by("L1", 1, 2), true),
            (6, held_by("L1", 6, 2), false),
            (30, held_by("L1", 30, 2), false),
            (31, held_by("L2", 1, 1), true),
            (32, held_by("L3", 1, 1), false),
            (40, held_by("L3", 9, 1), false),
            (42, held_by("L3", 11, 1), true),
            (90, Vec::new(), false),
        ] {
            let now = begun + Duration::from_secs(s);
            assert_eq!(waiting.is_news(&reasons, now), news, "after {s} s");
        }
    }
}
