//! Flows in the chaos: a process that pushes jobs which wait for each other. Some of them fail for good, so that
//! their children are cancelled, or run, as each child says.
//!
//! Before it pushes, the process writes down what it is about to push: a line for each job. Afterwards it writes that
//! the call was answered. `judge.rs` reads both.

use std::time::Duration;

use tenure::{
    After, Client, FlowName, JobId, JobRef, LimitName, NewJob, OnParentFailure, Parent, QueueName,
    Ref, SettleOutcome, Span,
};
use tenure_core::bounds::TOLD_AT_ONCE;
use tenure_core::job::Need;
use tenure_core::job::{Backoff, JobState, Retry};
use tenure_testkit::Dice;
use tokio::time::sleep;

use crate::chaos::part::{CAPS, Notes, push_until_answered, unix_us};

/// The queue of the jobs of flows.
pub const FLOWS: &str = "flows";
/// Pause of a pusher after each flow.
const FLOW_EVERY: Duration = Duration::from_millis(400);
/// A job runs for 20 ms and at most this much longer: a kill then often meets one that runs.
const LONGER_MS: u64 = 180;
/// Children of one parent in a wide flow, which are more than one step can start or cancel. Ticks do the rest.
const WIDE: usize = TOLD_AT_ONCE + 50;
/// One flow in this many is wide. Its jobs are short, since there are many.
const WIDE_EVERY: u64 = 60;
const WIDE_MS: u64 = 5;
/// Wait before the second attempt of a job.
const RETRIED_IN: Span = Span::from_ms(100);

/// How the runs of a job end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Succeeds,
    /// The first attempt fails. Its children must still wait.
    SucceedsSecond,
    /// Fails for good with its first attempt.
    Fails,
    /// Has two attempts, and fails with both.
    FailsSecond,
}

impl Way {
    const ALL: [(&str, Way); 4] = [
        ("succeeds", Way::Succeeds),
        ("succeeds_second", Way::SucceedsSecond),
        ("fails", Way::Fails),
        ("fails_second", Way::FailsSecond),
    ];

    fn word(self) -> &'static str {
        Way::ALL.iter().find(|(_, way)| *way == self).map_or("", |(word, _)| word)
    }

    pub fn read(word: &str) -> Option<Way> {
        Way::ALL.iter().find(|(known, _)| *known == word).map(|(_, way)| *way)
    }

    /// The state of a job that ran to its end.
    pub fn end(self) -> JobState {
        match self {
            Way::Succeeds | Way::SucceedsSecond => JobState::Succeeded,
            Way::Fails | Way::FailsSecond => JobState::Failed,
        }
    }

    /// The outcome of an attempt, counted from 1.
    pub fn outcome(self, attempt: u32) -> SettleOutcome {
        match self {
            Way::SucceedsSecond if attempt < 2 => SettleOutcome::failed("the first attempt fails"),
            Way::Succeeds | Way::SucceedsSecond => SettleOutcome::succeeded(),
            Way::Fails => SettleOutcome::failed_for_good("it fails for good"),
            Way::FailsSecond => SettleOutcome::failed("each attempt fails"),
        }
    }
}

/// One job of a flow, as its pusher wrote it down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planned {
    /// The push that brings it, together with all jobs that name the same.
    pub call: String,
    pub id: String,
    /// Its flow, stated or inherited. `None` for a job that waits for a whole flow, and for its descendants.
    pub flow: Option<String>,
    pub rule: OnParentFailure,
    pub way: Way,
    pub after: Vec<Awaited>,
}

/// One entry of a job's `after`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Awaited {
    Job(String),
    /// All jobs of this flow.
    Flow(String),
}

impl Planned {
    /// `J CALL ID FLOW RULE WAY PARENTS`: `-` stands for none, and `~` before a parent says that it is a flow.
    fn line(&self) -> String {
        let parent = |parent: &Awaited| match parent {
            Awaited::Job(id) => id.clone(),
            Awaited::Flow(flow) => format!("~{flow}"),
        };
        let parents: Vec<_> = self.after.iter().map(parent).collect();
        let parents = if parents.is_empty() { "-".to_owned() } else { parents.join(",") };
        let flow = self.flow.as_deref().unwrap_or("-");
        let (rule, way) = (self.rule.as_str(), self.way.word());
        format!("J {} {} {flow} {rule} {way} {parents}", self.call, self.id)
    }

    /// Reads the words of such a line after the `J`.
    pub fn read(words: &[&str]) -> Option<Planned> {
        let [call, id, flow, rule, way, parents] = words else { return None };
        let some = |text: &str| (text != "-").then(|| text.to_owned());
        let parent = |text: &str| match text.strip_prefix('~') {
            Some(flow) => Awaited::Flow(flow.to_owned()),
            None => Awaited::Job(text.to_owned()),
        };
        Some(Planned {
            call: (*call).to_owned(),
            id: (*id).to_owned(),
            flow: some(flow),
            rule: OnParentFailure::ALL.into_iter().find(|known| known.as_str() == *rule)?,
            way: Way::read(way)?,
            after: some(parents)
                .map_or_else(Vec::new, |parents| parents.split(',').map(parent).collect()),
        })
    }
}

/// Draws one flow: the calls that push it, one after the other.
struct Drawing<'d> {
    dice: &'d mut Dice,
    flow: String,
    call: u32,
    jobs: Vec<Planned>,
}

impl Drawing<'_> {
    /// Adds a job that waits for these; its id.
    fn job(&mut self, after: &[&str]) -> String {
        self.after(after.iter().map(|id| Awaited::Job((*id).to_owned())).collect())
    }

    /// Adds a job that waits for the whole flow; its id.
    fn waiter(&mut self) -> String {
        self.after(vec![Awaited::Flow(self.flow.clone())])
    }

    fn after(&mut self, after: Vec<Awaited>) -> String {
        let id = format!("{}.{}", self.flow, self.jobs.len());
        // A job above the flow belongs to none, and its children inherit none.
        let member = after.iter().all(|parent| match parent {
            Awaited::Job(id) => self.jobs.iter().any(|job| job.id == *id && job.flow.is_some()),
            Awaited::Flow(_) => false,
        });
        let way = match self.dice.below(20) {
            0..3 => Way::Fails,
            3 => Way::FailsSecond,
            4..6 => Way::SucceedsSecond,
            _ => Way::Succeeds,
        };
        self.jobs.push(Planned {
            call: format!("{}/{}", self.flow, self.call),
            id: id.clone(),
            flow: member.then(|| self.flow.clone()),
            rule: OnParentFailure::ALL[self.dice.below(2) as usize],
            way,
            after,
        });
        id
    }

    fn draw(&mut self) {
        if self.dice.below(WIDE_EVERY) == 0 {
            let first = self.job(&[]);
            for _ in 0..WIDE {
                self.job(&[&first]);
            }
            self.waiter();
            return;
        }
        match self.dice.below(5) {
            // A chain.
            0 => {
                let mut last = self.job(&[]);
                for _ in 0..3 + self.dice.below(3) {
                    last = self.job(&[&last]);
                }
            }
            // One parent of many, which are the parents of one.
            1 => {
                let first = self.job(&[]);
                let many: Vec<_> = (0..4).map(|_| self.job(&[&first])).collect();
                self.job(&many.iter().map(String::as_str).collect::<Vec<_>>());
            }
            // Each of the second three waits for all of the first three.
            2 => {
                let first: Vec<_> = (0..3).map(|_| self.job(&[])).collect();
                let first: Vec<_> = first.iter().map(String::as_str).collect();
                for _ in 0..3 {
                    self.job(&first);
                }
            }
            // The whole flow is awaited, and the waiter has a child.
            3 => {
                let first = self.job(&[]);
                self.job(&[&first]);
                self.job(&[]);
                let waiter = self.waiter();
                self.job(&[&waiter]);
            }
            // The children come in a later push, when their parents run, or have ended, or have failed.
            _ => {
                let (a, b) = (self.job(&[]), self.job(&[]));
                self.call += 1;
                let (c, d) = (self.job(&[&a]), self.job(&[&b]));
                self.job(&[&c, &d]);
                let waiter = self.waiter();
                self.job(&[&waiter]);
            }
        }
    }
}

/// Pushes flows for as long as the process lives.
pub async fn push(client: &Client, notes: &Notes, name: &str) {
    let mut dice = Dice(unix_us() | 1);
    for n in 0_u64.. {
        let flow = format!("{name}-{n}");
        let mut drawing = Drawing { dice: &mut dice, flow, call: 0, jobs: Vec::new() };
        drawing.draw();
        let jobs = drawing.jobs;
        for call in jobs.chunk_by(|one, next| one.call == next.call) {
            let lines: Vec<_> = call.iter().map(Planned::line).collect();
            notes.note(&lines.join("\n"));
            let named = call.iter().map(|job| new_job(job, call, &mut dice)).collect();
            push_until_answered(client, notes, named).await;
            notes.note(&format!("C {}", call[0].call));
        }
        sleep(FLOW_EVERY).await;
    }
}

/// The job of a plan. A parent of the same call is named by its `ref` or by its id, one as often as the other.
fn new_job(planned: &Planned, call: &[Planned], dice: &mut Dice) -> NewJob {
    let reference = |id: &str| Ref::parse(&format!("ref-{id}")).expect("a ref");
    let mut after = Vec::new();
    for parent in &planned.after {
        let parent = match parent {
            Awaited::Flow(flow) => Parent::Flow(FlowName::parse(flow).expect("a name")),
            Awaited::Job(id) if call.iter().any(|job| job.id == *id) && dice.below(2) == 0 => {
                Parent::Item(reference(id))
            }
            Awaited::Job(id) => Parent::Job(JobRef::parse(id).expect("an id")),
        };
        after.push(After { parent, gone_is_done: false });
    }
    // A job with a parent inherits the flow of that parent.
    let flow = planned.flow.as_deref().filter(|_| planned.after.is_empty());
    let limit = LimitName::parse(CAPS[0].0).expect("a name");
    let need = (dice.below(10) == 0).then_some(Need::Limit { limit, weight: 1, cost: 1 });
    let takes = if call.len() > WIDE { WIDE_MS } else { 20 + dice.below(LONGER_MS) };
    NewJob {
        id: Some(JobId::parse(&planned.id).expect("an id")),
        kind: format!("{takes}-{}", planned.way.word()),
        needs: Some(need.into_iter().collect()),
        retry: Some(Retry {
            max_attempts: 2,
            // A holder is killed more often than three times in a row here.
            max_lost: 0,
            max_snoozes: None,
            backoff: Backoff::Fixed { base: RETRIED_IN, jitter: false },
        }),
        after,
        on_parent_failure: planned.rule,
        reference: Some(reference(&planned.id)),
        flow: flow.map(|flow| FlowName::parse(flow).expect("a name")),
        ..NewJob::new(QueueName::parse(FLOWS).expect("a name"))
    }
}
