//! A row for every operation: the request, the answer, and its reading.

mod events;
mod flows;
mod jobs;
mod leases;
mod limits;
mod pools;
mod queues;
mod schedules;
pub mod words;

use tenure::core::requests::{Reply, Request};

/// A case: the request, `METHOD path`, the body (empty: none), status and body of the answer, and
/// whether the reply is right.
pub type Row = (Request, String, String, u16, String, fn(&Reply) -> bool);

macro_rules! row {
    ($request:expr, $line:expr, $body:expr, $status:expr, $answer:expr, $right:pat $(if $guard:expr)?) => {
        (
            Request::from($request),
            String::from($line),
            String::from($body),
            $status,
            String::from($answer),
            |reply| matches!(reply, $right $(if $guard)?),
        )
    };
}
use row;

pub fn rows() -> Vec<Row> {
    let rows = [
        jobs::rows(),
        flows::rows(),
        events::rows(),
        leases::rows(),
        queues::rows(),
        limits::rows(),
        pools::rows(),
        schedules::rows(),
    ];
    rows.into_iter().flatten().collect()
}
