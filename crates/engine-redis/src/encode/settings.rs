//! Arguments of the calls about queues, limits and pools.

use std::collections::BTreeMap;

use serde::Serialize;
use tenure_core::gauge::{Gauge, GaugeSource};
use tenure_core::job::Need;
use tenure_core::names::Group;
use tenure_core::requests::{
    DeleteLimit, DeletePool, DeleteQueue, GetLimit, GetPool, GetQueue, ObserveLimit, Patch,
    PatchLimit, PatchPool, PatchQueue, PauseLimit, PauseQueue, PutLimit, PutPool, PutQueue,
    ResumeLimit, ResumeQueue,
};
use tenure_core::settings::{LimitSettings, Pick, PoolSettings, QueueSettings};
use tenure_core::time::Span;

use super::items::{Later, NeedArg, Patched, RetryArg, needs, rate, span};
use super::{OneCall, Packed, pack};
use crate::alphabet::{gauge, on_stale};

/// A rate as it goes out.
type RateArg = (u32, u64, u32);

/// What is named, and how long something is to last where that is asked.
#[derive(Serialize)]
struct NameArgs<'a> {
    name: &'a str,
    #[serde(flatten)]
    later: Later,
    #[serde(skip_serializing_if = "Option::is_none")]
    external: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<u64>,
}

impl<'a> NameArgs<'a> {
    fn of(name: &'a str) -> Self {
        NameArgs { name, later: Later::default(), external: None, hold: None }
    }
    fn later(name: &'a str, later: Option<tenure_core::lease::Later>) -> Self {
        let later = later.map_or_else(Later::default, Later::of);
        NameArgs { later, ..NameArgs::of(name) }
    }
    fn observed(seen: &'a ObserveLimit) -> Self {
        let hold = seen.hold.map(span);
        NameArgs { external: Some(seen.external), hold, ..NameArgs::of(seen.limit.as_str()) }
    }
}

impl OneCall for GetQueue {
    fn args(&self) -> Packed {
        pack(&NameArgs::of(self.queue.as_str()))
    }
}

impl OneCall for DeleteQueue {
    fn args(&self) -> Packed {
        pack(&NameArgs::of(self.queue.as_str()))
    }
}

impl OneCall for ResumeQueue {
    fn args(&self) -> Packed {
        pack(&NameArgs::of(self.queue.as_str()))
    }
}

impl OneCall for PauseQueue {
    fn args(&self) -> Packed {
        pack(&NameArgs::later(self.queue.as_str(), self.until))
    }
}

impl OneCall for GetLimit {
    fn args(&self) -> Packed {
        pack(&NameArgs::of(self.limit.as_str()))
    }
}

impl OneCall for DeleteLimit {
    fn args(&self) -> Packed {
        pack(&NameArgs::of(self.limit.as_str()))
    }
}

impl OneCall for ResumeLimit {
    fn args(&self) -> Packed {
        pack(&NameArgs::of(self.limit.as_str()))
    }
}

impl OneCall for PauseLimit {
    fn args(&self) -> Packed {
        pack(&NameArgs::later(self.limit.as_str(), Some(self.until)))
    }
}

impl OneCall for ObserveLimit {
    fn args(&self) -> Packed {
        pack(&NameArgs::observed(self))
    }
}

impl OneCall for GetPool {
    fn args(&self) -> Packed {
        pack(&NameArgs::of(self.pool.as_str()))
    }
}

impl OneCall for DeletePool {
    fn args(&self) -> Packed {
        pack(&NameArgs::of(self.pool.as_str()))
    }
}

/// A page of what is listed by name.
#[derive(Serialize)]
pub(crate) struct PageArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<&'a str>,
    pub max: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<&'a str>,
}

type Shares<'a> = &'a BTreeMap<Group, u32>;

/// Of `put_queue`.
#[derive(Serialize)]
struct QueueArgs<'a> {
    name: &'a str,
    needs: Vec<NeedArg<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<RetryArg<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retain: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_waiting: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_delay: Option<u64>,
    shares: Shares<'a>,
}

impl<'a> QueueArgs<'a> {
    fn of(name: &'a str, settings: &'a QueueSettings) -> Self {
        QueueArgs {
            name,
            needs: needs(&settings.needs),
            retry: settings.retry.as_ref().map(RetryArg),
            timeout: settings.timeout.map(span),
            retain: settings.retain.map(span),
            max_waiting: settings.max_waiting,
            lost_delay: settings.lost_delay.map(span),
            shares: &settings.shares,
        }
    }
}

impl OneCall for PutQueue {
    fn args(&self) -> Packed {
        pack(&QueueArgs::of(self.queue.as_str(), &self.settings))
    }
}

/// Of `patch_queue`.
#[derive(Serialize)]
struct PatchQueueArgs<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    needs: Patched<Vec<NeedArg<'a>>>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    retry: Patched<RetryArg<'a>>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    timeout: Patched<u64>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    retain: Patched<u64>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    max_waiting: Patched<u32>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    lost_delay: Patched<u64>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    shares: Patched<Shares<'a>>,
}

impl<'a> PatchQueueArgs<'a> {
    fn of(patch: &'a PatchQueue) -> Self {
        PatchQueueArgs {
            name: patch.queue.as_str(),
            needs: Patched::of(&patch.needs, |all: &'a Vec<Need>| needs(all)),
            retry: Patched::of(&patch.retry, RetryArg),
            timeout: Patched::of(&patch.timeout, |timeout| span(*timeout)),
            retain: Patched::of(&patch.retain, |retain| span(*retain)),
            max_waiting: Patched::of(&patch.max_waiting, |most| *most),
            lost_delay: Patched::of(&patch.lost_delay, |delay| span(*delay)),
            shares: Patched::of(&patch.shares, |shares| shares),
        }
    }
}

impl OneCall for PatchQueue {
    fn args(&self) -> Packed {
        pack(&PatchQueueArgs::of(self))
    }
}

/// Of `put_limit`.
#[derive(Serialize)]
pub(super) struct LimitArgs<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<RateArg>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantine: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gauge: Option<GaugeArg>,
}

/// A gauge: all of it as JSON, which the library keeps and never reads, and what its rules compute with.
#[derive(Serialize)]
struct GaugeArg {
    said: String,
    source: &'static str,
    every: u64,
    lag: u64,
    stale: u64,
    on_stale: &'static str,
    fresh: u64,
}

impl GaugeArg {
    fn of(of: &Gauge) -> Self {
        GaugeArg {
            // Its types are texts and numbers, which have a JSON.
            said: serde_json::to_string(of).unwrap_or_default(),
            source: match of.source {
                GaugeSource::Count { .. } => gauge::count,
                GaugeSource::Scrapyd { .. } => gauge::scrapyd,
            },
            every: span(of.every),
            lag: span(of.lag),
            stale: span(of.stale),
            on_stale: on_stale::letter(of.on_stale),
            fresh: span(of.fresh()),
        }
    }
}

impl<'a> LimitArgs<'a> {
    pub(super) fn of(name: &'a str, settings: &LimitSettings, gauge: Option<&Gauge>) -> Self {
        LimitArgs {
            name,
            concurrency: settings.concurrency,
            rate: settings.rate.map(rate),
            gap: settings.gap.map(span),
            quarantine: Some(settings.quarantine).filter(|q| *q > Span::ZERO).map(span),
            gauge: gauge.map(GaugeArg::of),
        }
    }
}

impl OneCall for PutLimit {
    fn args(&self) -> Packed {
        pack(&LimitArgs::of(self.limit.as_str(), &self.settings, self.gauge.as_deref()))
    }

    fn begins_by_itself(&self) -> bool {
        self.gauge.is_some()
    }
}

/// Of `patch_limit`.
#[derive(Serialize)]
struct PatchLimitArgs<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    concurrency: Patched<u32>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    rate: Patched<RateArg>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    gap: Patched<u64>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    quarantine: Patched<u64>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    gauge: Patched<GaugeArg>,
}

impl<'a> PatchLimitArgs<'a> {
    fn of(patch: &'a PatchLimit) -> Self {
        PatchLimitArgs {
            name: patch.limit.as_str(),
            concurrency: Patched::of(&patch.concurrency, |most| *most),
            rate: Patched::of(&patch.rate, |of| rate(*of)),
            gap: Patched::of(&patch.gap, |gap| span(*gap)),
            quarantine: Patched::of(&patch.quarantine, |rest| span(*rest)),
            gauge: Patched::of(&patch.gauge, |of| GaugeArg::of(of)),
        }
    }
}

impl OneCall for PatchLimit {
    fn args(&self) -> Packed {
        pack(&PatchLimitArgs::of(self))
    }

    fn begins_by_itself(&self) -> bool {
        matches!(self.gauge, Patch::Set(_))
    }
}

fn pick(pick: Pick) -> &'static str {
    match pick {
        Pick::Lru => "lru",
        Pick::Random => "random",
    }
}

/// Of `put_pool`.
#[derive(Serialize)]
pub(super) struct PoolArgs<'a> {
    name: &'a str,
    quarantine: u64,
    cooldown: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<RateArg>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_uses: Option<u32>,
    pick: &'static str,
}

impl<'a> PoolArgs<'a> {
    pub(super) fn of(name: &'a str, settings: &PoolSettings) -> Self {
        PoolArgs {
            name,
            quarantine: span(settings.quarantine),
            cooldown: span(settings.cooldown),
            rate: settings.rate.map(rate),
            max_uses: settings.max_uses,
            pick: pick(settings.pick),
        }
    }
}

impl OneCall for PutPool {
    fn args(&self) -> Packed {
        pack(&PoolArgs::of(self.pool.as_str(), &self.settings))
    }
}

/// Of `patch_pool`.
#[derive(Serialize)]
struct PatchPoolArgs<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    quarantine: Patched<u64>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    cooldown: Patched<u64>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    rate: Patched<RateArg>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    max_uses: Patched<u32>,
    #[serde(skip_serializing_if = "Patched::is_kept")]
    pick: Patched<&'static str>,
}

impl<'a> PatchPoolArgs<'a> {
    fn of(patch: &'a PatchPool) -> Self {
        PatchPoolArgs {
            name: patch.pool.as_str(),
            quarantine: Patched::of(&patch.quarantine, |of| span(*of)),
            cooldown: Patched::of(&patch.cooldown, |of| span(*of)),
            rate: Patched::of(&patch.rate, |of| rate(*of)),
            max_uses: Patched::of(&patch.max_uses, |most| *most),
            pick: Patched::of(&patch.pick, |of| pick(*of)),
        }
    }
}

impl OneCall for PatchPool {
    fn args(&self) -> Packed {
        pack(&PatchPoolArgs::of(self))
    }
}
