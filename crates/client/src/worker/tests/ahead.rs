//! Jobs that are leased ahead of free slots: how many, for how long, and how they end.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tenure_core::lease::{Ending, Extended, ExtendedLease, LeaseView, LeasedResource};
use tenure_core::names::{LimitName, PoolName, ResourceId};
use tenure_core::requests::{Ask, Lease, Reply};
use tenure_core::secret::Json;
use tenure_core::time::Moment;
use tenure_engine_api::CallError;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::*;
use crate::keeper::lock;
use tenure_testkit::fake::{Fake, Says, granted, is_extend, is_settle, well};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn most(lease: &Lease) -> usize {
    match lease.ask {
        Ask::Jobs { max, .. } => max,
        Ask::Needs(_) => unreachable!("a worker asks for jobs"),
    }
}

fn after(call: Duration, says: Says) -> Says {
    let Says::Now(answer) = says else { unreachable!() };
    Says::After(call, answer)
}

/// Waiting jobs: every lease call takes `call`, and is granted as many of them as it asks for.
struct Backlog {
    next: usize,
    last: usize,
    call: Duration,
}

impl Backlog {
    fn of(jobs: usize, call: Duration) -> Self {
        Backlog { next: 1, last: jobs, call }
    }
    fn take(&mut self, most: usize) -> RangeInclusive<usize> {
        let first = self.next;
        self.next = (self.next + most).min(self.last + 1);
        first..=self.next - 1
    }
    fn answer(&mut self, call: &Request) -> Says {
        match call {
            Request::Lease(lease) if self.next <= self.last => {
                after(self.call, granted(self.take(most(lease))))
            }
            call => well(call),
        }
    }
}

/// The jobs that handlers have begun.
#[derive(Default)]
struct Seen {
    began: Mutex<Vec<usize>>,
    running: AtomicUsize,
    most: AtomicUsize,
}

impl Seen {
    fn begin(&self, job: &Job) -> usize {
        let number = job.payload().unwrap();
        lock(&self.began).push(number);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        number
    }
    fn end(&self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
    }
    fn began(&self) -> Vec<usize> {
        lock(&self.began).clone()
    }
}

/// The leases that were given back, in any order.
fn given_back(fake: &Fake) -> BTreeSet<String> {
    let all = ends(&fake.settled()).into_iter();
    all.filter(|(_, outcome)| *outcome == "released").map(|(lease, _)| lease).collect()
}

/// Checks each millisecond; panics after a minute.
async fn until(there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < s(60), "what was waited for did not come");
        sleep(ms(1)).await;
    }
}

/// Handlers of the first `fast` jobs end at once, those of all others when they are notified.
fn handler(
    seen: &Arc<Seen>,
    fast: usize,
    go: &Arc<Notify>,
) -> impl Fn(Job) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync + 'static {
    let (seen, go) = (seen.clone(), go.clone());
    move |job| {
        let (seen, go) = (seen.clone(), go.clone());
        Box::pin(async move {
            if seen.begin(&job) > fast {
                go.notified().await;
            }
            seen.end();
        })
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_backlog_as_many_are_held_ahead_as_end_during_a_call() {
    for (run, held_at_most, ahead) in [(ms(0), 20, true), (ms(2), 8, true), (ms(500), 4, false)] {
        let mut backlog = Backlog::of(80, ms(2));
        let seen = Arc::new(Seen::default());
        let (held, most_held) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (granting, settling) = (held.clone(), held.clone());
        let peak = most_held.clone();
        let fake = Fake::new(move |call, _| {
            match call {
                Request::Lease(lease) => {
                    let left = backlog.last + 1 - backlog.next;
                    let held = granting.fetch_add(most(lease).min(left), Ordering::SeqCst);
                    peak.fetch_max(held + most(lease).min(left), Ordering::SeqCst);
                }
                Request::Settle(settle) => {
                    settling.fetch_sub(settle.settle.len(), Ordering::SeqCst);
                }
                _ => {}
            }
            backlog.answer(call)
        });
        let inside = seen.clone();
        let worked = worker(&fake)
            .concurrency(4)
            .max_jobs(80)
            .run(move |job: Job| {
                let seen = inside.clone();
                async move {
                    seen.begin(&job);
                    sleep(run).await;
                    seen.end();
                }
            })
            .await;
        assert_eq!(worked, Ok(Worked { jobs: 80 }), "{run:?}");
        let mut began = seen.began();
        if run.is_zero() {
            // The first slot goes on alone until 200 us are over: never, on a clock that stands still.
            began.sort_unstable();
        }
        assert_eq!(began, (1..=80).collect::<Vec<_>>(), "{run:?}: in their order");
        assert!(seen.most.load(Ordering::SeqCst) <= 4, "{run:?}: no more at once than slots");
        assert_eq!(fake.settled().len(), 80);
        assert!(given_back(&fake).is_empty(), "{run:?}");
        let most_held = most_held.load(Ordering::SeqCst);
        assert!(most_held <= held_at_most, "{run:?}: {most_held} were held");
        assert_eq!(most_held > 4, ahead, "{run:?}: {most_held} were held");
    }
}

#[tokio::test(start_paused = true)]
async fn one_slot_never_holds_two_jobs() {
    let mut backlog = Backlog::of(20, ms(2));
    let fake = Fake::new(move |call, _| backlog.answer(call));
    worker(&fake).max_jobs(20).run(|_| async {}).await.unwrap();
    let kinds: Vec<bool> = fake.calls().iter().map(|(_, call)| is_settle(call)).collect();
    let turns: Vec<bool> = (0..40).map(|n| n % 2 == 1).collect();
    assert_eq!(kinds, turns, "a lease, its settle, the next lease");
    assert!(fake.leases().iter().all(|(_, lease)| most(lease) == 1));
}

/// A worker that has learned that its handlers are fast, and holds jobs ahead of some that are not. Its calls take 2
/// ms, it has 4 slots, and ends by itself after `jobs`.
async fn with_jobs_ahead(
    fake: &Arc<Fake>,
    seen: &Arc<Seen>,
    go: &Arc<Notify>,
    set: impl FnOnce(Worker) -> Worker,
) -> tokio::task::JoinHandle<Result<Worked, CallError>> {
    let work = set(worker(fake).concurrency(4));
    let run = tokio::spawn(work.run(handler(seen, 40, go)));
    // All slots have a slow one.
    until(|| seen.began().len() >= 44).await;
    run
}

#[tokio::test(start_paused = true)]
async fn a_job_that_waited_ahead_for_20_ms_is_released_uncounted() {
    let mut backlog = Backlog::of(60, ms(2));
    // Jobs that were given back can be granted again.
    let mut again: Vec<usize> = Vec::new();
    let fake = Fake::new(move |call, _| {
        if let Request::Settle(settle) = call {
            let back = settle.settle.iter().filter(|item| item.ending == Ending::Released);
            again.extend(back.map(|item| item.lease[1..].parse::<usize>().unwrap()));
        }
        match call {
            Request::Lease(lease) if !again.is_empty() => {
                let many = most(lease).min(again.len());
                after(ms(2), granted(again.drain(..many)))
            }
            call => backlog.answer(call),
        }
    });
    let (seen, go) = (Arc::new(Seen::default()), Arc::new(Notify::new()));
    let run = with_jobs_ahead(&fake, &seen, &go, |work| work.max_jobs(60)).await;
    let begun = Instant::now();
    until(|| !given_back(&fake).is_empty()).await;
    assert!(begun.elapsed() <= ms(24), "{:?}", begun.elapsed());
    sleep(s(1)).await;
    let asked = fake.leases().len();
    sleep(s(100)).await;
    assert_eq!(fake.leases().len(), asked, "no slot is free and nothing is ahead");
    assert_eq!(seen.began().len(), 44, "nothing that was given back has begun");
    let back = given_back(&fake);
    assert!(!back.is_empty() && back.len() <= 16, "{back:?}");
    for _ in 0..30 {
        go.notify_waiters();
        sleep(s(1)).await;
    }
    assert_eq!(run.await.unwrap(), Ok(Worked { jobs: 60 }));
    let began: BTreeSet<usize> = seen.began().into_iter().collect();
    assert_eq!((began.len(), seen.began().len()), (60, 60), "each ran once");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_never_began_has_spent_nothing_of_its_rates() {
    let mut backlog = Backlog::of(60, ms(2));
    let fake = Fake::new(move |call, _| {
        let Says::After(call, Ok(Reply::Lease(mut leased))) = backlog.answer(call) else {
            return well(call);
        };
        for lease in &mut leased.leases {
            lease.limits = vec![LimitName::parse("api").unwrap()];
        }
        Says::After(call, Ok(Reply::Lease(leased)))
    });
    let (seen, go) = (Arc::new(Seen::default()), Arc::new(Notify::new()));
    let run = with_jobs_ahead(&fake, &seen, &go, |work| work).await;
    until(|| !given_back(&fake).is_empty()).await;
    for item in fake.settled() {
        let spent: Vec<_> = item.limits.iter().map(|verdict| verdict.spent).collect();
        match item.ending {
            Ending::Released => assert_eq!(spent, [Some(0)]),
            _ => assert_eq!(spent, []),
        }
    }
    run.abort();
}

#[tokio::test(start_paused = true)]
async fn a_drain_gives_back_what_waits_ahead_and_finishes_what_runs() {
    let mut backlog = Backlog::of(60, ms(2));
    let fake = Fake::new(move |call, _| backlog.answer(call));
    let (seen, go) = (Arc::new(Seen::default()), Arc::new(Notify::new()));
    let mut stopper = None;
    let run = with_jobs_ahead(&fake, &seen, &go, |work| {
        stopper = Some(work.stopper());
        work
    })
    .await;
    // The answer to the call for jobs ahead is here.
    sleep(ms(5)).await;
    stopper.unwrap().drain();
    until(|| !given_back(&fake).is_empty()).await;
    assert_eq!(seen.began().len(), 44);
    go.notify_waiters();
    assert_eq!(run.await.unwrap(), Ok(Worked { jobs: 44 }));
    assert_eq!(seen.began().len(), 44, "nothing began after the stop");
    let settled: BTreeSet<_> = fake.settled().into_iter().map(|item| item.lease).collect();
    let all = fake.settled().len();
    assert_eq!(all, settled.len(), "each once");
    assert_eq!(all - given_back(&fake).len(), 44);
}

#[tokio::test(start_paused = true)]
async fn a_job_lost_or_cancelled_while_it_waits_ahead_does_not_begin() {
    let mut backlog = Backlog::of(44, ms(2));
    let (seen, go) = (Arc::new(Seen::default()), Arc::new(Notify::new()));
    // Its heartbeat is due 200 ms after it was asked for, and the call takes 190 of them.
    let mut late = vec![46, 45];
    let fake = Fake::new(move |call, _| match call {
        Request::Lease(_) if backlog.next > backlog.last && !late.is_empty() => {
            after(ms(190), granted(late.drain(..).rev()))
        }
        Request::Extend(extend) => {
            let is = |lease: &str| extend.leases.iter().any(|item| item.lease == lease);
            let named = |lease: &str| is(lease).then(|| lease.to_owned()).into_iter().collect();
            let extended = extend.leases.iter().filter(|item| item.lease != "l45");
            Says::Now(Ok(Reply::Extend(Extended {
                extended: extended
                    .map(|item| ExtendedLease {
                        lease: item.lease.clone(),
                        expires_at: Moment::MAX,
                    })
                    .collect(),
                lost: named("l45"),
                cancel: named("l46"),
                ..Extended::default()
            })))
        }
        call => backlog.answer(call),
    });
    let stopped = Arc::new(Mutex::new(Vec::new()));
    let noted = stopped.clone();
    let run = with_jobs_ahead(&fake, &seen, &go, |work| {
        work.ttl(Span::from_s(1)).max_jobs(46).observe(move |event| {
            if let Event::Stopped { job, stop } = event {
                lock(&noted).push((job.to_string(), *stop));
            }
        })
    })
    .await;
    fake.until(is_extend, 1).await;
    // Its answer is read, and the slots are free before the two have waited for 20 ms.
    sleep(ms(1)).await;
    go.notify_waiters();
    assert_eq!(run.await.unwrap(), Ok(Worked { jobs: 46 }));
    assert_eq!(seen.began().len(), 44);
    lock(&stopped).sort_by(|a, b| a.0.cmp(&b.0));
    let want = [("j45".to_owned(), Stop::Lost), ("j46".to_owned(), Stop::Cancelled)];
    assert_eq!(*lock(&stopped), want);
    assert_eq!(given_back(&fake), BTreeSet::from(["l46".to_owned()]));
    assert!(fake.settled().iter().all(|item| item.lease != "l45"), "the engine has ended it");
}

#[tokio::test(start_paused = true)]
async fn a_call_for_jobs_ahead_alone_does_not_wait() {
    // Exactly as many as fill all slots with slow jobs; no job is left to be leased ahead.
    let mut backlog = Backlog::of(44, ms(2));
    let fake = Fake::new(move |call, _| backlog.answer(call));
    let (seen, go) = (Arc::new(Seen::default()), Arc::new(Notify::new()));
    let run = with_jobs_ahead(&fake, &seen, &go, |work| work).await;
    sleep(s(1)).await;
    let calls: Vec<(usize, Span)> =
        fake.leases().iter().map(|(_, lease)| (most(lease), lease.wait)).collect();
    assert_eq!(calls[0], (4, Span::from_s(5)));
    let mut left = 44;
    let empty = calls.iter().filter(|(most, _)| {
        let none = left == 0;
        left -= left.min(*most);
        none
    });
    let empty: Vec<_> = empty.collect();
    assert_eq!(empty.len(), 1, "one look, and none after it was answered with nothing: {calls:?}");
    assert_eq!(empty[0].1, Span::ZERO);
    run.abort();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_ahead_where_it_would_break_a_promise() {
    let resource = |lease: &mut LeaseView| {
        lease.resources.push(LeasedResource {
            pool: PoolName::parse("accounts").unwrap(),
            id: ResourceId::parse("a").unwrap(),
            data: Json::null(),
            tags: Vec::new(),
        });
    };
    let of = |case: &str| match case {
        // A later queue is served only while the earlier ones have no jobs.
        "strict" => (queues(&["a", "b"]), Order::Strict, false),
        // A resource must not lie idle.
        "scarce" => (queues(&["a"]), Order::Turning, true),
        "strict, one queue" => (queues(&["a"]), Order::Strict, false),
        _ => (queues(&["a", "b"]), Order::Turning, false),
    };
    for (case, ahead) in
        [("strict", false), ("scarce", false), ("strict, one queue", true), ("turning", true)]
    {
        let (queues, order, scarce) = of(case);
        let mut backlog = Backlog::of(40, ms(2));
        let fake = Fake::new(move |call, _| match backlog.answer(call) {
            Says::After(call, Ok(Reply::Lease(mut leased))) if scarce => {
                leased.leases.iter_mut().for_each(resource);
                Says::After(call, Ok(Reply::Lease(leased)))
            }
            says => says,
        });
        let work = Client::on_this_runtime(fake.clone()).worker(queues).order(order);
        work.concurrency(4).max_jobs(40).run(|_| async {}).await.unwrap();
        // A call without a wait asks only for jobs ahead.
        let looks = fake.leases().iter().filter(|(_, lease)| lease.wait == Span::ZERO).count();
        assert_eq!(looks > 0, ahead, "{case}: {looks}");
    }
}

#[tokio::test(start_paused = true)]
async fn until_empty_ends_when_what_was_ahead_has_run() {
    let mut backlog = Backlog::of(50, ms(2));
    let fake = Fake::new(move |call, _| backlog.answer(call));
    let worked = worker(&fake).concurrency(4).until_empty().run(|_| async {}).await;
    assert_eq!(worked, Ok(Worked { jobs: 50 }));
    assert_eq!(fake.settled().len(), 50);
    assert!(given_back(&fake).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_dropped_sends_what_was_said() {
    let fake = Fake::new(|call, before| match call {
        Request::Lease(_) if before == 0 => granted(1..=2),
        call => well(call),
    });
    let ended = Arc::new(Notify::new());
    let tell = ended.clone();
    let run = tokio::spawn(worker(&fake).concurrency(3).run(move |job: Job| {
        let tell = tell.clone();
        async move {
            if job.lease_id() == "l2" {
                std::future::pending::<()>().await;
            }
            tell.notify_one();
        }
    }));
    ended.notified().await;
    run.abort();
    fake.until(is_settle, 1).await;
    assert_eq!(ends(&fake.settled()), [("l1".to_owned(), "succeeded")]);
}
