//! Queues, limits and pools in replies.

use serde::Deserialize;
use tenure_core::gauge::{Gauge, GaugeReading, GaugeView};
use tenure_core::names::{Group, JobId, LimitName, PoolName, QueueName};
use tenure_core::requests::Put;
use tenure_core::settings::{
    Holder, LimitSettings, LimitView, Pick, PoolSettings, PoolView, QueueCounts, QueueSettings,
    QueueView, Rate, Waiter,
};
use tenure_core::time::{Moment, Span};

use super::jobs::{NeedReply, Noted, RetryReply, moment, needs, span};
use super::lenient::{LuaMap, Maybe};
use super::{Blobs, FromWire, Malformed};
use crate::lease_id::{ANONYMOUS, Held, Named};

/// What a put or a patch is answered.
#[derive(Deserialize)]
pub(crate) struct PutReply<V> {
    view: V,
    #[serde(default)]
    created: bool,
}

impl<V: FromWire> FromWire for Put<V> {
    type Wire = PutReply<V::Wire>;
    fn read(wire: Self::Wire, blobs: &Blobs) -> Result<Self, Malformed> {
        Ok(Put { view: V::read(wire.view, blobs)?, created: wire.created })
    }
}

/// A holder: `[fence, seq, holder, job, since, what the lease holds]`.
#[derive(Deserialize)]
pub(super) struct HolderReply(u64, u64, Maybe<String>, Maybe<JobId>, u64, Held);

pub(super) fn holders(holders: Vec<HolderReply>, blobs: &Blobs) -> Result<Vec<Holder>, Malformed> {
    let all = holders.into_iter().map(|HolderReply(fence, seq, holder, job, since, held)| {
        let holder = holder.0.unwrap_or_else(|| ANONYMOUS.to_owned());
        let id = job.0.as_ref().map(JobId::as_str);
        let lease = Named { fence, seq, holder: &holder, job: id, held: &held };
        let lease = blobs.lease_id(lease)?;
        Ok(Holder { lease, holder, job: job.0, since: Moment::from_us(since) })
    });
    all.collect()
}

/// A rate: `[count, per, burst]`.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct RateReply(u32, u64, u32);

fn rate(rate: Maybe<RateReply>) -> Option<Rate> {
    rate.0.map(|RateReply(count, per, burst)| Rate { count, per: Span::from_us(per), burst })
}

/// The settings of a queue, field by field as a reply has them.
pub(super) fn queue_settings(
    of_needs: Vec<NeedReply>,
    retry: Maybe<RetryReply>,
    timeout: Maybe<u64>,
    retain: Maybe<u64>,
    max_waiting: Maybe<u32>,
    lost_delay: Maybe<u64>,
    shares: LuaMap<u32>,
) -> Result<QueueSettings, Malformed> {
    let share = |(group, n): (String, u32)| Some((Group::parse(&group).ok()?, n));
    Ok(QueueSettings {
        needs: needs(of_needs),
        retry: retry.0.map(RetryReply::read).transpose()?,
        timeout: span(timeout),
        retain: span(retain),
        max_waiting: max_waiting.0,
        lost_delay: span(lost_delay),
        shares: shares.0.into_iter().filter_map(share).collect(),
    })
}

/// The settings of a limit.
pub(super) fn limit_settings(
    concurrency: Maybe<u32>,
    of_rate: Maybe<RateReply>,
    gap: Maybe<u64>,
    quarantine: Maybe<u64>,
) -> LimitSettings {
    LimitSettings {
        concurrency: concurrency.0,
        rate: rate(of_rate),
        gap: span(gap),
        quarantine: span(quarantine).unwrap_or_default(),
    }
}

/// The settings of a pool.
pub(super) fn pool_settings(
    quarantine: Maybe<u64>,
    cooldown: Maybe<u64>,
    of_rate: Maybe<RateReply>,
    max_uses: Maybe<u32>,
    pick: Maybe<String>,
) -> Result<PoolSettings, Malformed> {
    Ok(PoolSettings {
        quarantine: span(quarantine).unwrap_or_default(),
        cooldown: span(cooldown).unwrap_or_default(),
        rate: rate(of_rate),
        max_uses: max_uses.0,
        pick: match pick.0.as_deref() {
            None | Some("lru") => Pick::Lru,
            Some("random") => Pick::Random,
            Some(_) => return Err(Malformed("the pick of a pool")),
        },
    })
}

/// A queue.
#[derive(Deserialize)]
pub(crate) struct QueueReply {
    name: QueueName,
    #[serde(default)]
    paused: bool,
    #[serde(default)]
    paused_until: Maybe<u64>,
    #[serde(default)]
    needs: Vec<NeedReply>,
    #[serde(default)]
    retry: Maybe<RetryReply>,
    #[serde(default)]
    timeout: Maybe<u64>,
    #[serde(default)]
    retain: Maybe<u64>,
    #[serde(default)]
    max_waiting: Maybe<u32>,
    #[serde(default)]
    lost_delay: Maybe<u64>,
    #[serde(default)]
    shares: LuaMap<u32>,
    #[serde(default)]
    counts: CountsReply,
    #[serde(default)]
    oldest_ready_at: Maybe<u64>,
    #[serde(default)]
    workers: u64,
    #[serde(default)]
    skipped: Maybe<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CountsReply {
    ready: u64,
    blocked: u64,
    scheduled: u64,
    dependent: u64,
    running: u64,
}

impl FromWire for QueueView {
    type Wire = QueueReply;
    fn read(wire: QueueReply, _: &Blobs) -> Result<Self, Malformed> {
        let counts = wire.counts;
        Ok(QueueView {
            name: wire.name,
            paused: wire.paused,
            paused_until: moment(wire.paused_until),
            settings: queue_settings(
                wire.needs,
                wire.retry,
                wire.timeout,
                wire.retain,
                wire.max_waiting,
                wire.lost_delay,
                wire.shares,
            )?,
            counts: QueueCounts {
                ready: counts.ready,
                blocked: counts.blocked,
                scheduled: counts.scheduled,
                dependent: counts.dependent,
                running: counts.running,
            },
            oldest_ready_at: moment(wire.oldest_ready_at),
            workers: wire.workers,
            skipped: wire.skipped.0.unwrap_or_default(),
        })
    }
}

/// The JSON of a gauge, as `encode/settings.rs` made it.
pub(crate) fn stored_gauge(said: &str) -> Result<Box<Gauge>, Malformed> {
    serde_json::from_str(said).map_err(|_| Malformed("a gauge"))
}

/// A gauge: `[its JSON, when the last good reading was asked, what it counted, what of that is outside, when reading failed
/// last, why]`.
#[derive(Deserialize)]
struct GaugeReply(String, Maybe<u64>, Maybe<u64>, Maybe<u64>, Maybe<u64>, Maybe<Noted>);

impl GaugeReply {
    fn view(self) -> Result<GaugeView, Malformed> {
        let GaugeReply(said, asked_at, sum, external, failed_at, error) = self;
        let is_known = asked_at.0.is_some() || failed_at.0.is_some();
        let reading = GaugeReading {
            asked_at: moment(asked_at),
            sum: sum.0,
            external: external.0,
            failed_at: moment(failed_at),
            error: error.0.map(Noted::text),
        };
        Ok(GaugeView::new(&*stored_gauge(&said)?, is_known.then_some(reading)))
    }
}

/// A limit.
#[derive(Deserialize)]
pub(crate) struct LimitReply {
    name: LimitName,
    #[serde(default)]
    template: Maybe<LimitName>,
    #[serde(default)]
    concurrency: Maybe<u32>,
    #[serde(default)]
    rate: Maybe<RateReply>,
    #[serde(default)]
    gap: Maybe<u64>,
    #[serde(default)]
    quarantine: Maybe<u64>,
    #[serde(default)]
    in_use: u64,
    #[serde(default)]
    resting: u64,
    #[serde(default)]
    external: u64,
    #[serde(default)]
    gauge: Maybe<GaugeReply>,
    #[serde(default)]
    waiting: u64,
    #[serde(default)]
    over_limit: u64,
    #[serde(default)]
    paused_until: Maybe<u64>,
    #[serde(default)]
    holders: Vec<HolderReply>,
    #[serde(default)]
    line: Vec<(Maybe<JobId>, Maybe<QueueName>, u64)>,
}

impl FromWire for LimitView {
    type Wire = LimitReply;
    fn read(wire: LimitReply, blobs: &Blobs) -> Result<Self, Malformed> {
        let waiter = |(job, queue, since): (Maybe<JobId>, Maybe<QueueName>, u64)| Waiter {
            job: job.0,
            queue: queue.0,
            since: Moment::from_us(since),
        };
        Ok(LimitView {
            name: wire.name,
            template: wire.template.0,
            settings: limit_settings(wire.concurrency, wire.rate, wire.gap, wire.quarantine),
            in_use: wire.in_use,
            resting: wire.resting,
            external: wire.external,
            gauge: wire.gauge.0.map(GaugeReply::view).transpose()?.map(Box::new),
            waiting: wire.waiting,
            over_limit: wire.over_limit,
            paused_until: moment(wire.paused_until),
            holders: holders(wire.holders, blobs)?,
            line: wire.line.into_iter().map(waiter).collect(),
        })
    }
}

/// A pool.
#[derive(Deserialize)]
pub(crate) struct PoolReply {
    name: PoolName,
    #[serde(default)]
    quarantine: Maybe<u64>,
    #[serde(default)]
    cooldown: Maybe<u64>,
    #[serde(default)]
    rate: Maybe<RateReply>,
    #[serde(default)]
    max_uses: Maybe<u32>,
    #[serde(default)]
    pick: Maybe<String>,
    #[serde(default)]
    available: u64,
    #[serde(default)]
    leased: u64,
    #[serde(default)]
    cooling: u64,
    #[serde(default)]
    banned: u64,
    #[serde(default)]
    waiting: u64,
}

impl FromWire for PoolView {
    type Wire = PoolReply;
    fn read(wire: PoolReply, _: &Blobs) -> Result<Self, Malformed> {
        Ok(PoolView {
            name: wire.name,
            settings: pool_settings(
                wire.quarantine,
                wire.cooldown,
                wire.rate,
                wire.max_uses,
                wire.pick,
            )?,
            available: wire.available,
            leased: wire.leased,
            cooling: wire.cooling,
            banned: wire.banned,
            waiting: wire.waiting,
        })
    }
}
