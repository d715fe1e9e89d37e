//! Previews: the next moments of a timing that no schedule has yet. No engine is involved, and nothing is stored.

use serde::Serialize;
use tenure_core::decode::PreviewAsked;
use tenure_core::refusal::Refusal;
use tenure_core::time::Moment;
use tenure_core::view;

use crate::timing::Timing;

view! {
    /// The next moments of a timing, without jitter.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize)]
    pub struct Preview {
        /// The next moments, without jitter.
        pub next: Vec<Moment>,
    }
}

impl Preview {
    /// The moments after `from`, or after `now` if the caller gives no `from`.
    ///
    /// # Errors
    /// The expression or the zone is refused (see [`Timing::of`]), or no moment follows within ten years.
    pub fn of(asked: &PreviewAsked, now: Moment) -> Result<Self, Refusal> {
        // Without an id, the moments of the timing do not depend on one.
        let id = asked.id.as_ref().map_or("", |id| id.as_str());
        let timing = Timing::of(&asked.timing, id)?;
        let from = asked.from.unwrap_or(now);
        timing.first_after(from)?;
        Ok(Preview { next: timing.moments_after(from).take(asked.count).collect() })
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::decode;

    use super::*;

    fn next(body: &str) -> Vec<String> {
        let now = "2026-12-01T08:00:00Z".parse().unwrap();
        let preview = Preview::of(&decode::preview(body.as_bytes()).unwrap(), now).unwrap();
        preview.next.iter().map(Moment::to_string).collect()
    }

    #[test]
    fn a_preview_shows_what_follows_now_or_a_moment() {
        let daily = next(r#"{"cron":"0 9 * * *","zone":"Europe/Berlin"}"#);
        assert_eq!(daily.len(), 5);
        assert_eq!(daily[0], "2026-12-02T08:00:00.000000Z", "08:00 itself is not after now");
        assert_eq!(
            next(r#"{"cron":"0 9 * * *","from":"2027-06-01T00:00:00Z","count":1}"#),
            ["2027-06-01T09:00:00.000000Z"]
        );
        assert_eq!(
            next(r#"{"cron":"0 9 * * *","ends_at":"2026-12-02T09:00:00Z","count":100}"#),
            ["2026-12-01T09:00:00.000000Z", "2026-12-02T09:00:00.000000Z"]
        );
        assert_eq!(
            next(r#"{"every":"15m","starts_at":"2026-12-01T07:55:00Z","count":2}"#),
            ["2026-12-01T08:10:00.000000Z", "2026-12-01T08:25:00.000000Z"]
        );
        // The phase of this id and interval is 526 s.
        assert_eq!(
            next(r#"{"id":"news-42","every":"15m","count":2}"#),
            ["2026-12-01T08:08:46.000000Z", "2026-12-01T08:23:46.000000Z"]
        );
    }
}
