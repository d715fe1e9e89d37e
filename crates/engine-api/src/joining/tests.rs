//! Calls on an engine whose answers a test releases.

use std::future::poll_fn;
use std::task::Poll;

use tenure_core::flow::{After, Parent};
use tenure_core::job::{NewJob, OnConflict, Unique, Until};
use tenure_core::lease::{Ending, ExtendItem, Extended, ExtendedLease, SettleItem, SettledLease};
use tenure_core::names::{JobId, JobRef, QueueName, Ref, UniqueKey};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Audit, Extend, Push, PushAnswer, Pushed, PushedId, Settle, Settled};
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};
use tokio::sync::Semaphore;

use super::*;

/// Notes each call when it is made, and answers it once there is a permit.
#[derive(Clone)]
struct NotingStore(Arc<Noted>);

struct Noted {
    made: Mutex<Vec<Request>>,
    answers: Semaphore,
}

impl MakesCalls for NotingStore {
    fn make(&self, _: &Namespace, request: Request) -> CallFuture {
        let noted = self.0.clone();
        Box::pin(async move {
            noted.made.lock().unwrap().push(request.clone());
            noted.answers.acquire().await.unwrap().forget();
            // No answer is ready at once.
            yield_now().await;
            answer(request)
        })
    }
}

/// Refuses jobs of the kind `bad`, and reports leases named `gone` as lost.
fn answer(request: Request) -> Result<Reply, CallError> {
    match request {
        Request::Push(push) => {
            if let Some(at) = push.jobs.iter().position(|job| job.kind == "bad") {
                let no = Refusal::heard(Code::UnknownLimit, "d", "h").item(at);
                return Err(no.at(format!("/{at}/needs/0/limit")).into());
            }
            if push.jobs.iter().any(|job| job.kind == "full") {
                return Err(Refusal::heard(Code::StoreFull, "d", "h").into());
            }
            if push.jobs.iter().any(|job| job.kind == "away") {
                return Err(Fault::Unknown("gone".to_owned()).into());
            }
            let id = |job: NewJob| PushedId {
                id: job.id.unwrap(),
                duplicate: false,
                replaced: false,
                workers: None,
            };
            Ok(Reply::Push(Pushed::Ids(push.jobs.into_iter().map(id).collect())))
        }
        Request::Settle(settle) => {
            let one = |item: SettleItem| SettledLease {
                ok: !item.lease.starts_with("gone"),
                code: item.lease.starts_with("gone").then_some(Code::LeaseLost),
                lease: item.lease,
                state: None,
                run_at: None,
                next_at: None,
                pushed: Vec::new(),
            };
            let settled = settle.settle.into_iter().map(one).collect();
            Ok(Reply::Settle(Settled { settled, lease: None }))
        }
        Request::Extend(extend) => {
            let leases = extend.leases.into_iter().map(|item| item.lease);
            let (lost, alive): (Vec<_>, Vec<_>) = leases.partition(|id| id.starts_with("gone"));
            let cancel = alive.iter().filter(|id| id.starts_with("stop")).cloned().collect();
            let expires_at = Moment::from_us(7);
            let extended =
                alive.into_iter().map(|lease| ExtendedLease { lease, expires_at }).collect();
            let crossed = lost.clone();
            Ok(Reply::Extend(Extended { extended, lost, cancel, crossed }))
        }
        _ => Ok(Reply::Audit(Default::default())),
    }
}

struct Scene {
    store: NotingStore,
    joining: Joining<NotingStore>,
}

impl Scene {
    fn new() -> Self {
        let noted = Noted { made: Mutex::default(), answers: Semaphore::new(0) };
        let store = NotingStore(Arc::new(noted));
        Scene { joining: Joining::new(store.clone()), store }
    }

    /// Begins a call, and polls it until it waits for its answer.
    async fn begins(&self, request: impl Into<Request>) -> CallFuture {
        let mut call = self.joining.call(&Namespace::main(), request.into());
        is_waiting(&mut call).await;
        call
    }

    fn answers(&self, many: usize) {
        self.store.0.answers.add_permits(many);
    }

    /// The items of each call that was made.
    fn made(&self) -> Vec<Vec<String>> {
        let names = |request: &Request| match request {
            Request::Push(push) => {
                let ids = push.jobs.iter().filter_map(|job| job.id.as_ref());
                ids.map(|id| id.as_str().to_owned()).collect()
            }
            Request::Settle(settle) => {
                settle.settle.iter().map(|item| item.lease.clone()).collect()
            }
            Request::Extend(extend) => {
                extend.leases.iter().map(|item| item.lease.clone()).collect()
            }
            _ => vec!["other".to_owned()],
        };
        self.store.0.made.lock().unwrap().iter().map(names).collect()
    }

    /// Waits until the joiner remembers no call, after all have ended.
    async fn is_forgotten(&self) {
        while !self.joining.lock().is_empty() {
            yield_now().await;
        }
    }
}

async fn is_waiting(call: &mut CallFuture) {
    let mut polled = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending()));
    assert!(std::pin::pin!(&mut polled).await, "it was answered");
}

fn job(id: &str) -> NewJob {
    let id = JobId::parse(id).unwrap();
    NewJob { id: Some(id), ..NewJob::new(QueueName::parse("q").unwrap()) }
}

fn push(id: &str) -> Push {
    Push { jobs: vec![job(id)], answer: PushAnswer::Ids }
}

fn push_of(kind: &str, id: &str) -> Push {
    Push { jobs: vec![NewJob { kind: kind.to_owned(), ..job(id) }], answer: PushAnswer::Ids }
}

fn settle(lease: &str) -> Settle {
    Settle::of(vec![SettleItem::new(lease.to_owned(), Ending::Released)])
}

fn extend(leases: &[&str]) -> Extend {
    let item = |id: &&str| ExtendItem { lease: (*id).to_owned(), progress: None };
    Extend { leases: leases.iter().map(item).collect(), ttl: None }
}

/// The ids in a push's answer, or its refusal's pointer.
async fn pushed(call: CallFuture) -> Result<Vec<String>, String> {
    match call.await {
        Ok(Reply::Push(Pushed::Ids(ids))) => {
            Ok(ids.into_iter().map(|one| one.id.as_str().to_owned()).collect())
        }
        Err(CallError::Refused(no)) => Err(no.pointer.unwrap_or_else(|| no.code.to_string())),
        Err(CallError::Fault(why)) => Err(why.to_string()),
        Ok(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_that_finds_none_under_way_is_made_at_once() {
    let scene = Scene::new();
    let first = scene.begins(push("a")).await;
    assert_eq!(scene.made(), [["a"]]);
    scene.answers(1);
    assert_eq!(pushed(first).await.unwrap(), ["a"]);
    assert!(scene.joining.lock().is_empty());
    let second = scene.begins(push("b")).await;
    assert_eq!(scene.made(), [["a"], ["b"]]);
    scene.answers(1);
    assert_eq!(pushed(second).await.unwrap(), ["b"]);
}

#[tokio::test]
async fn concurrent_calls_are_joined_and_each_gets_its_own_answer() {
    let scene = Scene::new();
    let first = scene.begins(push("a")).await;
    let (b, c) = (scene.begins(push("b")).await, scene.begins(push("c")).await);
    let many = Push { jobs: vec![job("d"), job("e")], answer: PushAnswer::Ids };
    let many = scene.begins(many).await;
    assert_eq!(scene.made(), [["a"]]);
    scene.answers(2);
    assert_eq!(pushed(first).await.unwrap(), ["a"]);
    assert_eq!(pushed(b).await.unwrap(), ["b"]);
    assert_eq!(pushed(many).await.unwrap(), ["d", "e"]);
    assert_eq!(pushed(c).await.unwrap(), ["c"]);
    assert_eq!(scene.made(), [vec!["a"], vec!["b", "c", "d", "e"]]);
    scene.is_forgotten().await;
}

#[tokio::test]
async fn settles_and_extends_are_answered_apart() {
    let scene = Scene::new();
    let first = scene.begins(settle("a")).await;
    let (lost, done) = (scene.begins(settle("gone")).await, scene.begins(settle("b")).await);
    scene.answers(2);
    first.await.unwrap();
    for (call, ok) in [(lost, false), (done, true)] {
        let Ok(Reply::Settle(settled)) = call.await else { panic!("no answer") };
        assert_eq!(settled.settled.iter().map(|one| one.ok).collect::<Vec<_>>(), [ok]);
    }
    let first = scene.begins(extend(&["a"])).await;
    let one = scene.begins(extend(&["gone1", "b"])).await;
    let other = scene.begins(extend(&["stop", "gone2"])).await;
    scene.answers(2);
    first.await.unwrap();
    for (call, alive, gone, stop) in
        [(one, "b", "gone1", &[][..]), (other, "stop", "gone2", &["stop"][..])]
    {
        let Ok(Reply::Extend(Extended { extended, lost, cancel, crossed })) = call.await else {
            panic!("no answer")
        };
        assert_eq!(extended.iter().map(|one| one.lease.as_str()).collect::<Vec<_>>(), [alive]);
        assert_eq!(
            (&lost, cancel),
            (&vec![gone.to_owned()], stop.to_vec().iter().map(|id| id.to_string()).collect())
        );
        assert_eq!(crossed, lost);
    }
    let made = scene.made();
    assert_eq!(made[1], ["gone", "b"]);
    assert_eq!(made[3], ["gone1", "b", "stop", "gone2"]);
}

#[tokio::test]
async fn a_call_that_is_refused_harms_no_other() {
    let scene = Scene::new();
    let first = scene.begins(push("a")).await;
    let b = scene.begins(push("b")).await;
    let two = Push { jobs: vec![job("c"), job("d")], answer: PushAnswer::Ids };
    let two = scene.begins(two).await;
    let bad = scene.begins(push_of("bad", "x")).await;
    let e = scene.begins(push("e")).await;
    let bad_too = scene.begins(push_of("bad", "y")).await;
    let f = scene.begins(push("f")).await;
    scene.answers(100);
    assert_eq!(pushed(first).await.unwrap(), ["a"]);
    assert_eq!(pushed(b).await.unwrap(), ["b"]);
    assert_eq!(pushed(two).await.unwrap(), ["c", "d"]);
    assert_eq!(pushed(bad).await, Err("/0/needs/0/limit".to_owned()));
    assert_eq!(pushed(e).await.unwrap(), ["e"]);
    assert_eq!(pushed(bad_too).await, Err("/0/needs/0/limit".to_owned()));
    assert_eq!(pushed(f).await.unwrap(), ["f"]);
    // Every call except the refused ones was done once, together with others.
    let made = scene.made();
    assert_eq!(
        made[2..],
        [vec!["b", "c", "d"], vec!["x"], vec!["e", "y", "f"], vec!["e"], vec!["y"], vec!["f"]]
    );
}

#[tokio::test]
async fn joined_calls_are_made_one_by_one_after_a_common_refusal() {
    for kind in ["full", "bad"] {
        let scene = Scene::new();
        let first = scene.begins(push("a")).await;
        let no = scene.begins(push_of(kind, "x")).await;
        let (b, c) = (scene.begins(push("b")).await, scene.begins(push("c")).await);
        scene.answers(100);
        pushed(first).await.unwrap();
        assert!(pushed(no).await.is_err());
        assert_eq!(pushed(b).await.unwrap(), ["b"]);
        assert_eq!(pushed(c).await.unwrap(), ["c"]);
        let mut alone = scene.made().split_off(2);
        alone.sort();
        assert_eq!(alone, [["b"], ["c"], ["x"]]);
    }
}

#[tokio::test]
async fn what_is_unknown_is_unknown_to_all_and_made_only_once() {
    let scene = Scene::new();
    let first = scene.begins(push("a")).await;
    let (b, c) = (scene.begins(push("b")).await, scene.begins(push_of("away", "c")).await);
    scene.answers(2);
    first.await.unwrap();
    assert!(pushed(b).await.unwrap_err().contains("unknown"));
    assert!(pushed(c).await.unwrap_err().contains("unknown"));
    assert_eq!(scene.made().len(), 2);
}

#[tokio::test]
async fn calls_that_name_the_same_are_not_one() {
    let keyed = |id: &str| {
        let unique = Unique {
            key: UniqueKey::parse("k").unwrap(),
            until: Until::End,
            hold: None,
            on_conflict: OnConflict::Reject,
            within: None,
        };
        Push { jobs: vec![NewJob { unique: Some(unique), ..job(id) }], answer: PushAnswer::Ids }
    };
    let pairs: [(Request, Request); 4] = [
        (push("b").into(), push("b").into()),
        (keyed("b").into(), keyed("c").into()),
        (settle("b").into(), settle("b").into()),
        (extend(&["b"]).into(), extend(&["c", "b"]).into()),
    ];
    for (one, other) in pairs {
        let scene = Scene::new();
        let first = match &one {
            Request::Push(_) => scene.begins(push("a")).await,
            Request::Settle(_) => scene.begins(settle("a")).await,
            _ => scene.begins(extend(&["a"])).await,
        };
        let (one, other) = (scene.begins(one).await, scene.begins(other).await);
        scene.answers(3);
        for call in [first, one, other] {
            call.await.unwrap();
        }
        assert_eq!(scene.made().len(), 3);
    }
}

#[tokio::test]
async fn calls_that_do_not_do_the_same_are_not_one() {
    let scene = Scene::new();
    let _a = scene.begins(push("a")).await;
    let whole = Push { answer: PushAnswer::Whole, ..push("b") };
    let _b = scene.begins(whole).await;
    let _c = scene.begins(extend(&["c"])).await;
    let _d = scene.begins(Extend { ttl: Some(Span::from_s(5)), ..extend(&["d"]) }).await;
    let _e = scene.begins(Push { jobs: vec![NewJob { id: None, ..job("e") }], ..push("e") }).await;
    let _f = scene.begins(settle("f")).await;
    let _g = scene.begins(Audit::default()).await;
    let _h = scene.begins(Audit::default()).await;
    let mut follows = settle("i");
    follows.settle[0].push = vec![job("j")];
    let _i = scene.begins(follows).await;
    let many = (0..17).map(|n| job(&format!("many{n}"))).collect();
    let _j = scene.begins(Push { jobs: many, answer: PushAnswer::Ids }).await;
    let large = Json::parse(&format!("\"{}\"", "x".repeat(70_000))).unwrap();
    let _k = scene.begins(Push { jobs: vec![NewJob { payload: large, ..job("k") }], ..push("k") });
    let _k = _k.await;
    let other = Namespace::parse("other").unwrap();
    let mut _l = scene.joining.call(&other, push("l").into());
    is_waiting(&mut _l).await;
    // A job that depends on another caller's job would find it in the call, at any place in it.
    let after =
        vec![After { parent: Parent::Job(JobRef::parse("a").unwrap()), gone_is_done: false }];
    let _m = scene.begins(Push { jobs: vec![NewJob { after, ..job("m") }], ..push("m") }).await;
    let reference = Ref::parse("r").ok();
    let _n = scene.begins(Push { jobs: vec![NewJob { reference, ..job("n") }], ..push("n") }).await;
    assert_eq!(scene.made().len(), 14);
}

#[tokio::test]
async fn one_call_carries_so_many_at_most() {
    let scene = Scene::new();
    let mut calls = vec![scene.begins(push("first")).await];
    for n in 0..200 {
        calls.push(scene.begins(push(&format!("j{n}"))).await);
    }
    let text = Json::parse(&format!("\"{}\"", "x".repeat(50_000))).unwrap();
    for n in 0..20 {
        let job = NewJob { payload: text.clone(), ..job(&format!("large{n}")) };
        calls.push(scene.begins(Push { jobs: vec![job], answer: PushAnswer::Ids }).await);
    }
    scene.answers(100);
    for call in calls {
        assert_eq!(pushed(call).await.unwrap().len(), 1);
    }
    let sizes: Vec<_> = scene.made().iter().map(Vec::len).collect();
    assert_eq!(sizes, [1, 128, 72 + 10, 10]);
}

#[tokio::test]
async fn an_abandoned_call_takes_no_other_with_it() {
    let scene = Scene::new();
    let first = scene.begins(push("a")).await;
    let (b, c) = (scene.begins(push("b")).await, scene.begins(push("c")).await);
    // A call that was not sent yet, and the call under way.
    let (d, e) = (scene.begins(push("d")).await, scene.begins(push("e")).await);
    drop(b);
    drop(first);
    while scene.made().len() < 2 {
        yield_now().await;
    }
    // One of the calls that left as one.
    drop(c);
    scene.answers(2);
    assert_eq!(pushed(d).await.unwrap(), ["d"]);
    assert_eq!(pushed(e).await.unwrap(), ["e"]);
    assert_eq!(scene.made(), [vec!["a"], vec!["c", "d", "e"]]);
    scene.is_forgotten().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_no_longer_than_that_for_one_that_does_not_end() {
    let scene = Scene::new();
    let _first = scene.begins(push("a")).await;
    let began = Instant::now();
    let (b, c) = (scene.begins(push("b")).await, scene.begins(push("c")).await);
    let (b, c) = (tokio::spawn(pushed(b)), tokio::spawn(pushed(c)));
    while scene.made().len() < 2 {
        tokio::time::sleep(Duration::from_micros(100)).await;
    }
    assert!(began.elapsed() <= GATHERS_MAX + Duration::from_millis(1), "{:?}", began.elapsed());
    assert_eq!(scene.made()[1], ["b", "c"]);
    // Two are under way now, and new calls wait for the first of them that ends.
    let d = scene.begins(push("d")).await;
    scene.answers(3);
    assert_eq!(pushed(d).await.unwrap(), ["d"]);
    assert_eq!(
        (b.await.unwrap().unwrap(), c.await.unwrap().unwrap()),
        (vec!["b".to_owned()], vec!["c".to_owned()])
    );
}

#[tokio::test]
async fn callers_answered_together_call_again_together() {
    let scene = Scene::new();
    scene.answers(100);
    let callers = (0..8).map(|caller| {
        let joining = scene.joining.clone();
        tokio::spawn(async move {
            for turn in 0..5 {
                let call =
                    joining.call(&Namespace::main(), push(&format!("{caller}-{turn}")).into());
                pushed(call).await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    assert!(scene.made().len() <= 10, "{:?}", scene.made());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_call_of_a_crowd_is_made_once() {
    let scene = Scene::new();
    scene.answers(100_000);
    let callers: Vec<_> = (0..64)
        .map(|caller| {
            let joining = scene.joining.clone();
            tokio::spawn(async move {
                for turn in 0..50 {
                    let id = format!("{caller}-{turn}");
                    let call = joining.call(&Namespace::main(), push(&id).into());
                    assert_eq!(pushed(call).await.unwrap(), [id]);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let mut made = scene.made().concat();
    made.sort_unstable();
    let all = made.len();
    made.dedup();
    assert_eq!((made.len(), all), (3_200, 3_200));
    scene.is_forgotten().await;
}
