//! How leases end that live at a source: as `released`, without a word from their holders.
//!
//! The job goes back to its old place, permits return, a permit that owes a gap rests it, and permits and
//! resources rest their quarantine, since nobody gave them back: the same as the end `Unheard` of the machine. The
//! source itself is left as it is, so that a copy that is given up takes nothing from anybody.

use std::collections::{HashMap, HashSet};

use super::{CopiedFlow, CopiedJob, CopiedLease, CopiedResource, CopiedRest, CopiedUnshown, Item};
use crate::job::{JobState, retain_for};
use crate::names::{FlowName, LimitName, PoolName, ResourceId};
use crate::settings::{LimitSettings, PoolSettings, ResourceState};
use crate::time::{Moment, Span};

/// See the module. It is told all settings, pools and leases of a namespace first ([`Self::learn`]),
/// and then passes the stream on.
#[derive(Debug)]
pub struct Releasing {
    now: Moment,
    settings: HashMap<LimitName, LimitSettings>,
    /// Limits with a gauge.
    gauged: HashSet<LimitName>,
    pools: HashMap<PoolName, PoolSettings>,
    /// When the last holder of a resource stops at the latest.
    held: HashMap<(PoolName, ResourceId), Moment>,
    /// Members of flows that end with their leases, since their holders were asked to stop.
    called_off: HashMap<FlowName, u64>,
    last: Option<Moment>,
    leases: u64,
}

impl Releasing {
    /// At a moment of the source's clock.
    pub fn new(now: Moment) -> Self {
        Releasing {
            now,
            settings: HashMap::new(),
            gauged: HashSet::new(),
            pools: HashMap::new(),
            held: HashMap::new(),
            called_off: HashMap::new(),
            last: None,
            leases: 0,
        }
    }

    /// Remembers what decides how leases end.
    pub fn learn(&mut self, item: Item) {
        match item {
            Item::Setting(setting) => {
                if setting.gauge.is_some() {
                    self.gauged.insert(setting.name.clone());
                }
                self.settings.insert(setting.name, setting.settings);
            }
            Item::Pool(pool) => drop(self.pools.insert(pool.name, pool.settings)),
            Item::Lease(lease) => {
                self.leases += 1;
                self.last = self.last.max(Some(lease.expires_at));
                for resource in lease.resources {
                    let until = self.held.entry(resource).or_default();
                    *until = lease.expires_at.max(*until);
                }
                if let Some(flow) = lease.called_off_in {
                    *self.called_off.entry(flow).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    /// How many leases live.
    pub fn leases(&self) -> u64 {
        self.leases
    }

    /// When the last of them has run out; `None` if there is none.
    pub fn last(&self) -> Option<Moment> {
        self.last
    }

    /// An item as it is copied: the same, or what is left of it when its lease has ended; nothing, or
    /// several, where a lease stood.
    pub fn pass(&self, item: Item) -> Vec<Item> {
        match item {
            Item::Lease(lease) => self.rests(&lease),
            // It was to go when it is free, and now it is.
            Item::Resource(resource) if resource.retiring => Vec::new(),
            Item::Resource(resource) => vec![Item::Resource(Box::new(self.rested(*resource)))],
            Item::Job(job) if job.state == JobState::Running => {
                vec![Item::Job(Box::new(self.released(*job)))]
            }
            Item::Flow(flow) => vec![Item::Flow(self.counted(flow))],
            item => vec![item],
        }
    }

    /// Its members that are called off end here, in [`Self::released`].
    fn counted(&self, mut flow: CopiedFlow) -> CopiedFlow {
        if let Some(ended) = self.called_off.get(&flow.flow) {
            flow.ended.cancelled += ended;
            flow.finished_at = flow.finished_at.max(Some(self.now));
        }
        flow
    }

    /// A lease without a job always rests the gap, a job's `released` never; each rests the
    /// quarantine and for a gauge, since nobody gave it back.
    fn rests(&self, lease: &CopiedLease) -> Vec<Item> {
        let rest = |(limit, weight): &(LimitName, u32)| {
            let setting = self.setting(limit).filter(|setting| setting.concurrency.is_some())?;
            let gap = setting.gap.filter(|_| !lease.has_job).unwrap_or_default();
            let rest = gap.max(setting.quarantine);
            let (ended_at, weight) = (lease.expires_at, *weight);
            let until = ended_at.plus(rest);
            let unsettled = Some(lease.granted_at);
            let unshown = CopiedUnshown { ended_at, unsettled, until, weight };
            let unshown = self.gauged.contains(limit).then_some(unshown);
            if rest == Span::ZERO && unshown.is_none() {
                return None;
            }
            Some(Item::Rest(CopiedRest { limit: limit.clone(), until, weight, unshown }))
        };
        lease.limits.iter().filter_map(rest).collect()
    }

    fn setting(&self, limit: &LimitName) -> Option<&LimitSettings> {
        // A lock that nobody set has neither.
        self.settings.get(limit).or_else(|| self.settings.get(&limit.template()?))
    }

    fn rested(&self, mut resource: CopiedResource) -> CopiedResource {
        let key = (resource.pool.clone(), resource.id.clone());
        let (Some(free_at), Some(pool)) = (self.held.get(&key), self.pools.get(&resource.pool))
        else {
            return resource;
        };
        let rest = pool.cooldown.max(pool.quarantine);
        let until = free_at.plus(rest);
        let rests_longer = match resource.state {
            ResourceState::Available => false,
            ResourceState::Cooling => resource.until >= until,
            ResourceState::Banned => true,
        };
        if rest == Span::ZERO || rests_longer {
            return resource;
        }
        let why = if pool.quarantine >= pool.cooldown { "quarantine" } else { "cooldown" };
        resource.state = ResourceState::Cooling;
        resource.until = until;
        resource.rest = until.since(self.now).max(rest);
        resource.reason = Some(why.to_owned());
        resource
    }

    /// Back to its old place, at once: the second that a second `released` in a row waits is over
    /// before anybody may be granted it.
    fn released(&self, mut job: CopiedJob) -> CopiedJob {
        job.released += 1;
        job.ended_unsettled = true;
        job.wait = Span::ZERO;
        job.state = JobState::Ready;
        if job.cancel_requested {
            job.state = JobState::Cancelled;
            job.finished_at = Some(self.now);
            job.kept_until = Some(self.now.plus(retain_for(JobState::Cancelled, job.retain)));
            job.holds = job.holds.and_then(|mut holds| {
                holds.by_job = false;
                holds.until.filter(|until| *until > self.now).map(|_| holds)
            });
        }
        job
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::{CopiedPool, CopiedSetting, Holds};
    use crate::flow::FlowCounts;
    use crate::gauge::{Gauge, GaugeAddress, GaugeSource, OnStale};
    use crate::job::{Retry, Unique, Until};
    use crate::names::{JobId, QueueName, UniqueKey};
    use crate::secret::Json;

    const NOW: Moment = Moment::from_us(1_000_000_000);

    fn later(s: u64) -> Moment {
        NOW.plus(Span::from_s(s))
    }
    fn limit(name: &str) -> LimitName {
        LimitName::parse(name).unwrap()
    }
    fn pool(name: &str) -> PoolName {
        PoolName::parse(name).unwrap()
    }
    fn id(name: &str) -> ResourceId {
        ResourceId::parse(name).unwrap()
    }

    fn resource(name: &str) -> CopiedResource {
        CopiedResource {
            pool: pool("p"),
            id: id(name),
            data: Json::null(),
            tags: Vec::new(),
            slots: 1,
            state: ResourceState::Available,
            until: Moment::ZERO,
            rest: Span::ZERO,
            reason: None,
            uses: 1,
            used: 1,
            last_used_at: None,
            tat: Moment::ZERO,
            retiring: false,
            generation: 0,
        }
    }

    fn job(state: JobState) -> CopiedJob {
        CopiedJob {
            id: JobId::parse("j").unwrap(),
            kind: String::new(),
            payload: Json::null(),
            labels: Default::default(),
            traceparent: None,
            queue: QueueName::parse("q").unwrap(),
            priority: 0,
            group: None,
            needs: Vec::new(),
            retry: Retry::default(),
            timeout: None,
            retain: None,
            state,
            arrival: 7,
            created_at: NOW,
            run_at: NOW,
            started_at: Some(NOW),
            finished_at: None,
            kept_until: None,
            expires_at: None,
            wait: Span::ZERO,
            ended: 0,
            lost: 1,
            released: 0,
            undelivered: 0,
            snoozed: 0,
            ended_unsettled: false,
            cancel_requested: false,
            keeps_place: false,
            unique: None,
            wait_began: None,
            holds: None,
            bytes: 1,
            result: None,
            progress: None,
            error: None,
            errors: Vec::new(),
            origin: None,
            flow: None,
            cancelled_children: 0,
        }
    }

    fn capped() -> LimitSettings {
        LimitSettings { concurrency: Some(2), ..LimitSettings::default() }
    }

    fn releasing() -> Releasing {
        let mut all = Releasing::new(NOW);
        let gap = |name: &str, gap| {
            let settings = LimitSettings { gap: Some(Span::from_s(gap)), ..capped() };
            Item::Setting(CopiedSetting { name: limit(name), settings, gauge: None })
        };
        all.learn(gap("a", 5));
        let settings = LimitSettings { quarantine: Span::from_s(9), ..capped() };
        all.learn(Item::Setting(CopiedSetting { name: limit("risky"), settings, gauge: None }));
        all.learn(gap("site:*", 7));
        let settings = PoolSettings {
            quarantine: Span::from_s(60),
            cooldown: Span::from_s(2),
            ..PoolSettings::default()
        };
        all.learn(Item::Pool(CopiedPool { name: pool("p"), settings, version: 0, generation: 0 }));
        all.learn(Item::Lease(lease(true, 10)));
        all.learn(Item::Lease(lease(false, 30)));
        all
    }

    fn lease(has_job: bool, s: u64) -> CopiedLease {
        let limits = ["a", "site:x", "lock:z", "risky"].map(|name| (limit(name), 2)).to_vec();
        let resources = vec![(pool("p"), id("r"))];
        let (granted_at, expires_at) = (NOW, later(s));
        CopiedLease { has_job, granted_at, expires_at, limits, resources, called_off_in: None }
    }

    #[test]
    fn every_lease_rests_the_quarantine_and_one_without_a_job_the_gaps_too() {
        let all = releasing();
        let rest = |name, s| {
            let (until, weight) = (later(s), 2);
            Item::Rest(CopiedRest { limit: limit(name), until, weight, unshown: None })
        };
        assert_eq!(all.pass(Item::Lease(lease(true, 10))), [rest("risky", 19)]);
        let rests = [rest("a", 35), rest("site:x", 37), rest("risky", 39)];
        assert_eq!(all.pass(Item::Lease(lease(false, 30))), rests);
        assert_eq!((all.leases(), all.last()), (2, Some(later(30))));
    }

    #[test]
    fn permits_of_a_limit_with_a_gauge_rest_as_after_an_end_that_was_no_settle() {
        let address = GaugeAddress::parse("http://host").unwrap();
        let (every, lag, stale) = (Span::from_s(2), Span::from_s(10), Span::from_s(30));
        let source = GaugeSource::Scrapyd { scrapyd: address, project: None };
        let gauge = Gauge { source, every, lag, stale, on_stale: OnStale::Keep };
        let mut all = releasing();
        let (name, gauge) = (limit("lock:z"), Some(Box::new(gauge)));
        all.learn(Item::Setting(CopiedSetting { name, settings: capped(), gauge }));
        let unsettled = Some(NOW);
        let (until, weight) = (later(10), 2);
        let unshown = Some(CopiedUnshown { ended_at: until, unsettled, until, weight });
        let rest = Item::Rest(CopiedRest { limit: limit("lock:z"), until, weight, unshown });
        let passed = all.pass(Item::Lease(lease(true, 10)));
        assert!(passed.contains(&rest), "{passed:?}");
    }

    #[test]
    fn what_was_held_rests_its_quarantine_from_when_its_last_holder_has_stopped() {
        let all = releasing();
        let passed = |resource| match all.pass(Item::Resource(Box::new(resource))).as_slice() {
            [Item::Resource(one)] => Some((one.state, one.until, one.reason.clone())),
            _ => None,
        };
        let quarantine = Some("quarantine".to_owned());
        let rested = Some((ResourceState::Cooling, later(90), quarantine));
        assert_eq!(passed(resource("r")), rested);
        let free = resource("free");
        assert_eq!(passed(free.clone()), Some((free.state, free.until, None)));
        let banned = CopiedResource { state: ResourceState::Banned, ..resource("r") };
        assert_eq!(passed(banned), Some((ResourceState::Banned, Moment::ZERO, None)));
        let longer =
            CopiedResource { state: ResourceState::Cooling, until: later(99), ..resource("r") };
        assert_eq!(passed(longer), Some((ResourceState::Cooling, later(99), None)));
        assert_eq!(passed(CopiedResource { retiring: true, ..resource("r") }), None);
    }

    #[test]
    fn a_job_goes_back_to_its_place_and_stays_a_suspect() {
        let passed = |job| match releasing().pass(Item::Job(Box::new(job))).as_slice() {
            [Item::Job(job)] => (**job).clone(),
            other => panic!("{other:?}"),
        };
        let back = passed(job(JobState::Running));
        assert_eq!((back.state, back.arrival), (JobState::Ready, 7));
        assert_eq!((back.released, back.lost, back.ended), (1, 1, 0));
        let key = UniqueKey::parse("k").unwrap();
        let (until, on_conflict) = (Until::End, Default::default());
        let unique = Unique { key, until, hold: None, on_conflict, within: None };
        let called_off = CopiedJob {
            cancel_requested: true,
            unique: Some(unique),
            holds: Some(Holds { by_job: true, until: None }),
            ..job(JobState::Running)
        };
        let off = passed(called_off);
        assert_eq!((off.state, off.finished_at, off.holds), (JobState::Cancelled, Some(NOW), None));
        assert_eq!(off.kept_until, Some(later(3_600)));
        let waits = job(JobState::Scheduled);
        assert_eq!(passed(waits.clone()), waits);
    }

    #[test]
    fn a_member_whose_holder_was_asked_to_stop_ends_in_the_count_of_its_flow() {
        let mut all = releasing();
        let name = |text| FlowName::parse(text).unwrap();
        for _ in 0..2 {
            let called_off_in = Some(name("import"));
            all.learn(Item::Lease(CopiedLease { called_off_in, ..lease(true, 10) }));
        }
        let flow = |text| CopiedFlow {
            flow: name(text),
            ended: FlowCounts { cancelled: 1, succeeded: 4, ..FlowCounts::default() },
            rows: 9,
            cancelling: false,
            created_at: Moment::ZERO,
            finished_at: Some(Moment::from_us(5)),
        };
        let passed = |text| match all.pass(Item::Flow(flow(text))).as_slice() {
            [Item::Flow(flow)] => flow.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(passed("other"), flow("other"));
        let import = passed("import");
        assert_eq!((import.ended.cancelled, import.ended.succeeded), (3, 4));
        assert_eq!(import.finished_at, Some(NOW));
    }
}
