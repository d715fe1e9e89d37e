//! Previews of timings. The server answers them itself: no engine knows a calendar, and nothing is stored.

use tenure_calendar::Preview;
use tenure_core::decode;
use tenure_core::refusal::Refusal;
use tenure_core::requests::HttpMethod;
use tenure_core::time::Moment;

use super::{Does, Route};

pub(super) static ROUTES: &[Route] = &[Route::own(
    HttpMethod::Post,
    "/v1/schedules/preview",
    "preview_schedule",
    "Show the next moments of a timing, and store nothing",
    Does::Preview,
    &[(200, "Preview")],
)
.body("PreviewCall")];

/// The moments that follow the body's time, or `now`.
pub(crate) fn answer(body: &[u8], now: Moment) -> Result<Preview, Refusal> {
    Preview::of(&decode::preview(body)?, now)
}
