//! Settings of limits, their pauses, and observations of work outside.

use super::forms::{Boxed, Duration, Whole};
use super::gauges::GaugeFields;
use super::needs::one_limit;
use super::object::{SentBody, bounded_bodies, object};
use super::paths::{limit_path, made};
use super::rates::RateFields;
use super::raw_call::{EncodedBody, http_calls};
use crate::at::At;
use crate::bounded::{AMOUNT, Bounded, Spans, no_template};
use crate::gauge::Gauge;
use crate::names::LimitName;
use crate::refusal::Refusal;
use crate::requests::{
    Change, DeleteLimit, GetLimit, ListLimits, ObserveLimit, PatchLimit, PauseLimit, PutLimit,
    ResumeLimit,
};
use crate::settings::{LimitView, Rate};
use crate::time::Span;

object! {
    LimitFields "a limit" "LimitSettings"
    answered LimitView;
    patch PatchLimit(limit: LimitName) as "LimitPatch";
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

http_calls! {
    ListLimits() query;
    // A limit that is shown or deleted may be a template.
    GetLimit(limit: limit_path);
    PutLimit() body "LimitSettings",
        |call| {
            let put = PatchLimit::decode(call)?.whole();
            put.check().map(|()| put)
        },
        |put| EncodedBody::object(&PatchLimit::from(put));
    // A `rate` replaces the whole rate. The state machine checks if the remaining settings bound anything.
    PatchLimit(limit: made(LimitName::parse)) body;
    DeleteLimit(limit: limit_path);
    PauseLimit(limit: held) body;
    ResumeLimit(limit: held);
    ObserveLimit(limit: held) body;
}

/// A limit that can be held, and so paused and observed.
fn held(name: &str) -> Result<LimitName, Refusal> {
    one_limit(name).map_err(|no| no.at("/path/name"))
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
