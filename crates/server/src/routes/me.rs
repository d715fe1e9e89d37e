//! `/v1/me`: the caller and its grants, for anybody who shows a token.

use serde::Serialize;
use tenure_core::access::{Grants, Scope};
use tenure_core::requests::HttpMethod;
use tenure_core::time::Moment;

use super::{Does, Route, Takes};
use crate::budget::Rank;

pub(super) static ROUTES: &[Route] = &[Route {
    method: HttpMethod::Get,
    path: "/v1/me",
    name: "me",
    summary: "Say which token was shown, and what it permits",
    query: None,
    takes: Takes::Nothing,
    answers: &[(200, "Me")],
    does: Does::Me,
    rank: Rank::Ordinary,
}];

/// The answer to `GET /v1/me`.
#[derive(Debug, Serialize)]
pub(crate) struct Me {
    name: String,
    scopes: Vec<&'static str>,
    namespaces: Vec<String>,
    /// Null: all queues.
    queues: Option<Vec<String>>,
    /// Null: all limits and pools.
    needs: Option<Vec<String>>,
    /// Null: never.
    expires: Option<Moment>,
    /// Null: any number.
    calls: Option<String>,
    /// Null: any number.
    in_flight: Option<u32>,
}

impl Me {
    pub(crate) fn of(grants: &Grants) -> Self {
        Me {
            name: grants.name().to_owned(),
            scopes: grants.scopes().iter().map(Scope::as_str).collect(),
            namespaces: grants.namespaces().collect(),
            queues: grants.queues().map(Iterator::collect),
            needs: grants.needs().map(Iterator::collect),
            expires: grants.expires(),
            calls: grants.calls().map(|rate| rate.to_string()),
            in_flight: grants.in_flight(),
        }
    }
}
