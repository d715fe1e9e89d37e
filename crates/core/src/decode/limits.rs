//! Settings of limits, their pauses, and observations of work outside.

use super::fields::{ObjectShape, Value, document};
use super::gauges::gauge_of;
use super::needs::one_limit;
use super::paths::{limit_path, made_path};
use super::rates::rate;
use super::times::{body_later, no_body};
use crate::bounded::{AMOUNT, Spans};
use crate::names::LimitName;
use crate::refusal::Refusal;
use crate::requests::{
    Change, DeleteLimit, GetLimit, ObserveLimit, PatchLimit, PauseLimit, PutLimit, ResumeLimit,
};

static LIMIT: ObjectShape<5> = ObjectShape {
    what: "a limit",
    fields: ["concurrency", "rate", "gap", "quarantine", "gauge"],
    answered: &[
        "name",
        "template",
        "in_use",
        "resting",
        "external",
        "waiting",
        "over_limit",
        "paused_until",
        "holders",
        "line",
    ],
};
static OBSERVE: ObjectShape<2> =
    ObjectShape { what: "an observation", fields: ["external", "for"], answered: &[] };

/// Reads the body of `PUT /v1/limits/{name}`: all settings, at least one; a `gap`, a `quarantine`
/// and a `gauge` need a `concurrency`.
pub fn put_limit(name: &str, body: &[u8]) -> Result<PutLimit, Refusal> {
    let put = patch_limit(name, body)?.whole();
    put.check()?;
    Ok(put)
}

/// Reads the body of `PATCH /v1/limits/{name}`: the named settings; a `rate` replaces the whole
/// rate. The state machine checks if the remaining settings bound anything.
pub fn patch_limit(name: &str, body: &[u8]) -> Result<PatchLimit, Refusal> {
    let limit = made_path(name, LimitName::parse)?;
    let document = document(body)?;
    let fields = Value::body(&document).fields(&LIMIT)?;
    Ok(PatchLimit {
        limit,
        concurrency: fields.patch("concurrency", |v| v.integer(AMOUNT))?,
        rate: fields.patch("rate", rate)?,
        gap: fields.patch("gap", |v| v.span(Spans::ANY))?,
        quarantine: fields.patch("quarantine", |v| v.span(Spans::ANY))?,
        gauge: fields.patch("gauge", |v| gauge_of(v).map(Box::new))?,
    })
}

/// Reads the path of `GET /v1/limits/{name}`, which may name a template.
pub fn get_limit(name: &str) -> Result<GetLimit, Refusal> {
    Ok(GetLimit { limit: limit_path(name)? })
}

/// Reads the path of `DELETE /v1/limits/{name}`, which may name a template.
pub fn delete_limit(name: &str) -> Result<DeleteLimit, Refusal> {
    Ok(DeleteLimit { limit: limit_path(name)? })
}

/// A limit that can be held, and so paused and observed.
fn held(name: &str) -> Result<LimitName, Refusal> {
    one_limit(name).map_err(|no| no.at("/path/name"))
}

/// The body of `POST /v1/limits/{name}/pause`: `{"for"|"until"}`.
pub fn pause_limit(name: &str, body: &[u8]) -> Result<PauseLimit, Refusal> {
    Ok(PauseLimit { limit: held(name)?, until: body_later(body)? })
}

/// Reads the path of `POST /v1/limits/{name}/resume`.
pub fn resume_limit(name: &str, body: &[u8]) -> Result<ResumeLimit, Refusal> {
    no_body(body)?;
    Ok(ResumeLimit { limit: held(name)? })
}

/// The body of `POST /v1/limits/{name}/observe`: `{"external", "for"?}`.
pub fn observe_limit(name: &str, body: &[u8]) -> Result<ObserveLimit, Refusal> {
    let limit = held(name)?;
    let document = document(body)?;
    let fields = Value::body(&document).fields(&OBSERVE)?;
    let external = fields.required("external", "\"external\": 3")?.integer(AMOUNT)?;
    Ok(ObserveLimit { limit, external, hold: fields.take("for", |v| v.span(Spans::ANY))? })
}
