//! Typed calls on any engine.

use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use tenure_core::names::LimitName;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Audit, Audited, Patch, PatchLimit, Put};
use tenure_core::settings::{LimitSettings, LimitView};

use super::*;

struct Well;
impl Engine for Well {
    fn call(&self, _: &Namespace, _: Request) -> CallFuture {
        Box::pin(async { Ok(Reply::Audit(Audited { ok: true, ..Audited::default() })) })
    }
    fn health(&self) -> Health {
        Health { degraded: None, store: "well" }
    }
    fn undo(&self, _: &Namespace, _: Vec<String>) {}
    fn drain(&self) {}
}

/// Requires the bounds of a runtime's task.
fn a_task<F: Future + Send + 'static>(task: F) -> Pin<Box<F>> {
    Box::pin(task)
}

#[test]
fn a_typed_call_outlives_what_it_was_made_of() {
    let mut call = {
        let engine: Box<dyn Engine> = Box::new(Well);
        let namespace = Namespace::main();
        a_task(engine.run(&namespace, Audit::default()))
    };
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(audit)) => assert!(audit.ok),
        other => panic!("{other:?}"),
    }
}

fn view(template: Option<&str>, concurrency: Option<u32>) -> LimitView {
    LimitView {
        name: LimitName::parse("site:a").unwrap(),
        template: template.map(|name| LimitName::parse(name).unwrap()),
        settings: LimitSettings { concurrency, ..LimitSettings::default() },
        in_use: 0,
        resting: 0,
        external: 0,
        gauge: None,
        waiting: 0,
        over_limit: 0,
        paused_until: None,
        holders: Vec::new(),
        line: Vec::new(),
    }
}

fn no(code: Code) -> CallError {
    Refusal::heard(code, "no", "").into()
}

/// Has a limit, or not, and remembers what it was asked.
struct OneLimit {
    get: Result<LimitView, CallError>,
    patches: bool,
    asked: Mutex<Vec<&'static str>>,
}

impl Engine for OneLimit {
    fn call(&self, _: &Namespace, request: Request) -> CallFuture {
        self.asked.lock().unwrap().push(request.spec().name);
        let done = || Put { view: view(None, Some(3)), created: false };
        let answer = match request {
            Request::GetLimit(_) => self.get.clone().map(Reply::GetLimit),
            Request::PatchLimit(_) if self.patches => Ok(Reply::PatchLimit(done())),
            Request::PatchLimit(_) => Err(no(Code::LimitNotFound)),
            Request::PutLimit(_) => Ok(Reply::PutLimit(done())),
            other => panic!("{other:?}"),
        };
        Box::pin(async { answer })
    }
    fn health(&self) -> Health {
        Health { degraded: None, store: "one limit" }
    }
    fn undo(&self, _: &Namespace, _: Vec<String>) {}
    fn drain(&self) {}
}

#[test]
fn a_thing_that_is_not_there_is_put_without_a_refused_patch() {
    let away = || CallError::from(Fault::Unavailable("away".to_owned()));
    for (get, patches, asked) in [
        (Err(no(Code::LimitNotFound)), false, &["get_limit", "put_limit"][..]),
        (Ok(view(None, Some(1))), true, &["get_limit", "patch_limit"]),
        // It has the settings of its template, and none of its own.
        (Ok(view(Some("site:*"), Some(1))), false, &["get_limit", "put_limit"]),
        // It was deleted, and a lease still holds it.
        (Ok(view(None, None)), false, &["get_limit", "put_limit"]),
        // The token may change settings and not see them.
        (Err(no(Code::Forbidden)), true, &["get_limit", "patch_limit"]),
        (Err(no(Code::Forbidden)), false, &["get_limit", "patch_limit", "put_limit"]),
        // It was deleted in between.
        (Ok(view(None, Some(1))), false, &["get_limit", "patch_limit", "put_limit"]),
        (Err(away()), true, &["get_limit"]),
    ] {
        let engine = OneLimit { get, patches, asked: Mutex::default() };
        let change = PatchLimit {
            limit: LimitName::parse("site:a").unwrap(),
            concurrency: Patch::Set(3),
            rate: Patch::Keep,
            gap: Patch::Keep,
            quarantine: Patch::Keep,
            gauge: Patch::Keep,
        };
        let main = Namespace::main();
        let answer = {
            let mut call = Box::pin(engine.set(&main, change));
            call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        };
        let Poll::Ready(answer) = answer else { panic!("it waits") };
        assert_eq!(answer.is_ok(), asked.len() > 1, "{answer:?}");
        assert_eq!(*engine.asked.lock().unwrap(), asked);
    }
}
