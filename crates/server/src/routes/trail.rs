//! `/v1/trail`: lines of the trail of the server that is asked, for tokens with `admin`.

use tenure_core::decode::Queried;
use tenure_core::requests::HttpMethod;
use tenure_core::trail::ReadTrail;

use super::{Does, Route};

pub(super) static ROUTES: &[Route] = &[Route {
    query: Some(ReadTrail::parameters),
    ..Route::own(
        HttpMethod::Get,
        "/v1/trail",
        "read_trail",
        "List changes, refusals and logins of this server with their callers, newest first",
        Does::Trail,
        &[(200, "Trail")],
    )
}];
