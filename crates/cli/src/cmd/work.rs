//! `tenure work`: takes jobs from queues and runs CMD for each (see `work_job`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tenure::ids::this_process;
use tenure::keeper::Keeper;
use tenure_core::bounds::{ITEMS_MAX, LIST_MAX};
use tenure_core::lease::{LeaseView, Leased};
use tenure_core::names::QueueName;
use tenure_core::requests::{GetQueue, JobFilter, Lease, ListJobs, ListQueues, Page};
use tenure_core::time::Span;
use tenure_engine::CallError;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::args::leases::WorkArgs;
use crate::child::signals::Signals;
use crate::cmd::asking::{Asking, slice};
use crate::cmd::work_job::{self, Phase, Shop};
use crate::exit::{Failure, NOT_STARTED, by_signal};
use crate::output::tell;
use crate::store::Store;

/// Who waits for longer than this at a queue that never had a job is told so.
const STRANGE: Duration = Duration::from_secs(5);
/// `--until-empty` looks so often whether it is.
const EMPTY_SLICE: Span = Span::from_ms(500);

/// What is to be done, apart from where.
pub struct Plan {
    /// In order.
    pub queues: Vec<QueueName>,
    /// Jobs at once.
    pub concurrency: usize,
    /// Always in the order given.
    pub strict: bool,
    /// End when nothing is ready or blocked.
    pub until_empty: bool,
    /// End after so many.
    pub max_jobs: u64,
    /// How long jobs may finish.
    pub drain_timeout: Duration,
}

/// Works until it is told to end.
pub async fn run(store: &Store, args: WorkArgs) -> Result<(), Failure> {
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let concurrency = args.concurrency.unwrap_or_else(cores);
    let plan = Plan {
        queues: args.queues,
        concurrency: usize::try_from(concurrency).unwrap_or(ITEMS_MAX).clamp(1, ITEMS_MAX),
        strict: args.strict,
        until_empty: args.until_empty,
        max_jobs: args.max_jobs.unwrap_or(u64::MAX),
        drain_timeout: args.drain_timeout.std(),
    };
    let mut signals = Signals::listen()?;
    let keeper = keeper(store)?;
    let (phase, watched) = watch::channel(Phase::Working);
    let shop = Arc::new(Shop {
        store: store.clone(),
        keeper,
        command: args.command,
        ttl: args.ttl,
        phase: watched,
    });
    let mut work = Work::new(plan, shop, phase);
    work.run(async || signals.next().await).await
}

/// Heartbeats on a thread of their own.
pub fn keeper(store: &Store) -> Result<Keeper, Failure> {
    Keeper::start(store.engine(), store.namespace().clone())
        .map_err(|error| Failure::new(NOT_STARTED, format!("cannot start a thread: {error}")))
}

type Asked = (Instant, Span, Result<Leased, CallError>);
type Call = Pin<Box<dyn Future<Output = Asked> + Send>>;

/// The loop: at most one lease call waits, for as many jobs as there are free places.
pub struct Work {
    plan: Plan,
    shop: Arc<Shop>,
    phase: watch::Sender<Phase>,
    running: JoinSet<Result<(), Failure>>,
    asking: Asking,
    call: Option<Call>,
    /// Hold back so long before the next call.
    pause: Duration,
    taken: u64,
    /// Nothing was to be had, and nothing has ended since.
    empty: bool,
    /// What ended the work before its time.
    failure: Option<Failure>,
    /// Until then what runs may finish.
    drain_until: Option<tokio::time::Instant>,
    /// Signals so far.
    signals: u32,
}

impl Work {
    /// Nothing is taken yet.
    pub fn new(plan: Plan, shop: Arc<Shop>, phase: watch::Sender<Phase>) -> Self {
        Work {
            plan,
            shop,
            phase,
            running: JoinSet::new(),
            asking: Asking::default(),
            call: None,
            pause: Duration::ZERO,
            taken: 0,
            empty: false,
            failure: None,
            drain_until: None,
            signals: 0,
        }
    }

    /// To the end.
    pub async fn run(
        &mut self,
        mut next_signal: impl AsyncFnMut() -> Signal,
    ) -> Result<(), Failure> {
        let strange = tokio::time::sleep(STRANGE);
        tokio::pin!(strange);
        let mut told = false;
        let mut second: Option<Signal> = None;
        loop {
            self.ask();
            if self.call.is_none() && self.running.is_empty() {
                break;
            }
            let call = async {
                match &mut self.call {
                    Some(call) => call.await,
                    None => std::future::pending().await,
                }
            };
            let drained = async {
                match self.drain_until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // What was granted in the moment of a signal is taken and not dropped.
                biased;
                asked = call => {
                    self.call = None;
                    self.heard(asked).await;
                }
                Some(ended) = self.running.join_next() => self.ended(ended),
                signal = next_signal() => {
                    self.signals += 1;
                    if self.signals > 1 {
                        second = Some(signal);
                    }
                    self.stop();
                }
                () = drained => {
                    self.drain_until = None;
                    tell("the drain timeout is over: what still runs is given back");
                    self.raise(Phase::GivingBack);
                }
                () = &mut strange, if !told => {
                    told = true;
                    if self.taken == 0 && self.failure.is_none() {
                        tokio::spawn(tell_strange(self.shop.store.clone(), self.plan.queues.clone()));
                    }
                }
            }
        }
        match (self.failure.take(), second) {
            (Some(failure), _) => Err(failure),
            (None, Some(signal)) => Err(Failure::silent(by_signal(signal as i32))),
            (None, None) => Ok(()),
        }
    }

    fn raise(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let more = *phase < to;
            *phase = to.max(*phase);
            more
        });
    }

    /// A signal: takes no more; a second one: now.
    fn stop(&mut self) {
        // Dropping the call tells the store that nobody would read its grant.
        self.call = None;
        if self.signals == 1 {
            if !self.running.is_empty() {
                tell(&format!("no more jobs are taken, {} still run", self.running.len()));
            }
            self.drain();
        } else {
            self.drain_until = None;
            self.raise(Phase::Now);
        }
    }

    fn drain(&mut self) {
        self.raise(Phase::Draining);
        self.drain_until = Some(tokio::time::Instant::now() + self.plan.drain_timeout);
    }

    /// Asks, if there is a place for a job and a reason to.
    fn ask(&mut self) {
        let left = usize::try_from(self.plan.max_jobs - self.taken).unwrap_or(ITEMS_MAX);
        let free = self.plan.concurrency.saturating_sub(self.running.len()).min(left);
        let working = *self.phase.borrow() == Phase::Working;
        if self.call.is_some() || !working || free == 0 || (self.empty && self.running.is_empty()) {
            return;
        }
        let mut lease = Lease::jobs(self.plan.queues.clone(), free);
        lease.ttl = self.shop.ttl;
        lease.worker = this_process().clone();
        lease.wait = match (self.plan.until_empty, self.running.is_empty() && self.pause.is_zero())
        {
            (false, _) => slice(self.shop.ttl),
            (true, true) => Span::ZERO,
            (true, false) => slice(self.shop.ttl).min(EMPTY_SLICE),
        };
        if !self.plan.strict {
            self.plan.queues.rotate_left(1);
        }
        let store = self.shop.store.clone();
        let pause = std::mem::take(&mut self.pause);
        self.call = Some(Box::pin(async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let (asked, wait) = (Instant::now(), lease.wait);
            (asked, wait, store.run(lease).await)
        }));
    }

    async fn heard(&mut self, (asked, wait, answer): Asked) {
        match answer {
            Ok(leased) => {
                let granted = !leased.leases.is_empty();
                self.pause = self.asking.answered(granted, wait, asked.elapsed());
                self.start(leased.leases, asked);
                if !granted && self.plan.until_empty && self.running.is_empty() {
                    self.look_whether_empty().await;
                }
            }
            Err(error) => match self.asking.failed(error) {
                Ok(pause) => self.pause = pause,
                Err(error) => self.fail(error.into()),
            },
        }
    }

    fn start(&mut self, leases: Vec<LeaseView>, asked: Instant) {
        for lease in leases {
            self.taken += 1;
            self.running.spawn(work_job::run(self.shop.clone(), lease, asked));
        }
    }

    /// Nothing was to be had and nothing runs here. Jobs that wait for a limit are no reason to end.
    async fn look_whether_empty(&mut self) {
        for queue in self.plan.queues.clone() {
            match self.shop.store.run(GetQueue { queue }).await {
                Ok(view) if !view.paused && view.counts.ready + view.counts.blocked > 0 => {
                    self.pause = EMPTY_SLICE.std() / 5;
                    return;
                }
                // One that is not there is empty.
                Ok(_) | Err(CallError::Refused(_)) => {}
                Err(error) => match self.asking.failed(error) {
                    Ok(pause) => {
                        self.pause = pause;
                        return;
                    }
                    Err(error) => return self.fail(error.into()),
                },
            }
        }
        self.empty = true;
    }

    fn ended(&mut self, ended: Result<Result<(), Failure>, JoinError>) {
        self.empty = false;
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => self.fail(failure),
            Err(error) => self.fail(Failure::bug(error)),
        }
    }

    /// Takes no more jobs, lets what runs finish, and ends with the first failure.
    fn fail(&mut self, failure: Failure) {
        self.call = None;
        if self.failure.is_none() {
            self.failure = Some(failure);
        }
        if *self.phase.borrow() == Phase::Working {
            self.drain();
        }
    }
}

/// Says which of the queues never had a job, and which name was perhaps meant.
async fn tell_strange(store: Store, queues: Vec<QueueName>) {
    let page = Page { max: LIST_MAX, cursor: None };
    let Ok(listed) = store.run(ListQueues { page }).await else { return };
    for queue in &queues {
        let filter = JobFilter { queue: Some(queue.clone()), ..JobFilter::default() };
        let page = Page { max: 1, cursor: None };
        let Ok(jobs) = store.run(ListJobs { filter, page, full: false }).await else { return };
        if !jobs.items.is_empty() {
            continue;
        }
        let others = listed.items.iter().filter(|view| !queues.contains(&view.name));
        let names: Vec<&str> = others.map(|view| view.name.as_str()).collect();
        let head = format!("queue '{queue}' has no jobs and never had one that is still kept");
        match super::push::some_names(queue.as_str(), &names) {
            Some(names) => tell(&format!("{head}; other queues: {names}")),
            None => tell(&head),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{self, Fake, Said};
    use std::collections::VecDeque;
    use std::ffi::OsString;
    use tenure_core::lease::{Ending, Extended};
    use tenure_core::refusal::{Code, Refusal};
    use tenure_core::requests::{Reply, Request};
    use tenure_core::secret::Json;
    use tenure_core::settings::{QueueCounts, QueueSettings, QueueView};

    /// Grants these, one lease call each; then nothing, and the queues are empty.
    fn grants(leases: Vec<LeaseView>) -> Arc<Fake> {
        let mut leases = VecDeque::from(leases);
        Fake::new(move |request| match request {
            Request::Lease(_) => {
                let leases = leases.pop_front().into_iter().collect();
                Said::Answer(Ok(Reply::Lease(Leased { leases, ..Leased::default() })))
            }
            Request::GetQueue(get) => Said::Answer(Ok(Reply::GetQueue(QueueView {
                name: get.queue.clone(),
                paused: false,
                paused_until: None,
                settings: QueueSettings::default(),
                counts: QueueCounts::default(),
                oldest_ready_at: None,
                workers: 1,
            }))),
            _ => Said::Well,
        })
    }

    fn work(engine: &Arc<Fake>, script: &str) -> Work {
        let command = ["sh", "-c", script].map(OsString::from).to_vec();
        work_of(engine, command, Span::from_s(30))
    }

    fn work_of(engine: &Arc<Fake>, command: Vec<OsString>, ttl: Span) -> Work {
        let store = Store::on(engine.clone());
        let (phase, watched) = watch::channel(Phase::Working);
        let keeper = keeper(&store).unwrap();
        let shop = Shop { store, keeper, command, ttl, phase: watched };
        let plan = Plan {
            queues: vec![QueueName::parse("q").unwrap()],
            concurrency: 2,
            strict: false,
            until_empty: true,
            max_jobs: u64::MAX,
            drain_timeout: Duration::from_secs(25),
        };
        Work::new(plan, Arc::new(shop), phase)
    }

    async fn never() -> Signal {
        std::future::pending().await
    }

    fn endings(engine: &Fake) -> Vec<Ending> {
        engine.settled().into_iter().map(|item| item.ending).collect()
    }

    #[tokio::test]
    async fn each_job_is_run_and_its_end_is_settled() {
        let engine = grants(vec![fake::job_lease("a", "{\"n\":1}"), fake::job_lease("b", "2")]);
        let script = "cat > $TENURE_RESULT_FILE";
        work(&engine, script).run(never).await.unwrap();
        let mut results: Vec<String> = endings(&engine)
            .into_iter()
            .map(|ending| match ending {
                Ending::Succeeded { result } => result.unwrap().text().to_owned(),
                other => panic!("{other:?}"),
            })
            .collect();
        results.sort();
        assert_eq!(results, ["2", "{\"n\":1}"]);
    }

    #[tokio::test]
    async fn a_failing_cmd_fails_its_job_with_the_end_of_its_stderr() {
        let engine = grants(vec![fake::job_lease("a", "1")]);
        work(&engine, "echo http 500 >&2; exit 7").run(never).await.unwrap();
        let error = Ending::Failed { error: "http 500".into(), retry_in: None, last: false };
        assert_eq!(endings(&engine), [error]);
    }

    #[tokio::test]
    async fn a_cmd_that_is_not_there_gives_the_job_back_and_ends_the_work() {
        let engine = grants(vec![fake::job_lease("a", "1"), fake::job_lease("b", "1")]);
        let command = vec![OsString::from("no-such-program-at-all")];
        let mut work = work_of(&engine, command, Span::from_s(30));
        assert_eq!(work.run(never).await.unwrap_err().code, 127);
        assert!(endings(&engine).iter().all(|ending| *ending == Ending::Released));
    }

    #[tokio::test]
    async fn max_jobs_ends_it() {
        let all = ["a", "b", "c"].map(|id| fake::job_lease(id, "1")).to_vec();
        let engine = grants(all);
        let mut work = work(&engine, "true");
        (work.plan.max_jobs, work.plan.until_empty) = (2, false);
        work.run(never).await.unwrap();
        assert_eq!(endings(&engine).len(), 2);
    }

    #[tokio::test]
    async fn the_list_of_queues_turns_unless_it_is_strict() {
        for (strict, want) in [(false, ["a b", "b a"]), (true, ["a b", "a b"])] {
            let engine = grants(vec![fake::job_lease("a", "1")]);
            let mut work = work(&engine, "true");
            work.plan.queues = ["a", "b"].map(|name| QueueName::parse(name).unwrap()).to_vec();
            work.plan.strict = strict;
            work.run(never).await.unwrap();
            let asked: Vec<String> = engine
                .asked()
                .into_iter()
                .filter_map(|request| match request {
                    Request::Lease(Lease {
                        ask: tenure_core::requests::Ask::Jobs { queues, .. },
                        ..
                    }) => Some(queues.iter().map(|q| q.as_str()).collect::<Vec<_>>().join(" ")),
                    _ => None,
                })
                .take(2)
                .collect();
            assert_eq!(asked, want);
        }
    }

    /// Until CMD has made this file.
    async fn made(path: &std::path::Path) {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_signal_lets_jobs_finish_and_a_second_one_gives_them_back() {
        for (signals, script, code, ending) in [
            (1, "touch F; sleep 0.2", None, Ending::Succeeded { result: None }),
            (2, "touch F; sleep 60", Some(143), Ending::Released),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("up");
            let script = script.replace('F', file.to_str().unwrap());
            let engine = grants(vec![fake::job_lease("a", "1")]);
            let mut work = work(&engine, &script);
            work.plan.until_empty = false;
            let mut left = signals;
            let next = async || {
                if left == 0 {
                    return never().await;
                }
                made(&file).await;
                left -= 1;
                Signal::SIGTERM
            };
            let ended = work.run(next).await;
            assert_eq!(ended.err().map(|failure| failure.code), code);
            assert_eq!(endings(&engine), [ending]);
        }
    }

    #[tokio::test]
    async fn when_the_drain_timeout_is_over_what_runs_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("up");
        let engine = grants(vec![fake::job_lease("a", "1")]);
        let mut work = work(&engine, &format!("touch {}; sleep 60", file.display()));
        work.plan.drain_timeout = Duration::from_millis(50);
        let mut told = false;
        let next = async || {
            if std::mem::replace(&mut told, true) {
                return never().await;
            }
            made(&file).await;
            Signal::SIGTERM
        };
        work.run(next).await.unwrap();
        assert_eq!(endings(&engine), [Ending::Released]);
    }

    /// Answers the heartbeats of one job with this.
    fn beating(answer: fn(&str) -> Extended) -> Arc<Fake> {
        let inner = grants(vec![fake::job_lease("a", "1")]);
        Fake::new(move |request| match request {
            Request::Extend(extend) => {
                Said::Answer(Ok(Reply::Extend(answer(&extend.leases[0].lease))))
            }
            Request::Settle(_) => Said::Well,
            other => {
                let call = tenure_engine::Engine::call(
                    &*inner,
                    &tenure_core::names::Namespace::main(),
                    other.clone(),
                );
                Said::Answer(futures_now(call))
            }
        })
    }

    /// The fake's answers are there at once.
    fn futures_now<T>(mut future: Pin<Box<dyn Future<Output = T> + Send>>) -> T {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => value,
            std::task::Poll::Pending => panic!("not there yet"),
        }
    }

    fn command(script: &str) -> Vec<OsString> {
        ["sh", "-c", script].map(OsString::from).to_vec()
    }

    #[tokio::test]
    async fn a_lost_lease_stops_cmd_and_settles_nothing() {
        let engine = beating(|lease| Extended { lost: vec![lease.into()], ..Extended::default() });
        let begun = Instant::now();
        let mut work = work_of(&engine, command("sleep 60"), Span::from_s(1));
        work.run(never).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert_eq!(engine.settled(), []);
    }

    #[tokio::test]
    async fn a_cancelled_job_is_stopped_and_how_it_ended_counts() {
        let engine = beating(|lease| Extended {
            extended: vec![tenure_core::lease::ExtendedLease {
                lease: lease.into(),
                expires_at: crate::cmd::now().plus(Span::from_s(1)),
            }],
            cancel: vec![lease.into()],
            ..Extended::default()
        });
        let script = "trap 'echo stopped > $TENURE_RESULT_FILE; exit 0' TERM; sleep 60 & wait";
        let mut work = work_of(&engine, command(script), Span::from_s(1));
        work.run(never).await.unwrap();
        let result = Json::parse("\"stopped\"");
        assert_eq!(endings(&engine), [Ending::Succeeded { result }]);
    }

    #[tokio::test]
    async fn a_refused_outcome_is_a_failure_that_says_so() {
        let inner = grants(vec![fake::job_lease("a", "1")]);
        let mut first = true;
        let engine = Fake::new(move |request| match request {
            Request::Settle(_) if std::mem::take(&mut first) => {
                let no = Refusal::new(Code::UnknownPool, "no pool 'x'", "make it");
                Said::Answer(Err(no.into()))
            }
            Request::Settle(_) => Said::Well,
            other => Said::Answer(futures_now(tenure_engine::Engine::call(
                &*inner,
                &tenure_core::names::Namespace::main(),
                other.clone(),
            ))),
        });
        work(&engine, "true").run(never).await.unwrap();
        let error = "the outcome was refused: no pool 'x'; make it".to_owned();
        let failed = Ending::Failed { error, retry_in: None, last: false };
        assert_eq!(endings(&engine), [Ending::Succeeded { result: None }, failed]);
    }

    #[tokio::test]
    async fn a_store_that_never_answered_is_69() {
        let engine = Fake::new(|_| {
            let fault = tenure_engine::Fault::Unavailable("127.0.0.1:7171: refused".into());
            Said::Answer(Err(fault.into()))
        });
        assert_eq!(work(&engine, "true").run(never).await.unwrap_err().code, 69);
    }
}
