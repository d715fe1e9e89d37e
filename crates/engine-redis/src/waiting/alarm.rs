//! A sleep that ends when it is to end. The runtime's own timers count in milliseconds and round up, so a due
//! moment would be served one late and more.
//!
//! It never ends early, and whoever drops it leaves a sleeping thread behind for two milliseconds at most.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The last part of a sleep, which a thread of its own sleeps: more than a timer may be late.
const PRECISE: Duration = Duration::from_millis(2);

/// Returns at a moment, some 0.1 ms late on a machine that has time.
pub(super) async fn alarm(at: Instant) {
    if let Some(coarse) = at.checked_sub(PRECISE)
        && coarse > Instant::now()
    {
        sleep_until(coarse).await;
    }
    let rest = at.saturating_duration_since(Instant::now());
    if rest.is_zero() {
        return;
    }
    // A runtime that is ending runs no more threads: then the timer will do.
    if tokio::task::spawn_blocking(move || std::thread::sleep(rest)).await.is_err() {
        sleep_until(at).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_never_ends_early() {
        for us in [0, 1, 300, 1_999, 2_000, 2_001, 7_300] {
            let at = Instant::now() + Duration::from_micros(us);
            alarm(at).await;
            assert!(Instant::now() >= at, "after {us} us");
        }
        let past = Instant::now().checked_sub(Duration::from_secs(1));
        alarm(past.unwrap_or_else(Instant::now)).await;
    }
}
