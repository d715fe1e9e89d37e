//! Calls about limits over HTTP.

use serde::Serialize;
use tenure_core::gauge::Gauge;
use tenure_core::requests::{
    DeleteLimit, GetLimit, ListLimits, ObserveLimit, PatchLimit, PauseLimit, PutLimit, ResumeLimit,
};
use tenure_core::settings::{LimitSettings, Rate};
use tenure_core::time::Span;

use super::ask::{Body, OverHttp, Query, Unsendable, json};
use super::body::{Wait, patch_body};

impl OverHttp for GetLimit {}
impl OverHttp for DeleteLimit {}
impl OverHttp for ResumeLimit {}

impl OverHttp for ListLimits {
    fn query(&self, query: &mut Query) {
        query.page(&self.page);
    }
}

impl OverHttp for PutLimit {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&WholeLimit { settings: &self.settings, gauge: self.gauge.as_deref() })
    }
}

impl OverHttp for PatchLimit {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&LimitChange::from(self))
    }
}

impl OverHttp for PauseLimit {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&Wait::from(self.until))
    }
}

impl OverHttp for ObserveLimit {
    fn body(&self) -> Result<Option<Body>, Unsendable> {
        json(&Observed { external: self.external, hold: self.hold })
    }
}

patch_body! {
    /// Changes of a limit.
    LimitChange of PatchLimit { concurrency: u32, rate: Rate, gap: Span, quarantine: Span, gauge: Box<Gauge> }
}

/// All settings of a limit. The address of its gauge is sent whole: the server must reach it.
#[derive(Serialize)]
struct WholeLimit<'a> {
    #[serde(flatten)]
    settings: &'a LimitSettings,
    /// The source that counts work outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    gauge: Option<&'a Gauge>,
}

#[derive(Serialize)]
struct Observed {
    /// Permits taken by work outside.
    external: u32,
    /// How long the number holds.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    hold: Option<Span>,
}
