//! Settings of limits, their pauses, and observations of work outside.

use super::forms::{Boxed, Duration, Whole};
use super::gauges::GaugeFields;
use super::needs::one_limit;
use super::object::{Call, SentBody, bounded_bodies, object};
use super::paths::{limit_path, made_path};
use super::rates::RateFields;
use super::times::no_body;
use crate::at::At;
use crate::bounded::{AMOUNT, Bounded, Spans, no_template};
use crate::gauge::Gauge;
use crate::names::LimitName;
use crate::refusal::Refusal;
use crate::requests::{
    Change, DeleteLimit, GetLimit, ObserveLimit, PatchLimit, PauseLimit, PutLimit, ResumeLimit,
};
use crate::settings::Rate;
use crate::time::Span;

object! {
    LimitFields "a limit" "LimitSettings"
    answered &[
        "name", "template", "in_use", "resting", "external", "waiting", "over_limit", "paused_until", "holders",
        "line",
    ];
    patch PatchLimit(limit: LimitName);
    fields {
        concurrency: u32 = Whole(AMOUNT), nullable,
            "How many permits there are, 0 to 1,000,000,000; 0 closes the limit for now, null bounds nothing.";
        rate: Rate = RateFields, nullable, "How many tokens there are in a period; null bounds nothing.";
        gap: Span = Duration(Spans::ANY), nullable,
            "How long each permit rests after its release; needs a concurrency. null is no rest.";
        quarantine: Span = Duration(Spans::ANY), optional,
            "How long a permit rests after a lease that its holder did not settle; needs a concurrency, 0s by default. The longer of it and gap counts.";
        gauge: Box<Gauge> = Boxed(GaugeFields), nullable,
            "Where the server counts permits that are used by work that Tenure does not run; null is no gauge.";
    }
}

object! {
    ObservationFields "an observation" "Observation"
    call ObserveLimit(limit: LimitName);
    fields {
        external: u32 = Whole(AMOUNT), required "\"external\": 3",
            "How many permits work outside uses now, 0 to 1,000,000,000.";
        hold as "for": Span = Duration(Spans::ANY), optional,
            "How long the number holds; absent, until the next observation.";
    }
}

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
    PatchLimit::of_body((made_path(name, LimitName::parse)?,), body)
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
    PauseLimit::of_body((held(name)?,), body)
}

/// Reads the path of `POST /v1/limits/{name}/resume`.
pub fn resume_limit(name: &str, body: &[u8]) -> Result<ResumeLimit, Refusal> {
    no_body(body)?;
    Ok(ResumeLimit { limit: held(name)? })
}

/// The body of `POST /v1/limits/{name}/observe`: `{"external", "for"?}`.
pub fn observe_limit(name: &str, body: &[u8]) -> Result<ObserveLimit, Refusal> {
    ObserveLimit::of_body((held(name)?,), body)
}

impl Bounded for PutLimit {
    fn within_bounds(&self) -> Result<(), Refusal> {
        PatchLimit::from(self).check_body(&At::Body)?;
        self.check()
    }
}

impl Bounded for PauseLimit {
    fn within_bounds(&self) -> Result<(), Refusal> {
        no_template(&self.limit).map_err(|no| no.at("/path/name"))?;
        self.check_body(&At::Body)
    }
}

impl Bounded for ObserveLimit {
    fn within_bounds(&self) -> Result<(), Refusal> {
        no_template(&self.limit).map_err(|no| no.at("/path/name"))?;
        self.check_body(&At::Body)
    }
}

bounded_bodies! { PatchLimit }
