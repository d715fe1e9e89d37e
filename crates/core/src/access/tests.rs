use super::*;
use crate::decode;
use crate::events::{About, Event, EventId, Happened};
use crate::job::{JobError, JobState, JobView, Outcome, PushedJob};
use crate::lease::{Fence, LeaseView, Leased, LeasedResource, SettledLease};
use crate::names::{JobId, Namespace, PoolName, QueueName, ResourceId};
use crate::refusal::Code;
use crate::requests::*;
use crate::secret::{HIDDEN, Json};
use crate::time::Moment;

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

fn given(scopes: &[&str]) -> GivenGrants {
    GivenGrants {
        name: "crawler".to_owned(),
        scopes: texts(scopes),
        namespaces: texts(&["web", "web-*"]),
        ..GivenGrants::default()
    }
}

fn grants(scopes: &[&str]) -> Grants {
    Grants::read(&given(scopes)).unwrap()
}

/// With push, work and these queues and needs.
fn restricted(queues: &[&str], needs: &[&str]) -> Grants {
    let (queues, needs) = (Some(texts(queues)), Some(texts(needs)));
    Grants::read(&GivenGrants { queues, needs, ..given(&["push", "work"]) }).unwrap()
}

fn web() -> Namespace {
    Namespace::parse("web").unwrap()
}

#[test]
fn read_contains_view_and_no_other_scope_contains_one() {
    for scope in Scope::ALL {
        let set = ScopeSet::from_iter([*scope]);
        let has: Vec<Scope> = Scope::ALL.iter().copied().filter(|one| set.has(*one)).collect();
        match scope {
            Scope::Read => assert_eq!(has, [Scope::View, Scope::Read]),
            other => assert_eq!(has, [*other]),
        }
        assert_eq!(scope.as_str().parse(), Ok(*scope));
    }
    assert_eq!(ScopeSet::all().iter().count(), Scope::ALL.len());
    assert_eq!(ScopeSet::all().to_string(), "metrics, view, read, push, work, operate and admin");
    assert_eq!(ScopeSet::default().to_string(), "none");
}

#[test]
fn a_listed_token_has_a_name_of_its_own_and_others_have_none() {
    let name = |grants: &Grants| grants.token_name().map(|name| name.to_string());
    let long = Grants::all_by_name(&format!("token-{}", "1".repeat(80)));
    for (grants, expected) in [
        (Some(grants(&["admin"])), Some("crawler")),
        (Some(Grants::all_of_token(1)), None),
        (Some(Grants::all_of_anyone()), None),
        (Grants::all_by_name("anyone"), None),
        (Some(Grants::nothing()), None),
        // Only a server that knows the secret of the servers can send it, and no event may hold it.
        (long, None),
    ] {
        assert_eq!(name(&grants.unwrap()).as_deref(), expected);
    }
    for text in ["", "-a", "A", "a b", "é", &"a".repeat(49)] {
        assert_eq!(TokenName::known(text), None, "{text:?}");
    }
}

#[test]
fn grants_that_say_less_than_they_seem_are_refused() {
    type Change = fn(&mut GivenGrants);
    let cases: [(&str, Change); 18] = [
        ("must have 1 to 48 characters", |of| of.name = String::new()),
        ("must have 1 to 48 characters", |of| of.name = "Crawler".to_owned()),
        ("must have 1 to 48 characters", |of| of.name = "a_b".to_owned()),
        ("is reserved", |of| of.name = "token-1".to_owned()),
        ("is reserved", |of| of.name = "anyone".to_owned()),
        ("there is no scope \"write\"", |of| of.scopes = texts(&["write"])),
        ("\"scopes\" is empty", |of| of.scopes.clear()),
        ("\"namespaces\" is empty", |of| of.namespaces.clear()),
        ("stands at the end alone", |of| of.namespaces = texts(&["*-web"])),
        ("\"Web\"", |of| of.namespaces = texts(&["Web"])),
        ("limit:NAME", |of| of.needs = Some(texts(&["proxies"]))),
        ("restricts push and work alone", |of| {
            of.scopes.push("operate".to_owned());
            of.queues = Some(texts(&["q"]));
        }),
        ("restricts push and work alone", |of| {
            of.scopes.push("admin".to_owned());
            of.needs = Some(texts(&["pool:p"]));
        }),
        ("\"calls\" is \"200\"", |of| of.calls = Some("200".to_owned())),
        ("\"calls\" is \"0/1s\"", |of| of.calls = Some("0/1s".to_owned())),
        ("\"calls\" is \"1/0s\"", |of| of.calls = Some("1/0s".to_owned())),
        ("must be 1 or more", |of| of.in_flight = Some(0)),
        ("has neither", |of| {
            of.scopes = texts(&["view"]);
            of.queues = Some(texts(&["q"]));
        }),
    ];
    for (why, change) in cases {
        let mut one = given(&["push"]);
        change(&mut one);
        let no = Grants::read(&one).map(|_| ()).unwrap_err().to_string();
        assert!(no.contains(why), "{no}");
    }
}

#[test]
fn a_pattern_is_a_name_or_the_beginning_of_names() {
    let read = |pattern: &str| Patterns::<QueueName>::read("queues", &[pattern]);
    for (pattern, name, matches) in [
        ("crawl", "crawl", true),
        ("crawl", "crawler", false),
        ("crawl*", "crawl", true),
        ("crawl*", "crawler", true),
        ("crawl*", "Crawl", false),
        ("*", "crawl", true),
    ] {
        let name = QueueName::parse(name).unwrap();
        assert_eq!(read(pattern).unwrap().match_name(&name), matches, "{pattern} {name}");
    }
    for pattern in ["", "a*b", "**", "a/b", " a"] {
        assert!(read(pattern).is_err(), "{pattern:?}");
    }
}

#[test]
fn a_call_needs_its_scope_and_its_namespace() {
    let cancel = Request::from(CancelJob { job: decode::job_path("j").unwrap() });
    let no = grants(&["push", "work"]).permit(&web(), &cancel).unwrap_err();
    assert_eq!(no.code, Code::Forbidden);
    assert_eq!(
        no.detail,
        "the token \"crawler\" lacks the scope \"operate\" for cancel_job; it has push and work"
    );
    let operator = grants(&["operate"]);
    assert_eq!(operator.permit(&web(), &cancel), Ok(()));
    for (namespace, may) in [("web", true), ("web-2", true), ("webs", false), ("default", false)] {
        let namespace = Namespace::parse(namespace).unwrap();
        assert_eq!(operator.permit(&namespace, &cancel).is_ok(), may, "{namespace}");
    }
    let no = operator.may_enter(&Namespace::main()).unwrap_err();
    let is = "the token \"crawler\" may not use the namespace \"default\"; it may use \"web\", \"web-*\"";
    assert_eq!(no.detail, is);
    assert_eq!((operator.home(), Grants::all_of_anyone().home()), (Some(web()), None));
}

fn push(body: &str) -> Request {
    let jobs = decode::push(body.as_bytes()).unwrap();
    Push { jobs, answer: PushAnswer::Whole }.into()
}

fn lease(body: &str) -> Request {
    decode::lease(body.as_bytes()).unwrap().into()
}

fn settle(body: &str) -> Request {
    decode::settle(body.as_bytes()).unwrap().into()
}

#[test]
fn pushes_and_leases_name_queues_and_needs_of_the_token() {
    let token = restricted(&["crawl", "parse-*"], &["limit:site:*", "pool:proxies"]);
    let place = |request: &Request| match token.permit(&web(), request) {
        Ok(()) => None,
        Err(no) => Some((no.code, no.index, no.pointer)),
    };
    let closed = |index, pointer: &str| Some((Code::Forbidden, index, Some(pointer.to_owned())));
    for (request, is) in [
        (push(r#"{"queue":"crawl","needs":[{"limit":"site:a"},{"pool":"proxies"}]}"#), None),
        (push(r#"[{"queue":"parse-1"},{"queue":"mail"}]"#), closed(Some(1), "/queue")),
        (
            push(r#"{"queue":"crawl","needs":[{"limit":"site:a"},{"pool":"accounts"}]}"#),
            closed(Some(0), "/needs/1"),
        ),
        (push(r#"{"queue":"crawl","needs":[{"limit":"sites"}]}"#), closed(Some(0), "/needs/0")),
        (lease(r#"{"queues":["crawl","parse-x"]}"#), None),
        (lease(r#"{"queues":["crawl","mail"]}"#), closed(None, "/queues/1")),
        (lease(r#"{"needs":[{"limit":"site:a"}]}"#), None),
        (lease(r#"{"needs":[{"pool":"accounts"}]}"#), closed(None, "/needs/0")),
        (
            settle(
                r#"{"settle":[{"lease":"L","outcome":"succeeded","push":[{"queue":"crawl"}]}]}"#,
            ),
            None,
        ),
        (
            settle(r#"{"settle":[{"lease":"L","outcome":"succeeded","push":[{"queue":"mail"}]}]}"#),
            closed(Some(0), "/settle/0/push/0/queue"),
        ),
    ] {
        assert_eq!(place(&request), is, "{request:?}");
        assert_eq!(Grants::all_of_anyone().permit(&web(), &request), Ok(()));
    }
}

#[test]
fn a_follow_up_needs_push() {
    let follow_up =
        settle(r#"{"settle":[{"lease":"L","outcome":"succeeded","push":[{"queue":"q"}]}]}"#);
    let no = grants(&["work"]).permit(&web(), &follow_up).unwrap_err();
    assert_eq!(no.pointer.as_deref(), Some("/settle/0/push/0"));
    assert!(no.detail.contains("lacks the scope \"push\" for push"), "{no}");
    assert_eq!(grants(&["work", "push"]).permit(&web(), &follow_up), Ok(()));
}

#[test]
fn a_settle_stands_without_the_lease_that_is_refused() {
    let text = r#"{"settle":[{"lease":"L","outcome":"succeeded"}],"lease":{"request_id":"r","queues":["mail"]}}"#;
    let (token, mut call) = (restricted(&["crawl"], &[]), settle(text));
    assert_eq!(token.permit(&web(), &call), Ok(()));
    let no = token.without_refused_lease(&mut call).unwrap();
    assert_eq!((no.code, no.pointer.as_deref()), (Code::Forbidden, Some("/lease/queues/0")));
    assert!(matches!(&call, Request::Settle(settle) if settle.lease.is_none()));
    let mut all = settle(text);
    assert_eq!(Grants::all_of_anyone().without_refused_lease(&mut all), None);
    assert_eq!(all, settle(text));
}

#[test]
fn a_filter_by_errors_needs_read() {
    let filter = || JobFilter { error: Some("x".to_owned()), ..JobFilter::default() };
    let many = |filter| CancelJobs { filter, max: 1, cursor: None };
    for (scopes, list, cancel) in [
        (&["view", "operate"][..], false, false),
        (&["read", "operate"], true, true),
        (&["read"], true, false),
    ] {
        let token = grants(scopes);
        let asked = ListJobs { filter: filter(), ..ListJobs::default() };
        assert_eq!(token.permit(&web(), &asked.into()).is_ok(), list, "{scopes:?}");
        assert_eq!(token.permit(&web(), &many(filter()).into()).is_ok(), cancel, "{scopes:?}");
    }
    assert_eq!(grants(&["view"]).permit(&web(), &ListJobs::default().into()), Ok(()));
}

const CONTENT: &str = "s3cret";
const LEASE: &str = "lease-7";

fn job() -> JobView {
    let content = || Some(Json::from(CONTENT));
    let (id, queue) = (JobId::parse("j").unwrap(), QueueName::parse("q").unwrap());
    let error = JobError {
        attempt: 1,
        at: Moment::ZERO,
        error: CONTENT.to_owned(),
        outcome: Outcome::Failed,
    };
    JobView {
        payload: content(),
        result: content(),
        progress: content(),
        error: Some(CONTENT.to_owned()),
        errors: vec![error],
        lease: Some(LEASE.to_owned()),
        ..JobView::bare(id, queue, JobState::Running, Moment::ZERO)
    }
}

/// Whether the reply, as a caller with these scopes sees it, has a content.
fn shown(scopes: &[&str], mut reply: Reply) -> bool {
    grants(scopes).conceal(&mut reply);
    let text = match reply {
        Reply::GetJob(job) => serde_json::to_string(&job),
        Reply::ListJobs(jobs) => serde_json::to_string(&jobs.items),
        Reply::Push(Pushed::Whole(jobs)) => serde_json::to_string(&jobs),
        Reply::Settle(settled) => serde_json::to_string(&settled.settled),
        Reply::ReadEvents(read) => serde_json::to_string(&read),
        other => panic!("{other:?}"),
    };
    text.unwrap().contains(CONTENT)
}

#[test]
fn contents_are_for_read_alone() {
    let about = About { error: Some(CONTENT.to_owned()), ..About::default() };
    let happened = Happened::new(Moment::ZERO, crate::events::EventType::JobFailed, about);
    let event = Event { id: EventId { life: 1, number: 1 }, happened };
    let events = EventsRead { items: vec![event], ..EventsRead::default() };
    for (scopes, sees) in [
        (&["view"][..], false),
        (&["read"], true),
        (&["view", "operate"], false),
        (&["view", "work", "push", "admin"], false),
    ] {
        let jobs = Listed { items: vec![job()], next: None, partial: false };
        for reply in [
            Reply::GetJob(Box::new(job())),
            Reply::ListJobs(jobs),
            Reply::ReadEvents(events.clone()),
        ] {
            assert_eq!(shown(scopes, reply), sees, "{scopes:?}");
        }
    }
}

#[test]
fn a_push_shows_a_job_of_another_caller_without_its_contents() {
    for (duplicate, replaced, sees) in
        [(false, false, true), (true, false, false), (true, true, false)]
    {
        let pushed = || vec![PushedJob { job: job(), duplicate, replaced, workers: None }];
        let settled: SettledLease = serde_json::from_str(r#"{"lease":"L","ok":true}"#).unwrap();
        let settled = SettledLease { pushed: pushed(), ..settled };
        let settle = Settled { settled: vec![settled], lease: None };
        for reply in [Reply::Push(Pushed::Whole(pushed())), Reply::Settle(settle)] {
            assert_eq!(shown(&["push", "work"], reply), sees, "{duplicate} {replaced}");
        }
    }
}

#[test]
fn a_lease_has_the_data_of_those_pools_alone_that_the_token_names() {
    let resource = |pool: &str| LeasedResource {
        pool: PoolName::parse(pool).unwrap(),
        id: ResourceId::parse("r").unwrap(),
        data: Json::from(CONTENT),
        tags: Vec::new(),
    };
    let lease = LeaseView {
        lease: Some(LEASE.to_owned()),
        fence: Fence::default(),
        holder: String::new(),
        granted_at: Moment::ZERO,
        expires_at: Moment::ZERO,
        deadline: None,
        job: Some(Box::new(job())),
        resources: vec![resource("proxies"), resource("accounts")],
        limits: Vec::new(),
    };
    let leased = Leased { leases: vec![lease], ..Leased::default() };
    let next = Settled { settled: Vec::new(), lease: Some(Ok(leased.clone())) };
    for mut reply in [Reply::Lease(leased), Reply::Settle(next)] {
        restricted(&["q"], &["pool:proxies"]).conceal(&mut reply);
        let (Reply::Lease(leased) | Reply::Settle(Settled { lease: Some(Ok(leased)), .. })) =
            &reply
        else {
            panic!("{reply:?}")
        };
        let lease = &leased.leases[0];
        let data: Vec<&str> = lease.resources.iter().map(|one| one.data.text()).collect();
        assert_eq!(data, [format!("{CONTENT:?}"), format!("{HIDDEN:?}")]);
        assert_eq!(lease.lease.as_deref(), Some(LEASE));
        assert_eq!(lease.job.as_deref(), Some(&job()), "the holder sees its job");
    }
}

#[test]
fn the_reference_has_each_operation_beside_its_scope() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let page = std::fs::read_to_string(docs.join("tokens.md")).unwrap();
    for scope in Scope::ALL {
        let of_scope = OPERATIONS.iter().filter(|spec| spec.scope == *scope);
        let names: Vec<String> = of_scope.map(|spec| format!("`{}`", spec.name)).collect();
        let row = format!("| `{scope}` | {} | {} |", scope.about(), names.join(", "));
        assert!(page.contains(&row), "docs/reference/tokens.md has no row {row}");
    }
}

#[test]
fn the_scopes_of_the_table_are_those_that_were_decided() {
    let of = |scope: Scope| {
        let mut names: Vec<&str> =
            OPERATIONS.iter().filter(|spec| spec.scope == scope).map(|spec| spec.name).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(of(Scope::Push), ["push"]);
    assert_eq!(of(Scope::Work), ["extend", "lease", "list_parents", "settle"]);
    assert!(of(Scope::Metrics).is_empty() && of(Scope::Read).is_empty());
    for spec in OPERATIONS {
        let reads = spec.effect == Some(Effect::Reads);
        let views = spec.scope == Scope::View || spec.name == "list_parents";
        assert_eq!(reads, views, "{}", spec.name);
        let is_setting = ["put_", "sync_", "add_"].iter().any(|verb| spec.name.starts_with(verb));
        assert!(!is_setting || spec.scope == Scope::Admin, "{}", spec.name);
    }
}
