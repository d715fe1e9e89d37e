//! `/v1/trail`: lines of the trail of the server that is asked, for tokens with `admin`.

use tenure_core::decode::Queried;
use tenure_core::requests::HttpMethod;
use tenure_core::trail::ReadTrail;

use super::{Does, Route, Takes};
use crate::budget::Rank;

pub(super) static ROUTES: &[Route] = &[Route {
    method: HttpMethod::Get,
    path: "/v1/trail",
    name: "read_trail",
    summary: "List changes, refusals and logins of this server with their callers, newest first",
    query: Some(ReadTrail::parameters),
    takes: Takes::Nothing,
    answers: &[(200, "Trail")],
    does: Does::Trail,
    rank: Rank::Ordinary,
}];
