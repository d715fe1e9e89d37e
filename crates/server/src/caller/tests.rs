//! Which calls pass the gate, and what the trail gets of them.

use std::borrow::Cow;
use std::sync::Mutex;

use tenure_core::access::{GivenGrants, Scope};
use tenure_core::decode::{Decode, RawCall};
use tenure_core::refusal::Code;
use tenure_core::requests::{ListParents, OPERATIONS, Page, PutLimit, Spec};
use tenure_engine_api::{Fault, Health};

use super::*;

/// Remembers the operations that reach it, and answers none.
#[derive(Default)]
struct Recording(Mutex<Vec<&'static str>>);

impl Engine for Recording {
    fn call(&self, _: &Namespace, request: Request) -> CallFuture {
        self.0.lock().unwrap().push(request.spec().name);
        Box::pin(async { Err(Fault::Broken("it only records".to_owned()).into()) })
    }
    fn health(&self) -> Health {
        Health { degraded: None, store: "none" }
    }
    fn undo(&self, _: &Namespace, _: Vec<String>) {}
    fn drain(&self) {}
}

/// A body that the reader of the operation accepts.
fn body(operation: &str) -> &'static str {
    match operation {
        "push" | "cancel_jobs" | "retry_jobs" | "delete_jobs" => r#"{"queue":"q"}"#,
        "lease" => r#"{"queues":["q"]}"#,
        "extend" => r#"{"leases":["L"]}"#,
        "settle" => r#"{"settle":[{"lease":"L","outcome":"succeeded"}]}"#,
        "put_limit" => r#"{"concurrency":1}"#,
        "pause_limit" | "cool_resource" => r#"{"for":"1s"}"#,
        "observe_limit" => r#"{"external":1}"#,
        "sync_resources" | "sync_schedules" => "[]",
        "add_resources" => r#"{"id":"r"}"#,
        "put_schedule" => r#"{"every":"1h","job":{"queue":"q"}}"#,
        "patch_queue" => r#"{"max_waiting":1}"#,
        "patch_job" => r#"{"priority":1}"#,
        "patch_limit" => r#"{"concurrency":1}"#,
        "patch_pool" => r#"{"max_uses":1}"#,
        "patch_resource" => r#"{"slots":1}"#,
        "patch_schedule" => r#"{"every":"1h"}"#,
        "put_queue" | "put_pool" => "{}",
        _ => "",
    }
}

/// A request of each operation, by its decoder.
fn requests() -> Vec<Request> {
    let names = [Cow::Borrowed("n"), Cow::Borrowed("r")];
    let owner = [(Cow::Borrowed("owner"), Cow::Borrowed("o"))];
    let request = |spec: &&Spec| {
        let query = if spec.name == "sync_schedules" { &owner[..] } else { &[] };
        let call = RawCall { names: &names, query, body: body(spec.name).as_bytes() };
        (spec.decode)(call).unwrap_or_else(|no| panic!("{}: {no}", spec.name))
    };
    OPERATIONS.iter().map(request).collect()
}

fn caller(scopes: &[Scope], queues: Option<Vec<String>>) -> Arc<Caller> {
    let given = GivenGrants {
        name: "a".to_owned(),
        scopes: scopes.iter().map(ToString::to_string).collect(),
        namespaces: vec!["web-*".to_owned()],
        queues,
        ..GivenGrants::default()
    };
    Caller::elsewhere(Grants::read(&given).unwrap())
}

fn reaches(engine: &Arc<Recording>, caller: Arc<Caller>, namespace: &str, one: &Request) -> bool {
    let guarded = GuardedEngine::new(engine.clone(), caller, CallRecord::default());
    let namespace = Namespace::parse(namespace).unwrap();
    let answer = futures_ready(guarded.call(&namespace, one.clone()));
    let reached = !std::mem::take(&mut *engine.0.lock().unwrap()).is_empty();
    match answer {
        Err(CallError::Refused(no)) => {
            assert_eq!(no.code, Code::Forbidden, "{no}");
            assert!(!reached, "it was refused and done: {one:?}");
        }
        Err(CallError::Fault(_)) => assert!(reached),
        Ok(reply) => panic!("nothing answers: {reply:?}"),
    }
    reached
}

/// The answer of a future that never waits.
fn futures_ready(mut call: CallFuture) -> Result<Reply, CallError> {
    use std::task::{Context, Poll, Waker};
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn every_operation_reaches_the_engine_by_its_scope_alone() {
    let (engine, requests) = (Arc::new(Recording::default()), requests());
    for one in &requests {
        let needed = one.spec().scope;
        for scope in Scope::ALL {
            let has = *scope == needed || (needed, *scope) == (Scope::View, Scope::Read);
            for (namespace, is_open) in [("web-1", true), ("web", false), ("default", false)] {
                let reached = reaches(&engine, caller(&[*scope], None), namespace, one);
                assert_eq!(reached, has && is_open, "{} {scope} {namespace}", one.spec().name);
            }
            let others = Scope::ALL.iter().copied();
            let others: Vec<Scope> = others.filter(|other| other != scope).collect();
            let reached = reaches(&engine, caller(&others, None), "web-1", one);
            let lacks = needed == *scope;
            // `read` contains `view`.
            let reads = needed == Scope::View;
            assert_eq!(reached, !lacks || reads, "{} without {scope}", one.spec().name);
        }
        assert!(reaches(&engine, Caller::anyone(), "default", one), "{:?}", one.spec());
        let nobody = Caller::elsewhere(Grants::nothing());
        assert!(!reaches(&engine, nobody, "default", one), "{:?}", one.spec());
    }
}

/// Remembers the names of the callers that reach it.
#[derive(Default)]
struct Names(Mutex<Vec<Option<String>>>);

impl Engine for Names {
    fn call(&self, namespace: &Namespace, request: Request) -> CallFuture {
        self.call_by(None, namespace, request)
    }
    fn call_by(&self, by: Option<&TokenName>, _: &Namespace, _: Request) -> CallFuture {
        self.0.lock().unwrap().push(by.map(ToString::to_string));
        Box::pin(async { Err(Fault::Broken("it only records".to_owned()).into()) })
    }
    fn health(&self) -> Health {
        Health { degraded: None, store: "none" }
    }
    fn undo(&self, _: &Namespace, _: Vec<String>) {}
    fn drain(&self) {}
}

#[test]
fn a_call_that_has_a_line_in_the_trail_names_its_caller_to_the_engine() {
    let engine = Arc::new(Names::default());
    let namespace = Namespace::parse("web-1").unwrap();
    let names = |caller: Arc<Caller>, one: &Request| {
        let guarded = GuardedEngine::new(engine.clone(), caller, CallRecord::default());
        let answer = futures_ready(guarded.call(&namespace, one.clone()));
        assert!(answer.is_err(), "nothing answers");
        std::mem::take(&mut *engine.0.lock().unwrap())
    };
    for one in requests() {
        let expected = has_own_line(one.spec().scope).then(|| "a".to_owned());
        assert_eq!(names(caller(Scope::ALL, None), &one), [expected], "{}", one.spec().name);
        assert_eq!(names(Caller::anyone(), &one), [None], "{}", one.spec().name);
    }
}

/// Answers reads, and never a change.
struct Stuck;

impl Engine for Stuck {
    fn call(&self, _: &Namespace, request: Request) -> CallFuture {
        let reads = request.effect() == tenure_core::requests::Effect::Reads;
        Box::pin(async move {
            match reads {
                true => Err(Fault::Broken("it has nothing".to_owned()).into()),
                false => std::future::pending().await,
            }
        })
    }
    fn health(&self) -> Health {
        Health { degraded: None, store: "none" }
    }
    fn undo(&self, _: &Namespace, _: Vec<String>) {}
    fn drain(&self) {}
}

#[test]
fn a_caller_that_leaves_before_the_answer_leaves_a_line() {
    use std::task::{Context, Poll, Waker};

    use tenure_core::trail::ReadTrail;

    use crate::trail::{Trail, TrailOptions, TrailPlace};

    let folder = tenure_testkit::TempDir::new();
    let trail = Trail::open(TrailOptions {
        place: TrailPlace::Folder(folder.path().to_owned()),
        is_required: true,
        most_bytes: 1 << 30,
        server: "here".to_owned(),
    });
    let record = CallRecord::of(&trail, &Default::default(), None);
    let guarded = GuardedEngine::new(Arc::new(Stuck), Caller::anyone(), record);
    let put = PutLimit::of(&["site"], br#"{"concurrency": 1}"#).unwrap();
    let mut call = guarded.call(&Namespace::main(), put.into());
    let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending));
    let last = || {
        let asked = ReadTrail::default();
        trail.read(&asked, &Grants::all_of_anyone()).unwrap().items.swap_remove(0)
    };
    assert_eq!(last().op, "server_started");
    drop(call);
    let line = last();
    assert_eq!((line.op.as_str(), line.code.as_deref()), ("put_limit", Some("unanswered")));
    assert_eq!((line.status, line.targets), (None, vec!["limit:site".to_owned()]));
}

#[test]
fn a_token_with_queues_asks_first_in_which_queue_a_job_is() {
    let engine = Arc::new(Recording::default());
    let caller = caller(&[Scope::Work], Some(vec!["q".to_owned()]));
    let guarded = GuardedEngine::new(engine.clone(), caller, CallRecord::default());
    let job = tenure_core::decode::job_path("j").unwrap();
    let page = Page { max: 1, cursor: None };
    let list = ListParents { job, full: true, page };
    let answer = futures_ready(guarded.call(&Namespace::parse("web-1").unwrap(), list.into()));
    assert!(answer.is_err());
    assert_eq!(*engine.0.lock().unwrap(), ["get_job"]);
}
