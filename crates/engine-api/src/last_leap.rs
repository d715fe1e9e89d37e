//! The notice for the operator after the engine's clock leapt ahead. It decides nothing.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::time::Span;

/// The time for which a leap is shown.
const TOLD_FOR: Duration = Duration::from_secs(60);

/// The last leap of an engine's clock. Starts empty.
#[derive(Debug, Default)]
pub struct LastLeap(Mutex<Option<(Instant, Span)>>);

impl LastLeap {
    /// Notes that the clock leapt ahead by this span.
    pub fn note(&self, by: Span) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), by));
    }

    /// A sentence for the operator, for a minute after each leap. `clock` names the clock: "the clock".
    pub fn notice(&self, clock: &str) -> Option<String> {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, by) = last.filter(|(at, _)| at.elapsed() < TOLD_FOR)?;
        Some(format!(
            "{clock} leapt ahead by {by}: no lease ends early by it, dead holders are found out up to one ttl later; \
             let the clock be slewed, not stepped"
        ))
    }
}
