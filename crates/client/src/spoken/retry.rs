//! Retry settings of a job: the number of attempts, and the pauses between them.

use std::time::Duration;

use tenure_core::job::{Backoff, Retry as CheckedRetry};
use tenure_core::time::Span;

/// How often a job is tried, and how long it waits in between. By default: 20 attempts, after pauses that double from 1
/// s to 1 h, and a job whose workers died three times in a row has failed.
///
/// ```
/// use std::time::Duration;
/// use tenure::Retry;
///
/// let minute = Duration::from_secs(60);
/// let patient = Retry::new().attempts(0).exponential(minute, 60 * minute).max_lost(0);
/// let asks_ten_times = Retry::new().max_snoozes(10);
/// let steady = Retry::new().attempts(3).fixed(minute).exactly();
/// let listed = Retry::new().attempts(4).waits([minute, 5 * minute, 60 * minute]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Retry(CheckedRetry);

impl Retry {
    /// The default settings, to be changed by the methods that follow.
    pub fn new() -> Self {
        Retry::default()
    }
    /// Runs that may fail, the first one included; 0 retries without an end.
    pub fn attempts(mut self, runs: u32) -> Self {
        self.0.max_attempts = runs;
        self
    }
    /// Deaths of its workers in a row that make the job fail; with 0 they never do.
    pub fn max_lost(mut self, deaths: u32) -> Self {
        self.0.max_lost = deaths;
        self
    }
    /// How often a job may snooze; one snooze more makes it fail. Without a bound by default.
    pub fn max_snoozes(mut self, snoozes: u32) -> Self {
        self.0.max_snoozes = Some(snoozes);
        self
    }
    /// The first pause is `base`, and each one is twice as long as the one before it, up to `max`.
    pub fn exponential(mut self, base: Duration, max: Duration) -> Self {
        let (base, max) = (base.into(), max.into());
        self.0.backoff = Backoff::Exponential { base, max, jitter: true };
        self
    }
    /// Every pause is this long.
    pub fn fixed(mut self, wait: Duration) -> Self {
        self.0.backoff = Backoff::Fixed { base: wait.into(), jitter: true };
        self
    }
    /// One pause after the other, 1 to 100 of them; the last one repeats.
    pub fn waits(mut self, waits: impl IntoIterator<Item = Duration>) -> Self {
        let delays = waits.into_iter().map(Span::from).collect();
        self.0.backoff = Backoff::List { delays, jitter: true };
        self
    }
    /// Waits exactly that long. By default each pause is spread between its half and its whole, so that jobs which
    /// failed together do not come back together.
    pub fn exactly(mut self) -> Self {
        match &mut self.0.backoff {
            Backoff::Exponential { jitter, .. }
            | Backoff::Fixed { jitter, .. }
            | Backoff::List { jitter, .. } => *jitter = false,
        }
        self
    }

    /// The same as a type of the contract. The reader of the body checks its bounds.
    pub(crate) fn checked(self) -> CheckedRetry {
        self.0
    }
}
