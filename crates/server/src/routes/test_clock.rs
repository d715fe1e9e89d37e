//! The clock of a server that was started for tests. These routes are not part of the contract: other servers answer
//! them like any path that leads nowhere, and the OpenAPI document does not list them.

use serde::Serialize;
use tenure_core::requests::HttpMethod;
use tenure_core::time::Moment;

use super::{Does, Route};

const PATH: &str = "/v1/test/clock";

/// The schema of the answers, which no document contains.
const SCHEMA: &str = "TestClock";

pub(super) static ROUTES: &[Route] = &[
    Route::own(
        HttpMethod::Get,
        PATH,
        "show_test_clock",
        "Show the moment at which the server stands",
        Does::ShowTime,
        &[(200, SCHEMA)],
    ),
    Route::own(
        HttpMethod::Post,
        PATH,
        "advance_test_clock",
        "Let time pass, and do what becomes due",
        Does::AdvanceTime,
        &[(200, SCHEMA)],
    )
    .body("AdvanceTestClock"),
];

#[derive(Debug, Serialize)]
pub(crate) struct StandingAt {
    pub now: Moment,
}
