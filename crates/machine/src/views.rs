//! Views of settings and of the things that they govern. It only reads.

use crate::queue::line::InLine;
use crate::rows::stored::lease_id;
use crate::state::{DoorKey, LiveResourceId, PoolId, QueueId, Space, is_recent};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use tenure_core::bounds::HOLDERS_SHOWN;
use tenure_core::gauge::GaugeView;
use tenure_core::job::JobState;
use tenure_core::lease::{Fence, HeldResource, LeaseSummary};
use tenure_core::names::LimitName;
use tenure_core::requests::{ListLeases, Listed, Page, Stats, WorkerView};
use tenure_core::secret::Json;
use tenure_core::settings::{
    Holder, LimitView, PoolView, QueueCounts, QueueView, ResourceState, ResourceView, Waiter,
};
use tenure_core::time::Moment;

/// The items behind the page's cursor, in order of names. Without it, paging through a long list would cost its square.
pub(crate) fn behind<'a, K: Borrow<str> + Ord, V>(
    all: &'a BTreeMap<K, V>,
    page: &Page,
) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
    let from = page.cursor.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    all.range::<str, _>((from, Bound::Unbounded))
}

/// A page of a list by name, from the items behind its cursor.
pub(crate) fn page<K: ToString, T>(behind: impl Iterator<Item = (K, T)>, page: &Page) -> Listed<T> {
    let mut items = Vec::new();
    let mut last = None;
    let mut next = None;
    for (name, item) in behind {
        if items.len() == page.max {
            next = last.map(|name: K| name.to_string());
            break;
        }
        items.push(item);
        last = Some(name);
    }
    Listed { items, next, partial: false }
}

impl Space {
    pub(crate) fn holder(&self, fence: Fence) -> Option<Holder> {
        let lease = self.leases.get(fence)?;
        Some(Holder {
            lease: lease_id(fence, lease.seq),
            holder: self.holder_of(lease),
            job: lease.job.map(|slot| self.jobs[slot].id.clone()),
            since: lease.granted_at,
        })
    }

    pub(crate) fn holders<'a>(&self, fences: impl Iterator<Item = &'a Fence>) -> Vec<Holder> {
        fences.take(HOLDERS_SHOWN).filter_map(|fence| self.holder(*fence)).collect()
    }

    // ---- Queues ----

    pub(crate) fn queue_view(&self, queue: QueueId, now: Moment) -> Option<QueueView> {
        let recent = |at: &Moment| is_recent(*at, now);
        let workers =
            self.workers.known().values().filter(|w| w.queues.get(&queue).is_some_and(recent));
        self.view_of_queue(queue, workers.count() as u64, now)
    }

    fn view_of_queue(&self, queue: QueueId, workers: u64, now: Moment) -> Option<QueueView> {
        let q = self.lines.queue(queue)?;
        let paused_until = q.paused_until.filter(|until| *until > now);
        let c = &q.counts;
        let whole = q.place != crate::state::Place::Open;
        let blocked = if whole { c.waiting } else { c.blocked };
        Some(QueueView {
            name: q.name.clone()?,
            paused: paused_until.is_some(),
            paused_until: paused_until.filter(|until| *until < Moment::MAX),
            settings: q.settings.clone(),
            counts: QueueCounts {
                ready: c.waiting - blocked,
                blocked,
                scheduled: c.scheduled,
                dependent: c.dependent,
                running: c.running,
            },
            oldest_ready_at: self.oldest_ready(queue),
            skipped: q.skipped,
            workers,
        })
    }

    /// The time since which the oldest ready job is ready: the least over the heads of open lanes; looks at a thousand
    /// at most.
    fn oldest_ready(&self, queue: QueueId) -> Option<Moment> {
        let q = &self.lines[queue];
        if q.place != crate::state::Place::Open {
            return None;
        }
        let mut looked = 0;
        let mut oldest: Option<Moment> = None;
        for turns in q.priorities.values() {
            for (_, _, group) in &turns.open {
                for (_, bundle) in &self.lines[*group].open {
                    for (_, lane) in &self.lines[*bundle].open {
                        looked += 1;
                        if let Some((_, slot)) = self.lines.head(*lane) {
                            let at = self.jobs[slot.job()].run_at;
                            oldest = Some(oldest.map_or(at, |old| old.min(at)));
                        }
                        if looked >= tenure_core::bounds::ITEMS_MAX {
                            return oldest;
                        }
                    }
                }
            }
        }
        oldest
    }

    pub(crate) fn list_queues(&self, p: &Page, now: Moment) -> Listed<QueueView> {
        let there =
            behind(self.lines.queue_by_name(), p).filter(|(_, slot)| !self.lines[**slot].hidden);
        // Once for all queues: asking each worker for each queue would cost the product of both.
        let mut workers: HashMap<QueueId, u64> = HashMap::new();
        for queue in self.workers.known().values().flat_map(|w| w.asked_lately(now)) {
            *workers.entry(queue).or_default() += 1;
        }
        let view =
            |slot| self.view_of_queue(slot, workers.get(&slot).copied().unwrap_or_default(), now);
        page(there.filter_map(|(name, slot)| Some((name, view(*slot)?))), p)
    }

    // ---- Limits ----

    pub(crate) fn limit_view(&self, name: &LimitName, line: bool, now: Moment) -> LimitView {
        let own = self.limits.settings().get(name);
        let (settings, template) = match (own, name.is_template()) {
            (Some(own), _) => (*own, None),
            (None, true) if name.family() == "lock" => (crate::state::LOCK, None),
            (None, _) => self.limits.setting_of(name).unwrap_or_default(),
        };
        let state = self.limits.by_name().get(name).map(|slot| (*slot, &self.limits[*slot]));
        let in_use = state.map_or(0, |(_, l)| l.in_use + l.resting_sum);
        let external = state.map_or(0, |(_, l)| u64::from(l.external));
        let cap = settings.concurrency.map(u64::from);
        let queue = (name.family() == "queue").then_some(name.key()).flatten();
        let queue = queue
            .and_then(|queue| self.lines.queue_by_name().get(queue))
            .map(|slot| &self.lines[*slot]);
        let whole = queue.filter(|q| q.place != crate::state::Place::Open);
        let whole = whole.map_or(0, |q| q.counts.waiting - q.counts.blocked);
        let door = state.and_then(|(_, l)| l.door);
        LimitView {
            name: name.clone(),
            template,
            settings,
            in_use,
            resting: state.map_or(0, |(_, l)| l.resting_sum),
            external,
            gauge: state
                .and_then(|(_, l)| l.gauge.as_ref())
                .map(|gauge| Box::new(GaugeView::new(&gauge.gauge, gauge.shown()))),
            waiting: door.map_or(0, |door| self.lines[door].waiting) + whole,
            over_limit: cap.map_or(0, |cap| (in_use + external).saturating_sub(cap)),
            paused_until: state
                .and_then(|(_, l)| l.paused_until)
                .filter(|until| *until > now && *until < Moment::MAX),
            holders: state.map_or_else(Vec::new, |(_, l)| self.holders(l.holders.iter())),
            line: match door {
                Some(door) if line => {
                    let line = self.lines.line_at(door).into_iter();
                    line.map(|(queue, slot)| self.waiter(queue, slot)).collect()
                }
                _ => Vec::new(),
            },
        }
    }

    fn waiter(&self, queue: QueueId, waiter: InLine) -> Waiter {
        if queue == crate::state::CALLERS {
            Waiter {
                job: None,
                queue: None,
                since: self.waiters.lock_waiter(waiter.caller()).since,
            }
        } else {
            let job = &self.jobs[waiter.job()];
            let queue = self.lines[queue].name.clone();
            Waiter { job: Some(job.id.clone()), queue, since: job.run_at }
        }
    }

    /// A page of limits that have a setting or are in use.
    pub(crate) fn list_limits(&self, p: &Page, now: Moment) -> Listed<LimitView> {
        let lock = LimitName::parse("lock:*").ok();
        let lock =
            lock.as_ref().filter(|lock| p.cursor.as_deref().is_none_or(|c| lock.as_str() > c));
        let set = behind(self.limits.settings(), p).map(|(name, _)| name);
        let used = behind(self.limits.by_name(), p).filter_map(|(name, slot)| {
            let l = &self.limits[*slot];
            let used = l.in_use > 0
                || l.resting_sum > 0
                || l.external > 0
                || l.paused_until.is_some()
                || l.door.is_some_and(|door| self.lines[door].waiting > 0);
            used.then_some(name)
        });
        // The first of both together are among the first of each.
        let enough = p.max + 1;
        let names: BTreeSet<&LimitName> =
            set.take(enough).chain(lock).chain(used.take(enough)).collect();
        page(names.into_iter().map(|name| (name, self.limit_view(name, false, now))), p)
    }

    // ---- Pools ----

    pub(crate) fn pool_view(&self, pool: PoolId) -> PoolView {
        let p = &self.pools[pool];
        PoolView {
            name: p.name.clone(),
            settings: p.settings.unwrap_or_default(),
            available: p.free.len() as u64
                + p.reservation.as_ref().map_or(0, |own| own.kept.len()) as u64,
            leased: p.leased,
            cooling: p.cooling,
            banned: p.banned,
            waiting: p.doors.values().map(|door| self.lines[*door].waiting).sum(),
        }
    }

    pub(crate) fn list_pools(&self, p: &Page) -> Listed<PoolView> {
        let there = behind(self.pools.by_name(), p)
            .filter(|(_, slot)| self.pools[**slot].settings.is_some());
        page(there.map(|(name, slot)| (name, self.pool_view(*slot))), p)
    }

    /// A resource; the engine adds its masked data.
    pub(crate) fn resource_view(&self, resource: LiveResourceId, now: Moment) -> ResourceView {
        let r = &self.pools[resource];
        let paced = r.state == ResourceState::Available && r.paced_until > now;
        let (state, until, reason) = if paced {
            (ResourceState::Cooling, Some(r.paced_until), Some("rate".to_owned()))
        } else {
            let until = (r.state == ResourceState::Cooling).then_some(r.until);
            (r.state, until, r.reason.clone())
        };
        ResourceView {
            id: r.id.clone(),
            data: Json::null(),
            tags: r.tags.clone(),
            slots: r.slots,
            state,
            reason,
            in_use: r.holders.len() as u32,
            until,
            retiring: r.retiring,
            holders: self.holders(r.holders.iter()),
            uses: r.uses,
            last_used_at: r.last_used_at,
        }
    }

    pub(crate) fn list_resources(
        &self,
        pool: PoolId,
        p: &Page,
        now: Moment,
    ) -> Listed<ResourceView> {
        let there = behind(&self.pools[pool].resources, p);
        page(there.map(|(id, slot)| (id, self.resource_view(*slot, now))), p)
    }

    // ---- Leases, workers, totals ----

    pub(crate) fn list_leases(&self, ask: &ListLeases) -> Listed<LeaseSummary> {
        let after: Option<Fence> = ask.page.cursor.as_deref().and_then(|c| c.parse().ok());
        let mut items = Vec::new();
        let mut next = None;
        let from = after.map_or_else(Fence::default, Fence::next);
        for lease in self.leases.from(from) {
            let queue =
                lease.job.and_then(|slot| self.lines[self.jobs.queue_of(slot)].name.clone());
            let resources: Vec<HeldResource> = lease
                .resources
                .iter()
                .map(|held| HeldResource {
                    pool: self.pools[held.pool].name.clone(),
                    id: self.pools[held.resource].id.clone(),
                })
                .collect();
            let limits: Vec<LimitName> =
                lease.limits.iter().map(|held| self.limits[held.limit].name.clone()).collect();
            let holder = self.holder_of(lease);
            let wanted = ask.queue.is_none_or_same(&queue)
                && ask.limit.as_ref().is_none_or(|limit| limits.contains(limit))
                && ask.pool.as_ref().is_none_or(|pool| resources.iter().any(|r| r.pool == *pool))
                && ask.worker.as_ref().is_none_or(|worker| *worker == holder);
            if !wanted {
                continue;
            }
            if items.len() == ask.page.max {
                next = items.last().map(|last: &LeaseSummary| last.fence.to_string());
                break;
            }
            items.push(LeaseSummary {
                lease: lease_id(lease.fence, lease.seq),
                fence: lease.fence,
                holder,
                granted_at: lease.granted_at,
                expires_at: lease.expires_at,
                deadline: lease.deadline,
                job: lease.job.map(|slot| self.jobs[slot].id.clone()),
                queue,
                resources,
                limits,
                cancel_requested: lease.job.is_some_and(|slot| self.jobs[slot].cancel_requested),
            });
        }
        Listed { items, next, partial: false }
    }

    pub(crate) fn list_workers(&self, p: &Page, now: Moment) -> Listed<WorkerView> {
        let there = behind(self.workers.known(), p)
            .filter(|(_, w)| is_recent(w.seen_at, now) || w.waiting > 0);
        let views = there.map(|(id, w)| {
            let queues = w.asked_lately(now);
            let queues = queues.filter_map(|queue| self.lines.queue(queue)?.name.clone());
            let view = WorkerView {
                id: id.clone(),
                host: w.host.clone(),
                pid: w.pid,
                version: w.version.clone(),
                queues: queues.collect(),
                leases: self.leases.held_by(&Some(id.clone())).leases,
                last_seen_at: w.seen_at,
            };
            (id, view)
        });
        page(views, p)
    }

    pub(crate) fn get_stats(&self, now: Moment) -> Stats {
        let mut stats = Stats {
            leases: self.leases.len() as u64,
            result_waiters: self.waiters.awaiting() as u64,
            schedules: self.schedules.stats(now),
            flows: self.flows.named().len() as u64,
            events: Default::default(),
            ..Stats::default()
        };
        for state in JobState::ALL {
            stats.jobs.insert(state, 0);
        }
        for (slot, q) in self.lines.queues() {
            let Some(name) = q.name.as_ref().filter(|_| !q.hidden) else { continue };
            let c = &q.counts;
            let blocked = if q.place == crate::state::Place::Open { c.blocked } else { c.waiting };
            let by_state = [
                (JobState::Dependent, c.dependent),
                (JobState::Scheduled, c.scheduled),
                (JobState::Ready, c.waiting - blocked),
                (JobState::Blocked, blocked),
                (JobState::Running, c.running),
                (JobState::Succeeded, c.succeeded),
                (JobState::Failed, c.failed),
                (JobState::Cancelled, c.cancelled),
            ];
            for (state, n) in by_state {
                *stats.jobs.entry(state).or_default() += n;
            }
            stats.queues.insert(name.clone(), by_state.into_iter().collect());
            let oldest = self.oldest_ready(slot);
            stats.oldest_ready_at = match (stats.oldest_ready_at, oldest) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        stats
    }

    /// The name of the limit or pool of a wait queue.
    pub(crate) fn door_name(&self, key: &DoorKey) -> String {
        match key {
            DoorKey::Limit(limit) => self.limits[*limit].name.to_string(),
            DoorKey::Pool(pool, _) => self.pools[*pool].name.to_string(),
        }
    }
}

/// A filter that is absent, or equal.
trait NoneOrSame<T> {
    fn is_none_or_same(&self, other: &Option<T>) -> bool;
}
impl<T: PartialEq> NoneOrSame<T> for Option<T> {
    fn is_none_or_same(&self, other: &Option<T>) -> bool {
        self.is_none() || self == other
    }
}
