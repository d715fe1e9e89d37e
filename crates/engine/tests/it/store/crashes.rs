//! A crash loses no answered change.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tenure_core::flow::{After, Parent};
use tenure_core::gauge::{Gauge, GaugeAddress, GaugeSource, OnStale};
use tenure_core::job::{Need, OnConflict, Unique, Until, When};
use tenure_core::lease::{Ending, Later, LeaseView};
use tenure_core::names::{FlowName, LimitName, Namespace, PoolName, ResourceId, UniqueKey};
use tenure_core::requests::*;
use tenure_core::settings::{LimitSettings, NewResource, Rate};
use tenure_core::time::Span;

use crate::store::calls::*;

#[derive(Clone, Debug)]
pub enum Step {
    Push { n: u8, key: Option<u8>, delay: bool, needs: u8 },
    Child { n: u8, of: u8, flow: Option<u8> },
    Take(u8),
    Hold(u8),
    Settle { which: u8, how: u8 },
    Cancel(u8),
    Retry(u8),
    Delete(u8),
    Patch(u8),
    Pass(u8),
    Limit(u8),
    Add(u8),
    Pause(u8),
}

pub fn step() -> impl Strategy<Value = Step> {
    let n = any::<u8>();
    let key = proptest::option::weighted(0.2, 0u8..3);
    prop_oneof![
        6 => (n, key, any::<bool>(), n).prop_map(|(n, key, delay, needs)| {
            Step::Push { n, key, delay, needs }
        }),
        2 => (n, n, proptest::option::of(0u8..3)).prop_map(|(n, of, flow)| Step::Child { n, of, flow }),
        5 => n.prop_map(Step::Take),
        1 => n.prop_map(Step::Hold),
        6 => (n, n).prop_map(|(which, how)| Step::Settle { which, how }),
        1 => n.prop_map(Step::Cancel),
        1 => n.prop_map(Step::Retry),
        1 => n.prop_map(Step::Delete),
        1 => n.prop_map(Step::Patch),
        2 => (1u8..40).prop_map(Step::Pass),
        1 => n.prop_map(Step::Limit),
        1 => n.prop_map(Step::Add),
        1 => n.prop_map(Step::Pause),
    ]
}

fn site(n: u8) -> LimitName {
    LimitName::parse(&format!("site:{}", n % 3)).unwrap()
}
fn pool() -> PoolName {
    PoolName::parse("p").unwrap()
}
fn resource(n: u8) -> NewResource {
    let id = ResourceId::parse(&format!("r{}", n % 4)).unwrap();
    NewResource { id, data: text(&format!("secret {n}")), tags: vec![], slots: 1 }
}
fn needs_of(n: u8) -> Vec<Need> {
    let mut needs = Vec::new();
    if n & 1 != 0 {
        needs.push(Need::Limit { limit: site(n >> 4), weight: 1, cost: 1 });
    }
    if n & 2 != 0 {
        needs.push(Need::Pool { pool: pool(), tag: None, prefer: None, id: None, count: 1 });
    }
    needs
}
fn id_of(n: u8) -> tenure_core::names::JobRef {
    tenure_core::names::JobRef::parse(&format!("j{}", n % 40)).unwrap()
}
fn ending_of(how: u8) -> Ending {
    match how % 6 {
        0 | 1 => Ending::Succeeded { result: Some(text("r")) },
        2 => Ending::Failed { error: "e".to_owned(), retry_in: None, last: false },
        3 => Ending::Failed { error: "e".to_owned(), retry_in: None, last: true },
        4 => Ending::Snoozed { later: Later::For(Span::from_s(3)), reset: false },
        _ => Ending::Released,
    }
}

/// One history of a namespace, with refusals.
pub struct Story {
    namespace: Namespace,
    leases: Vec<LeaseView>,
}

impl Story {
    /// Begins with a cap and two resources.
    pub async fn begin(here: &Here, namespace: Namespace) -> Self {
        let story = Story { namespace, leases: Vec::new() };
        let settings = LimitSettings { concurrency: Some(2), ..LimitSettings::default() };
        let all = LimitName::parse("site:*").unwrap();
        let put = PutLimit { limit: all, settings, gauge: None };
        run_in(&here.engine, &story.namespace, put).await.unwrap();
        let resources = vec![resource(0), resource(1)];
        let add = AddResources { pool: pool(), resources };
        run_in(&here.engine, &story.namespace, add).await.unwrap();
        story
    }

    pub async fn step(&mut self, here: &Here, step: &Step) {
        let (engine, namespace) = (&here.engine, &self.namespace.clone());
        match step {
            Step::Push { n, key, delay, needs } => {
                let mut new = job(&format!("j{}", n % 40));
                new.unique = key.map(|key| Unique {
                    key: UniqueKey::parse(&format!("k{key}")).unwrap(),
                    until: if needs & 8 != 0 { Until::Start } else { Until::End },
                    hold: (needs & 16 != 0).then(|| Span::from_s(10)),
                    on_conflict: OnConflict::Replace,
                    within: None,
                });
                new.needs = Some(needs_of(*needs));
                new.payload = text(&format!("payload {n}"));
                new.retain = (n & 64 != 0).then(|| Span::from_s(5));
                if *delay {
                    new.when = When::In(Span::from_s(u64::from(*n % 10)));
                }
                let _ =
                    run_in(engine, namespace, Push { jobs: vec![new], answer: PushAnswer::Whole })
                        .await;
            }
            Step::Child { n, of, flow } => {
                let mut new = job(&format!("j{}", n % 40));
                let parent = Parent::Job(id_of(*of));
                new.after = vec![After { parent, gone_is_done: true }];
                new.flow = flow.map(|flow| FlowName::parse(&format!("f{flow}")).unwrap());
                new.labels = [("n".to_owned(), n.to_string())].into();
                let _ =
                    run_in(engine, namespace, Push { jobs: vec![new], answer: PushAnswer::Ids })
                        .await;
            }
            Step::Take(n) => {
                let call = ask(1 + usize::from(n % 4), 0);
                self.leases.extend(run_in(engine, namespace, call).await.unwrap().leases);
            }
            Step::Hold(n) => {
                let call = Lease::needs(vec![lock(&format!("l{}", n % 2))]);
                self.leases.extend(run_in(engine, namespace, call).await.unwrap().leases);
            }
            Step::Settle { which, how } => {
                if !self.leases.is_empty() {
                    let at = usize::from(*which) % self.leases.len();
                    let lease = self.leases.swap_remove(at);
                    let item = ending(&lease, ending_of(*how));
                    let _ = run_in(engine, namespace, Settle::of(vec![item])).await;
                }
            }
            Step::Cancel(n) => drop(run_in(engine, namespace, CancelJob { job: id_of(*n) }).await),
            Step::Retry(n) => {
                drop(
                    run_in(engine, namespace, RetryJob { job: id_of(*n), finished_at: None }).await,
                );
            }
            Step::Delete(n) => drop(run_in(engine, namespace, DeleteJob { job: id_of(*n) }).await),
            Step::Patch(n) => {
                let patch = PatchJob {
                    priority: Patch::Set((n % 7) as i8),
                    payload: Patch::Set(text("patched")),
                    ..PatchJob::new(id_of(*n))
                };
                drop(run_in(engine, namespace, patch).await);
            }
            Step::Pass(s) => here.pass(u64::from(*s)).await,
            Step::Limit(n) => {
                let rate = Rate { count: 1, per: Span::from_s(2), burst: 2 };
                let settings = LimitSettings {
                    concurrency: Some(u32::from(n % 3)),
                    rate: (n & 8 != 0).then_some(rate),
                    gap: (n & 16 != 0).then(|| Span::from_s(4)),
                    quarantine: Span::from_s(u64::from(n & 32) / 5),
                };
                let gauge = (n & 64 != 0).then(|| Box::new(gauge(*n)));
                run_in(engine, namespace, PutLimit { limit: site(*n), settings, gauge })
                    .await
                    .unwrap();
            }
            Step::Add(n) => {
                let resources = vec![resource(*n)];
                run_in(engine, namespace, AddResources { pool: pool(), resources }).await.unwrap();
            }
            Step::Pause(n) => {
                let until = (n & 1 != 0).then(|| Later::For(Span::from_s(2)));
                run_in(engine, namespace, PauseQueue { queue: queue(), until }).await.unwrap();
                if n & 2 != 0 {
                    run_in(engine, namespace, ResumeQueue { queue: queue() }).await.unwrap();
                }
            }
        }
    }
}

/// A probe that nobody reads: its permits rest, and attempts fail.
fn gauge(n: u8) -> Gauge {
    let scrapyd = GaugeAddress::parse("http://host").unwrap();
    let (every, lag, stale) = (Span::from_s(1), Span::from_s(u64::from(n % 4)), Span::from_s(5));
    let source = GaugeSource::Scrapyd { scrapyd, project: None };
    Gauge { source, every, lag, stale, on_stale: OnStale::Keep }
}

async fn play(steps: &[Step], crash_every: usize) -> Result<(), String> {
    let mut here = Here::new();
    let mut story = Story::begin(&here, Namespace::main()).await;
    for (n, step) in steps.iter().enumerate() {
        story.step(&here, step).await;
        if n % crash_every != crash_every - 1 {
            continue;
        }
        here.engine.settled().await;
        let before = here.engine.durable().await;
        here.engine.crash();
        here.reopen();
        let after = here.engine.durable().await;
        if before != after {
            let differs = |a: &[String], b: &[String]| -> Vec<String> {
                a.iter().filter(|line| !b.contains(line)).cloned().collect()
            };
            let (lost, new) = (differs(&before, &after), differs(&after, &before));
            return Err(format!("after step {n}\nlost: {lost:#?}\nnew: {new:#?}"));
        }
        let audit = run(&here.engine, Audit::default()).await.unwrap();
        if !audit.ok {
            return Err(format!("after step {n}: {:?}", audit.faults));
        }
    }
    Ok(())
}

#[test]
fn a_crash_at_any_moment_loses_nothing_that_was_answered() {
    let cases = std::env::var("TENURE_HISTORIES").ok().and_then(|n| n.parse().ok()).unwrap_or(24);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let history = (proptest::collection::vec(step(), 1..150), 1usize..25);
    let played = runner.run(&history, |(steps, crash_every)| {
        block(play(&steps, crash_every)).map_err(TestCaseError::fail)
    });
    played.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn what_was_in_flight_is_there_or_not_but_whole() {
    block(async {
        for round in 0..20u64 {
            let mut here = Here::new();
            let engine = std::sync::Arc::new(std::mem::replace(
                &mut here.engine,
                tenure_engine::Embedded::open(tenure_engine::Options::new(
                    tenure_engine::Location::Memory,
                ))
                .unwrap(),
            ));
            let mut calls = Vec::new();
            for call in 0..32 {
                let engine = engine.clone();
                calls.push(tokio::spawn(async move {
                    let jobs = (0..10).map(|n| job(&format!("{call}-{n}"))).collect();
                    run(&engine, Push { jobs, answer: PushAnswer::Ids }).await.is_ok()
                }));
            }
            tokio::time::sleep(std::time::Duration::from_micros(round * 100)).await;
            engine.crash();
            let mut answered = Vec::new();
            for (n, call) in calls.into_iter().enumerate() {
                if call.await.unwrap() {
                    answered.push(n);
                }
            }
            drop(engine);
            here.reopen();
            let there: Vec<String> = take(&here.engine, 1_000)
                .await
                .iter()
                .map(|l| l.job.as_ref().unwrap().id.to_string())
                .collect();
            assert_eq!(there.len() % 10, 0, "a push is whole");
            for n in answered {
                assert!(there.contains(&format!("{n}-9")), "what was answered is there");
            }
        }
    });
}
