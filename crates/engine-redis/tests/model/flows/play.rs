//! Steps about flows, as requests to both engines.

use proptest::prelude::TestCaseError;
use tenure_core::bounds::LIST_MAX;
use tenure_core::flow::{After, OnParentFailure, Parent};
use tenure_core::job::{NewJob, OnConflict};
use tenure_core::lease::SettleItem;
use tenure_core::names::{FlowName, JobId, JobRef, Ref, UniqueKey};
use tenure_core::requests::*;
use tenure_core::time::Span;

use super::{AfterEntry, FlowStep, KIN, Member, NamedParent, Reference};
use crate::pair::{Program, id, ms, queue, the};
use crate::step::End;

/// A queue that no other step takes from.
const APART: u8 = 8;

fn flow(n: u8) -> FlowName {
    FlowName::parse(&format!("f{n}")).expect("a name")
}
fn reference(n: usize) -> Ref {
    Ref::parse(&format!("r{n}")).expect("a ref")
}
fn named(id: String) -> JobId {
    JobId::parse(&id).expect("an id")
}
fn on_failure(run: bool) -> OnParentFailure {
    if run { OnParentFailure::Run } else { OnParentFailure::Cancel }
}

/// How an item of an array is called within it.
fn reference_of(members: &[Member], at: usize) -> Option<Ref> {
    match members[at].reference {
        Reference::None => None,
        Reference::Own => Some(reference(at)),
        Reference::OfFirst => Some(reference(0)),
    }
}

/// What an entry of the item at this place names; `settled` is the job whose settle pushes.
fn after(members: &[Member], at: usize, entry: &AfterEntry, settled: Option<&JobId>) -> After {
    let item = |n: usize| match members[n].reference {
        Reference::Own => Parent::Item(reference(n)),
        _ => Parent::Job(the(members[n].job.id)),
    };
    let parent = match entry.parent {
        NamedParent::Job(n) => {
            let later = |n: &u8| members[at..].iter().any(|member| member.job.id == *n);
            let no_item = (n..n + KIN).map(|n| n % KIN).find(|n| !later(n));
            Parent::Job(the(no_item.unwrap_or(n)))
        }
        NamedParent::Key(n) => {
            Parent::Job(JobRef::Key(UniqueKey::parse(&format!("k{n}")).expect("a key")))
        }
        NamedParent::Flow(n) => Parent::Flow(flow(n)),
        NamedParent::Earlier(n) => match usize::from(n).checked_rem(at) {
            Some(n) => item(n),
            None => Parent::Job(the(n % KIN)),
        },
        NamedParent::Any(n) => match usize::from(n).checked_rem(members.len()) {
            Some(n) => item(n),
            None => Parent::Job(the(n % KIN)),
        },
        NamedParent::Nothing => Parent::Item(reference(99)),
        NamedParent::Settled => Parent::Job(settled.map_or(the(0), |id| JobRef::Id(id.clone()))),
    };
    After { parent, gone_is_done: entry.gone }
}

impl Program<'_> {
    fn members(&self, members: &[Member], settled: Option<&JobId>) -> Vec<NewJob> {
        let one = |(at, member): (usize, &Member)| {
            let job = self.job(&member.job);
            let replaces =
                job.unique.as_ref().is_some_and(|held| held.on_conflict == OnConflict::Replace);
            // A job that may replace another does not say whom it waits for: that is refused before an engine sees it.
            let entries = if replaces { &[] } else { &member.after[..] };
            NewJob {
                after: entries.iter().map(|entry| after(members, at, entry, settled)).collect(),
                on_parent_failure: on_failure(member.run),
                reference: reference_of(members, at),
                flow: member.flow.map(flow),
                ..job
            }
        };
        members.iter().enumerate().map(one).collect()
    }

    pub(crate) async fn flow(&mut self, step: &FlowStep) -> Result<(), TestCaseError> {
        match step {
            FlowStep::Push { jobs, turned, brief } => {
                let mut jobs = self.members(jobs, None);
                if *turned {
                    jobs.reverse();
                }
                let answer = if *brief { PushAnswer::Ids } else { PushAnswer::Whole };
                self.ask(Push { jobs, answer }).await?;
            }
            FlowStep::Crowd { parent, many, run, flow: name, retain_ms } => {
                self.crowded = true;
                let after = after(&[], 0, parent, None);
                let child = |n| NewJob {
                    id: Some(named(format!("c{n}"))),
                    after: vec![after.clone()],
                    on_parent_failure: on_failure(*run),
                    flow: name.map(flow),
                    retain: retain_ms.map(ms),
                    ..NewJob::new(queue(2))
                };
                let jobs = (0..*many).map(child).collect();
                self.ask(Push { jobs, answer: PushAnswer::Ids }).await?;
            }
            FlowStep::FanIn { child, many, flow: name } => {
                self.fan_in(*child, *many, *name).await?
            }
            FlowStep::Settle { leases, push, call } => self.end_some(leases, push, call).await?,
            FlowStep::CancelWhileTelling { many } => self.cancel_while_telling(*many).await?,
            FlowStep::Cancel { flow: n } => drop(self.ask(CancelFlow { flow: flow(*n) }).await?),
            FlowStep::Many { what, flow: n, which, max } => {
                let filter = JobFilter { flow: Some(flow(*n)), ..self.filter(which) };
                let (max, cursor) = (*max, None);
                match what {
                    0 => drop(self.ask(CancelJobs { filter, max, cursor }).await?),
                    1 => drop(self.ask(RetryJobs { filter, max, cursor }).await?),
                    _ => drop(self.ask(DeleteJobs { filter, max, cursor }).await?),
                }
            }
            FlowStep::Await { flow: n, wait_ms } => {
                self.start_waiting(GetFlow { flow: flow(*n), wait: ms(*wait_ms) }).await?;
            }
            FlowStep::Look { job, full, max } => {
                self.ask(GetJob { job: the(*job) }).await?;
                self.ask(ExplainJob { job: the(*job) }).await?;
                self.kin_of(*job, *full, *max).await?;
            }
            FlowStep::Lists => {
                self.ask(ListFlows::default()).await?;
                for n in 0..3 {
                    self.ask(GetFlow { flow: flow(n), wait: Span::ZERO }).await?;
                    let filter = JobFilter { flow: Some(flow(n)), ..JobFilter::default() };
                    self.ask(ListJobs { filter, full: true, page: Page::default() }).await?;
                }
                for job in 0..KIN {
                    self.kin_of(job, true, LIST_MAX).await?;
                }
            }
        }
        Ok(())
    }

    /// Parents that nobody takes, and a child of all of them.
    async fn fan_in(
        &mut self,
        child: u8,
        many: u16,
        name: Option<u8>,
    ) -> Result<(), TestCaseError> {
        let ids: Vec<JobId> = (0..many).map(|n| named(format!("p{n}"))).collect();
        let parent = |id: &JobId| NewJob {
            id: Some(id.clone()),
            flow: name.map(flow),
            retain: Some(Span::ZERO),
            ..NewJob::new(queue(2))
        };
        let entry =
            |id: &JobId| After { parent: Parent::Job(JobRef::Id(id.clone())), gone_is_done: false };
        let last = NewJob {
            id: Some(id(child)),
            after: ids.iter().map(entry).collect(),
            on_parent_failure: OnParentFailure::Run,
            retain: Some(Span::ZERO),
            ..NewJob::new(queue(0))
        };
        let jobs = ids.iter().map(parent).chain([last]).collect();
        self.ask(Push { jobs, answer: PushAnswer::Ids }).await.map(drop)
    }

    async fn end_some(
        &mut self,
        leases: &[(u8, End)],
        push: &[Member],
        call: &Option<crate::step::Call>,
    ) -> Result<(), TestCaseError> {
        let pushes = End::pushes;
        // What pushes comes last, as in other steps.
        let (last, first): (Vec<_>, Vec<_>) = leases.iter().partition(|(_, end)| pushes(end));
        let all = first.into_iter().chain(last.into_iter().take(1));
        let ended = all.filter_map(|(n, end)| Some((*n, self.settling(self.newest(*n)?, end)?)));
        let mut ended: Vec<(u8, SettleItem)> = ended.collect();
        if let Some((n, item)) = ended.last_mut() {
            let settled = self.newest(*n).and_then(|n| self.held_job(n));
            item.push.extend(self.members(push, settled.as_ref()));
        }
        let settle = ended.into_iter().map(|(_, item)| item).collect();
        // How much of a crowd is told before such a call is granted something is the engine's own.
        let call = call.as_ref().filter(|_| !self.crowded);
        let lease = call.map(|call| Box::new(self.call(call)));
        let answer = self.ask(Settle { settle, lease }).await?;
        if let Some(Reply::Settle(Settled { lease: Some(Ok(leased)), .. })) = answer {
            self.granted(leased);
        }
        Ok(())
    }

    /// A parent ends, and the flow of its children is called off before anybody has told all of them: how many were
    /// told by then is not the same on both, and of those that go at once nothing else shows it.
    async fn cancel_while_telling(&mut self, many: u16) -> Result<(), TestCaseError> {
        let of_flow = |id: String| NewJob {
            id: Some(named(id)),
            flow: Some(flow(9)),
            retain: Some(Span::ZERO),
            ..NewJob::new(queue(APART))
        };
        let child = |n| NewJob {
            after: vec![After {
                parent: Parent::Job(JobRef::Id(named("begin".to_owned()))),
                gone_is_done: false,
            }],
            ..of_flow(format!("m{n}"))
        };
        let jobs = std::iter::once(of_flow("begin".to_owned())).chain((0..many).map(child));
        self.ask(Push { jobs: jobs.collect(), answer: PushAnswer::Ids }).await?;
        let taken = self.ask(Lease::jobs(vec![queue(APART)], 1)).await?;
        let Some(Reply::Lease(mut leased)) = taken else { return Ok(()) };
        let Some(lease) = leased.leases.pop().and_then(|lease| lease.lease) else { return Ok(()) };
        let ending = tenure_core::lease::Ending::Succeeded { result: None };
        let settle = Settle::of(vec![SettleItem::new(lease, ending)]);
        self.ask_together([settle.into(), CancelFlow { flow: flow(9) }.into()]).await?;
        self.ready_differ = true;
        Ok(())
    }

    async fn kin_of(&self, job: u8, full: bool, max: usize) -> Result<(), TestCaseError> {
        let page = Page { max, cursor: None };
        self.ask(ListParents { job: the(job), full, page: page.clone() }).await?;
        self.ask(ListChildren { job: the(job), page }).await.map(drop)
    }
}
