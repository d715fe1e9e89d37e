//! The jobs of one unique key (or one id), which have a queue of their own, one call after the other: a pushed job
//! exists, one of them at most is not finished, one lease at most runs it, and an accepted settle is the end of its
//! lease and has the same answer when it is repeated.

use std::rc::Rc;

use tenure_core::bounds::{RELEASE_AGAIN_US, SETTLES_KEPT};
use tenure_core::job::{JobState, Outcome};

use crate::linear::history::{Answer, Call, Event};
use crate::linear::search::Model;
use crate::linear::terms::{Bits, Grant, Names, WALL_SLACK_US};

/// The model, for one history.
pub struct Jobs<'a> {
    events: &'a [Event],
    names: Names<'a>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// The highest fence that was granted and seen.
    fence: u64,
    /// Requests that were granted and not undone.
    granted: Bits,
    jobs: Vec<Option<Rc<Job>>>,
    /// The one that is not finished.
    live: Option<usize>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Job {
    stands: Stands,
    /// Number of runs that ended.
    ended: u32,
    /// Runs in a row that were given back; unknown after a reap, which may count as one.
    released: Option<u32>,
    /// It was cancelled while it ran.
    cancel: bool,
    /// Its holder may have died, and no settle since: some calls may not get it.
    suspect: bool,
    /// The last settles, which it remembers.
    past: Vec<Past>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Stands {
    Ready,
    /// No sooner than this moment.
    Later(u64),
    /// After a reap: ready or scheduled.
    Either,
    Running(Grant),
    Done(JobState),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Past {
    fence: u64,
    outcome: Outcome,
    state: JobState,
}

impl Job {
    fn new() -> Self {
        Job {
            stands: Stands::Ready,
            ended: 0,
            released: Some(0),
            cancel: false,
            suspect: false,
            past: Vec::new(),
        }
    }

    fn run(&self) -> Option<&Grant> {
        match &self.stands {
            Stands::Running(grant) => Some(grant),
            _ => None,
        }
    }

    fn may_be_shown_as(&self, state: JobState) -> bool {
        match &self.stands {
            Stands::Ready => state == JobState::Ready,
            Stands::Later(_) => state == JobState::Scheduled,
            Stands::Either => matches!(state, JobState::Ready | JobState::Scheduled),
            Stands::Running(_) => state == JobState::Running,
            Stands::Done(end) => state == *end,
        }
    }

    /// Runs that ended, and the one that is under way.
    fn attempt(&self) -> u32 {
        self.ended + u32::from(self.run().is_some())
    }

    /// After a settle of the run that is under way.
    fn settled(&self, outcome: Outcome, wait_us: u64, last: bool, at: u64) -> Vec<Job> {
        let mut next = Job { suspect: false, ..self.clone() };
        let later = Stands::Later((at + wait_us).saturating_sub(WALL_SLACK_US));
        let cancelled = Stands::Done(JobState::Cancelled);
        match outcome {
            Outcome::Succeeded => {
                next.ended += 1;
                next.stands = Stands::Done(JobState::Succeeded);
            }
            Outcome::Failed => {
                next.ended += 1;
                next.stands = match (last, self.cancel) {
                    (true, _) => Stands::Done(JobState::Failed),
                    (false, true) => cancelled,
                    (false, false) => later,
                };
            }
            Outcome::Snoozed => next.stands = if self.cancel { cancelled } else { later },
            Outcome::Released if self.cancel => next.stands = cancelled,
            Outcome::Released => {
                let again = Stands::Later((at + RELEASE_AGAIN_US).saturating_sub(WALL_SLACK_US));
                next.released = self.released.map(|released| released + 1);
                let stands = match next.released {
                    Some(1) => vec![Stands::Ready],
                    Some(_) => vec![again],
                    None => vec![Stands::Ready, again],
                };
                return stands.into_iter().map(|stands| Job { stands, ..next.clone() }).collect();
            }
            Outcome::Lost | Outcome::Undelivered => return Vec::new(),
        }
        next.released = Some(0);
        vec![next]
    }

    fn state(&self) -> JobState {
        match &self.stands {
            Stands::Ready | Stands::Either => JobState::Ready,
            Stands::Later(_) => JobState::Scheduled,
            Stands::Running(_) => JobState::Running,
            Stands::Done(end) => *end,
        }
    }

    fn remember(&mut self, fence: u64, outcome: Outcome) {
        if self.past.len() == SETTLES_KEPT {
            self.past.remove(0);
        }
        self.past.push(Past { fence, outcome, state: self.state() });
    }
}

impl State {
    fn job(&self, id: Option<usize>) -> Option<&Job> {
        self.jobs.get(id?)?.as_deref()
    }

    fn live(&self) -> Option<&Job> {
        self.job(self.live)
    }

    fn run(&self) -> Option<&Grant> {
        self.live()?.run()
    }

    /// With a job as it is now.
    fn with(&self, number: usize, job: Job) -> State {
        let mut next = self.clone();
        next.live = match job.stands {
            Stands::Done(_) => next.live.filter(|live| *live != number),
            _ => Some(number),
        };
        next.jobs[number] = Some(Rc::new(job));
        next
    }

    /// After the end of a run that nobody settled.
    fn unsettled(&self, stands: Stands) -> Option<State> {
        let (number, job) = (self.live?, self.live()?);
        let stands = if job.cancel { Stands::Done(JobState::Cancelled) } else { stands };
        Some(self.with(number, Job { stands, ..job.clone() }))
    }
}

impl<'a> Jobs<'a> {
    pub fn new(events: &'a [Event]) -> Self {
        Jobs { events, names: Names::of(events) }
    }

    fn push(&self, state: &State, id: &str, answer: Option<&Answer>) -> Vec<State> {
        let Some(number) = self.names.job(id) else { return Vec::new() };
        let there = if state.jobs[number].is_some() { Some(number) } else { state.live };
        let is_answer = |told: &str, duplicate: bool| match answer {
            Some(Answer::Pushed { id, duplicate: said }) => id == told && *said == duplicate,
            Some(_) => false,
            None => true,
        };
        match (there, answer) {
            (None, _) if is_answer(id, false) => vec![state.with(number, Job::new())],
            (Some(there), Some(Answer::Pushed { id, duplicate: true }))
                if self.names.job(id) == Some(there) =>
            {
                vec![state.clone()]
            }
            _ => Vec::new(),
        }
    }

    fn lease(&self, state: &State, event: &Event, request: usize, at: u64) -> Vec<State> {
        let own = state.run().filter(|run| run.request == request);
        // A repeat shows the job in its state at that read: its run may have been given back by then.
        let runs = |job: &Job, grant: Grant, is_repeat: bool| {
            let fence = grant.fence.unwrap_or(state.fence);
            let live = state.live?;
            let job = Job { stands: Stands::Running(grant), ..job.clone() };
            if let Some(Answer::Granted { job: told, .. }) = &event.answer {
                let (id, attempt) = told.as_ref()?;
                let is_told = is_repeat || *attempt == job.attempt();
                if self.names.job(id) != Some(live) || !is_told {
                    return None;
                }
            }
            let mut next = State { fence, ..state.with(live, job) };
            next.granted.insert(request);
            Some(next)
        };
        let granted = |job: &Job| {
            let may =
                matches!(job.stands, Stands::Ready | Stands::Either) && !state.granted.has(request);
            let grant = Grant::new(event, request, state.fence, at).filter(|_| may)?;
            let undoable = grant.undoable || event.waited_in_vain();
            runs(job, Grant { undoable, ..grant }, false)
        };
        let next = match (&event.answer, own, state.live()) {
            (Some(Answer::Granted { fence, .. }), Some(own), Some(job)) => {
                own.seen(*fence, state.fence).and_then(|seen| runs(job, seen, true))
            }
            (Some(Answer::Granted { .. }) | None, None, Some(job)) => granted(job),
            // A ready job is granted to the caller, unless its request was granted before.
            (Some(Answer::Nothing), None, job) => {
                let ready = job.is_some_and(|job| job.stands == Stands::Ready && !job.suspect);
                let nothing = (!ready || state.granted.has(request)).then(|| state.clone());
                let elsewhere = self.names.may_have_gone_to_a_repeat(event);
                let granted = job.filter(|_| elsewhere).and_then(granted);
                return nothing.into_iter().chain(granted).collect();
            }
            _ => None,
        };
        next.into_iter().collect()
    }

    fn settle(&self, state: &State, event: &Event, at: u64) -> Vec<State> {
        let Call::Settle { fence, outcome, wait_ms, last } = event.call else { return Vec::new() };
        let same = || vec![state.clone()];
        if let (Some(number), Some(job)) = (state.live, state.live())
            && job.run().is_some_and(|run| run.fence == Some(fence))
        {
            let told = match &event.answer {
                Some(Answer::Settled { state: Some(told) }) => Some(*told),
                None => None,
                _ => return Vec::new(),
            };
            let all = job.settled(outcome, wait_ms * 1_000, last, at).into_iter();
            return all
                .filter(|job| told.is_none_or(|told| told == job.state()))
                .map(|mut job| {
                    job.remember(fence, outcome);
                    state.with(number, job)
                })
                .collect();
        }
        let mut past = state.jobs.iter().flatten().flat_map(|job| &job.past);
        match (past.find(|past| past.fence == fence), &event.answer) {
            (Some(past), Some(Answer::Settled { state: told }))
                if past.outcome == outcome && *told == Some(past.state) =>
            {
                same()
            }
            (Some(past), Some(Answer::AlreadySettled)) if past.outcome != outcome => same(),
            (None, Some(Answer::Lost)) => same(),
            _ => Vec::new(),
        }
    }

    fn cancel(&self, state: &State, id: &str, answer: Option<&Answer>) -> Vec<State> {
        let number = self.names.job(id);
        let told = |told: JobState| match answer {
            Some(Answer::Acted) => true,
            Some(Answer::Shown { state, .. }) => *state == told,
            Some(_) => false,
            None => true,
        };
        match (number, state.job(number)) {
            (Some(number), Some(job)) => match &job.stands {
                Stands::Running(_) if told(JobState::Running) => {
                    vec![state.with(number, Job { cancel: true, ..job.clone() })]
                }
                Stands::Done(JobState::Cancelled) if told(JobState::Cancelled) => {
                    vec![state.clone()]
                }
                Stands::Done(JobState::Succeeded | JobState::Failed)
                    if answer == Some(&Answer::WrongState) =>
                {
                    vec![state.clone()]
                }
                Stands::Ready | Stands::Later(_) | Stands::Either if told(JobState::Cancelled) => {
                    let stands = Stands::Done(JobState::Cancelled);
                    vec![state.with(number, Job { stands, ..job.clone() })]
                }
                _ => Vec::new(),
            },
            _ if answer == Some(&Answer::NotFound) => vec![state.clone()],
            _ => Vec::new(),
        }
    }

    fn retry(&self, state: &State, id: &str, answer: Option<&Answer>) -> Vec<State> {
        let number = self.names.job(id);
        let same =
            |told: Answer| if answer == Some(&told) { vec![state.clone()] } else { Vec::new() };
        let (Some(number), Some(job)) = (number, state.job(number)) else {
            return same(Answer::NotFound);
        };
        match job.stands {
            Stands::Done(JobState::Failed | JobState::Cancelled) if state.live.is_some() => {
                same(Answer::Conflict)
            }
            Stands::Done(JobState::Failed | JobState::Cancelled) => match answer {
                Some(Answer::Acted | Answer::Shown { state: JobState::Ready, .. }) | None => {
                    vec![state.with(number, Job { past: job.past.clone(), ..Job::new() })]
                }
                _ => Vec::new(),
            },
            _ => same(Answer::WrongState),
        }
    }
}

impl Model for Jobs<'_> {
    type State = State;

    fn first(&self) -> State {
        let jobs = vec![None; self.names.jobs()];
        State { fence: 0, granted: Bits::default(), jobs, live: None }
    }

    fn step(&self, state: &State, call: usize, at: u64) -> Vec<State> {
        let event = &self.events[call];
        if state.run().is_some_and(|run| run.over_by < at) {
            return Vec::new();
        }
        let same = || vec![state.clone()];
        if event.answer == Some(Answer::Unavailable) {
            return same();
        }
        match &event.call {
            Call::Lease { request, .. } => {
                self.lease(state, event, self.names.request(request), at)
            }
            Call::Push { id } => self.push(state, id, event.answer.as_ref()),
            Call::Settle { .. } => self.settle(state, event, at),
            Call::Cancel { id } => self.cancel(state, id, event.answer.as_ref()),
            Call::Retry { id } => self.retry(state, id, event.answer.as_ref()),
            Call::Extend { fence } => {
                let run = state.run().filter(|run| run.fence == Some(*fence));
                match (run, &event.answer, state.live, state.live()) {
                    (Some(run), Some(Answer::Extended { cancel }), Some(number), Some(job))
                        if *cancel == job.cancel =>
                    {
                        let stands = Stands::Running(run.extended(at));
                        vec![state.with(number, Job { stands, ..job.clone() })]
                    }
                    (None, Some(Answer::Lost), ..) => same(),
                    // One that nobody heard the answer of only makes a lease live longer.
                    _ => Vec::new(),
                }
            }
            Call::Get { id } => {
                let job = state.job(self.names.job(id));
                match (job, &event.answer) {
                    (None, Some(Answer::NotFound)) => same(),
                    (Some(job), Some(Answer::Shown { state, attempt }))
                        if job.may_be_shown_as(*state) && job.attempt() == *attempt =>
                    {
                        same()
                    }
                    _ => Vec::new(),
                }
            }
        }
    }

    fn changed_nothing(&self, call: usize) -> bool {
        self.names.changed_nothing(&self.events[call])
    }

    fn alone(&self, state: &State) -> Vec<(State, u64)> {
        let (Some(number), Some(job)) = (state.live, state.live()) else { return Vec::new() };
        match &job.stands {
            Stands::Later(at) => {
                let stands = Stands::Ready;
                vec![(state.with(number, Job { stands, ..job.clone() }), *at)]
            }
            Stands::Running(grant) => {
                let expired = state.unsettled(Stands::Either);
                let lost = expired.filter(|_| grant.expires <= grant.over_by).map(|mut next| {
                    if let Some(job) = next.live.and_then(|live| next.jobs[live].as_mut()) {
                        let job = Rc::make_mut(job);
                        (job.released, job.suspect) = (None, true);
                    }
                    (next, grant.expires)
                });
                let undone = state.unsettled(Stands::Ready).filter(|_| grant.undoable);
                let undone = undone.map(|mut next| {
                    next.granted.remove(grant.request);
                    (next, 0)
                });
                lost.into_iter().chain(undone).collect()
            }
            _ => Vec::new(),
        }
    }
}
