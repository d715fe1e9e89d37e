//! Previews of timings. The server answers them itself: no engine knows a calendar, and nothing is stored.

use tenure_calendar::Preview;
use tenure_core::decode;
use tenure_core::refusal::Refusal;
use tenure_core::requests::HttpMethod;
use tenure_core::time::Moment;

use super::{Does, Route, Takes};
use crate::budget::Rank;

pub(super) static ROUTES: &[Route] = &[Route {
    method: HttpMethod::Post,
    path: "/v1/schedules/preview",
    name: "preview_schedule",
    summary: "Show the next moments of a timing, and store nothing",
    query: None,
    takes: Takes::Json("PreviewCall"),
    answers: &[(200, "Preview")],
    does: Does::Preview,
    rank: Rank::Ordinary,
}];

/// The moments that follow the body's time, or `now`.
pub(crate) fn answer(body: &[u8], now: Moment) -> Result<Preview, Refusal> {
    Preview::of(&decode::preview(body)?, now)
}
