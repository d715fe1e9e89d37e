//! Requests about limits: settings, pauses, use by work outside. They never take permits; a lease
//! does.

use super::{Change, Page, Patch};
use crate::bounded::unbounded;
use crate::gauge::Gauge;
use crate::lease::Later;
use crate::names::LimitName;
use crate::refusal::{Code, Refusal};
use crate::sentences::LimitRefusal;
use crate::settings::{LimitSettings, LimitView, Rate};
use crate::time::Span;

/// Lists limits that are set or in use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListLimits {
    pub page: Page,
}

/// Shows one limit, with its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetLimit {
    pub limit: LimitName,
}

/// Replaces all settings of a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutLimit {
    pub limit: LimitName,
    pub settings: LimitSettings,
    /// The gauge that counts work outside; `None`: no gauge.
    pub gauge: Option<Box<Gauge>>,
}

impl PutLimit {
    /// Refuses settings that do not fit together: a gauge counts permits, and those of one limit.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.gauge.is_some() && self.limit.is_template() {
            return Err(Refusal::from(LimitRefusal::GaugeOfTemplate).at("/gauge"));
        }
        if self.gauge.is_some() && self.settings.concurrency.is_none() {
            return Err(Refusal::from(LimitRefusal::GaugeAlone).at("/gauge"));
        }
        self.settings.check()
    }
}

/// Changes the named settings of a limit that has settings of its own. `lock:*` has them from the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatchLimit {
    pub limit: LimitName,
    /// Permits in all; `Reset` means no bound.
    pub concurrency: Patch<u32>,
    /// Tokens per period; `Reset` means no bound.
    pub rate: Patch<Rate>,
    /// Rest of each permit after its release; `Reset` means none.
    pub gap: Patch<Span>,
    /// Rest of each permit after a lease that its holder did not settle; `Reset` means none.
    pub quarantine: Patch<Span>,
    /// The gauge that counts work outside; replaced whole.
    pub gauge: Patch<Box<Gauge>>,
}

impl Change for PatchLimit {
    type Whole = PutLimit;
    type Shows = GetLimit;
    const ABSENT: Code = Code::LimitNotFound;
    fn shows(&self) -> GetLimit {
        GetLimit { limit: self.limit.clone() }
    }
    fn has_own(view: &LimitView) -> bool {
        view.has_own_settings()
    }
    fn whole(self) -> PutLimit {
        let settings = LimitSettings {
            concurrency: self.concurrency.given(),
            rate: self.rate.given(),
            gap: self.gap.given(),
            quarantine: self.quarantine.given().unwrap_or_default(),
        };
        PutLimit { limit: self.limit, settings, gauge: self.gauge.given() }
    }
}

/// A patch that names every setting.
impl From<&PutLimit> for PatchLimit {
    fn from(put: &PutLimit) -> Self {
        let set = &put.settings;
        PatchLimit {
            limit: put.limit.clone(),
            concurrency: set.concurrency.into(),
            rate: set.rate.into(),
            gap: set.gap.into(),
            quarantine: Patch::Set(set.quarantine),
            // A server before gauges does not know the field.
            gauge: put.gauge.clone().map_or(Patch::Keep, Patch::Set),
        }
    }
}

/// Forgets the settings of a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteLimit {
    pub limit: LimitName,
}

/// Lets a limit grant nothing for a while; of two pauses the later end holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseLimit {
    /// A limit, never a template.
    pub limit: LimitName,
    /// Until when. No pause is endless: to close a limit until further notice, set its concurrency
    /// to 0.
    pub until: Later,
}

/// Ends the pause of a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResumeLimit {
    pub limit: LimitName,
}

/// Reports how many permits are taken by work that Tenure does not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObserveLimit {
    pub limit: LimitName,
    /// Permits that work outside uses now.
    pub external: u32,
    /// How long the number holds; `None`: until the next observation.
    pub hold: Option<Span>,
}

unbounded! { GetLimit DeleteLimit ResumeLimit }
