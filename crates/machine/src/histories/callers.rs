//! Names of callers in events: a call names the events that it makes itself, and no others.

use super::store::Store;
use crate::{Command, Config, Machine, TakerId};
use tenure_core::access::TokenName;
use tenure_core::decode::{self, Decode};
use tenure_core::events::Happened;
use tenure_core::names::{JobId, JobRef, Namespace, QueueName, ScheduleId};
use tenure_core::requests::{
    CancelJob, Lease, PatchLimit, Push, PushAnswer, PutLimit, Request, RunScheduleNow,
};
use tenure_core::time::{Moment, Span};

const NOW: Moment = Moment::from_us(1_700_000_000_000_000);

struct Scene {
    machine: Machine,
    store: Store,
}

impl Scene {
    fn new() -> Self {
        Scene { machine: Machine::new(Config::default()), store: Store::default() }
    }

    /// Applies a command of this caller, and returns its events, each by its type and the name of its caller.
    fn call(&mut self, by: Option<&str>, command: Command) -> Vec<String> {
        self.call_at(NOW, by, command)
    }

    fn call_at(&mut self, now: Moment, by: Option<&str>, command: Command) -> Vec<String> {
        let by = by.and_then(TokenName::known);
        let done =
            self.machine.apply(&Namespace::main(), command.by(by.as_ref()), now, &self.store);
        assert!(done.is_ok(), "{done:?}");
        let effects = self.machine.drain();
        self.store.write(effects.rows);
        let events = effects.events.into_iter().flat_map(|(_, events)| events);
        let one = |event: Happened| match event.about.by {
            Some(name) => format!("{} by {name}", event.kind),
            None => event.kind.to_string(),
        };
        events.map(one).collect()
    }
}

fn request(request: impl Into<Request>) -> Command {
    Command::Request(request.into())
}

fn push(jobs: &str) -> Command {
    let jobs = decode::push(jobs.as_bytes()).unwrap();
    request(Push { jobs, answer: PushAnswer::Ids })
}

fn cap(concurrency: u32) -> PatchLimit {
    let body = format!(r#"{{"concurrency": {concurrency}}}"#);
    PatchLimit::of(&["l"], body.as_bytes()).unwrap()
}

fn cancel(job: &str) -> Command {
    request(CancelJob { job: JobRef::parse(job).unwrap() })
}

#[test]
fn a_change_names_its_caller_and_a_repeat_makes_no_event() {
    let mut scene = Scene::new();
    let put = || request(PutLimit::of(&["l"], br#"{"concurrency": 1}"#).unwrap());
    assert_eq!(scene.call(Some("ann"), put()), ["limit.changed by ann"]);
    assert!(scene.call(Some("bob"), put()).is_empty(), "nothing changed");
    assert_eq!(scene.call(Some("bob"), request(cap(2))), ["limit.changed by bob"]);
    assert_eq!(scene.call(None, request(cap(3))), ["limit.changed"]);

    let schedule = br#"{"every": "1h", "job": {"queue": "q"}}"#;
    let schedule = request(decode::put_schedule("s", schedule).unwrap());
    assert_eq!(scene.call(Some("ann"), schedule), ["schedule.changed by ann"]);
    let run_now = || {
        let schedule = ScheduleId::parse("s").unwrap();
        request(RunScheduleNow { schedule, id: JobId::parse("now").ok() })
    };
    assert_eq!(scene.call(Some("ann"), run_now()), ["job.pushed by ann"]);
    assert!(scene.call(Some("ann"), run_now()).is_empty(), "the same id is the same job");
    let later = NOW.plus(Span::from_s(2 * 3_600));
    let fired = scene.call_at(later, None, Command::Fire);
    assert!(!fired.is_empty(), "a moment is over");
    assert!(fired.iter().all(|event| !event.contains(" by ")), "time has no name: {fired:?}");
}

#[test]
fn consequences_of_a_change_do_not_name_its_caller() {
    let mut scene = Scene::new();
    let shut = PutLimit::of(&["l"], br#"{"concurrency": 0}"#).unwrap();
    scene.call(Some("ann"), request(shut));
    scene.call(
        None,
        push(r#"[{"id": "p", "queue": "other"}, {"id": "c", "queue": "other", "after": ["p"]}]"#),
    );
    assert_eq!(
        scene.call(Some("ann"), cancel("p")),
        ["job.cancelled by ann", "job.cancelled"],
        "its child is cancelled because of it"
    );
    // A worker waits for a job that lacks the limit.
    let needs = r#"{"id": "waits", "queue": "q", "needs": [{"limit": "l"}]}"#;
    scene.call(None, push(needs));
    let wait = Span::from_s(60);
    let lease = Lease { wait, ..Lease::jobs(vec![QueueName::parse("q").unwrap()], 1) };
    scene.call(None, Command::Lease(Box::new(lease), TakerId::new(1)));
    assert_eq!(
        scene.call(Some("ann"), request(cap(1))),
        ["limit.changed by ann", "job.granted"],
        "the wait queue grants it"
    );
}

#[test]
fn a_refused_call_leaves_no_name_behind() {
    let mut scene = Scene::new();
    scene.call(None, push(r#"{"id": "a", "queue": "q"}"#));
    let ann = TokenName::known("ann");
    let missing = cancel("missing").by(ann.as_ref());
    let no = scene.machine.apply(&Namespace::main(), missing, NOW, &scene.store);
    assert!(no.is_err());
    assert_eq!(scene.call(None, cancel("a")), ["job.cancelled"]);
}
