//! The clock of a server that was started for tests. These routes are not part of the contract: other servers answer
//! them like any path that leads nowhere, and the OpenAPI document does not list them.

use serde::Serialize;
use tenure_core::requests::HttpMethod;
use tenure_core::time::Moment;

use super::{Does, Route, Takes};
use crate::budget::Rank;

const PATH: &str = "/v1/test/clock";

/// The schema of the answers, which no document contains.
const SCHEMA: &str = "TestClock";

pub(super) static ROUTES: &[Route] = &[
    Route {
        method: HttpMethod::Get,
        path: PATH,
        name: "show_test_clock",
        summary: "Show the moment at which the server stands",
        query: None,
        takes: Takes::Nothing,
        answers: &[(200, SCHEMA)],
        does: Does::ShowTime,
        rank: Rank::Ordinary,
    },
    Route {
        method: HttpMethod::Post,
        path: PATH,
        name: "advance_test_clock",
        summary: "Let time pass, and do what becomes due",
        query: None,
        takes: Takes::Json("AdvanceTestClock"),
        answers: &[(200, SCHEMA)],
        does: Does::AdvanceTime,
        rank: Rank::Ordinary,
    },
];

#[derive(Debug, Serialize)]
pub(crate) struct StandingAt {
    pub now: Moment,
}
