//! Options that become fields, and the messages of a push beside its id.

use super::*;
use crate::args::flows::ParentFailureWord;
use tenure_core::flow::Parent;
use tenure_core::names::Group;

#[test]
fn options_become_the_fields_of_a_job() {
    let queue = QueueName::parse("q").unwrap();
    let say = SayArgs {
        kind: Some("k".into()),
        priority: Some(-3),
        group: Group::parse("g").ok(),
        needs: vec!["limit:a,weight=2".into(), "pool:p#cn".into()],
        labels: vec![("a".into(), "b=c".into())],
        ..SayArgs::default()
    };
    let when = Times { delay: Some(Span::from_s(5)), ..Times::default() };
    let unique = UniqueSaid {
        key: UniqueKey::parse("u").unwrap(),
        until: Until::Start,
        hold: None,
        on_conflict: OnConflict::Reject,
        within: Some(Span::from_s(60)),
    };
    let kin = KinArgs {
        after: vec!["a".into(), "key:k".into(), r#" {"flow":"f"}"#.into()],
        on_parent_failure: Some(ParentFailureWord::Run),
        flow: FlowName::parse("import-7").ok(),
    };
    let id = JobId::parse("i").ok();
    let job = job(&queue, Json::from(1), id, Some(unique), when, &kin, &say).unwrap();
    assert_eq!(job.id, JobId::parse("i").ok());
    assert_eq!((job.kind.as_str(), job.priority), ("k", -3));
    assert_eq!(job.when, tenure_core::job::When::In(Span::from_s(5)));
    assert_eq!(job.needs.as_ref().map(Vec::len), Some(2));
    assert_eq!(job.labels["a"], "b=c");
    let unique = job.unique.unwrap();
    assert_eq!((unique.until, unique.on_conflict), (Until::Start, OnConflict::Reject));
    assert_eq!(unique.within, Some(Span::from_s(60)));
    assert_eq!(job.after.len(), 3);
    assert!(matches!(&job.after[2].parent, Parent::Flow(flow) if flow.as_str() == "f"));
    assert_eq!(job.on_parent_failure, OnParentFailure::Run);
    assert_eq!(job.flow.unwrap().as_str(), "import-7");
}

#[test]
fn what_breaks_a_bound_is_wrong_usage() {
    let queue = QueueName::parse("q").unwrap();
    for say in [
        SayArgs { kind: Some("x".repeat(129)), ..SayArgs::default() },
        SayArgs { needs: vec!["limit:".into()], ..SayArgs::default() },
        SayArgs { needs: vec!["limit:a".into(); 2], ..SayArgs::default() },
        SayArgs { labels: vec![("a".into(), "b".into()); 2], ..SayArgs::default() },
    ] {
        let job =
            job(&queue, Json::null(), None, None, Times::default(), &KinArgs::default(), &say);
        assert_eq!(job.unwrap_err().code, 2);
    }
    for after in ["", "key:", "{", "[]x", r#"{"job":1}"#, r#"{"flow":"f","job":"a"}"#] {
        let kin = KinArgs { after: vec![after.into()], ..KinArgs::default() };
        let job =
            job(&queue, Json::null(), None, None, Times::default(), &kin, &SayArgs::default());
        // An id may be any text but an empty one, and one that begins like JSON.
        assert_eq!(job.map_err(|no| no.code).err(), (after != "[]x").then_some(2), "{after}");
    }
}

#[test]
fn a_push_that_meets_a_job_says_which_and_how_it_stands() {
    let now = Moment::from_us(1_000_000_000_000);
    let ago = |s| now.minus(Span::from_s(s));
    let id = |text| JobId::parse(text).unwrap();
    let job = |state, at: Option<Moment>| {
        let mut job = tenure_testkit::fake::job(1);
        job.id = id("two");
        (job.state, job.created_at, job.started_at, job.finished_at) = (state, ago(61), at, at);
        job.run_at = now.plus(Span::from_s(300));
        job
    };
    let pushed = |job, duplicate, replaced| PushedJob { job, duplicate, replaced, workers: None };
    let by_id = Meant { id: Some(id("two")), key: None };
    for (state, at, said) in [
        (JobState::Cancelled, Some(ago(252)), "cancelled 4m12s ago"),
        (JobState::Succeeded, Some(ago(7)), "succeeded 7s ago"),
        (JobState::Failed, Some(ago(7)), "failed 7s ago"),
        (JobState::Running, Some(ago(7)), "running for 7s"),
        (JobState::Ready, None, "ready, pushed 1m1s ago"),
        (JobState::Blocked, None, "blocked, pushed 1m1s ago"),
        (JobState::Dependent, None, "dependent, pushed 1m1s ago"),
        (JobState::Scheduled, None, "scheduled, runs in 5m0s"),
    ] {
        let told = there_already(&pushed(job(state, at), true, false), &id("two"), &by_id, now);
        let want = format!("'two' already exists ({said}): nothing was pushed");
        assert_eq!(told, Some(want));
    }
    let ready = || job(JobState::Ready, None);
    let by_key = Meant { id: None, key: UniqueKey::parse("daily").ok() };
    let other = id("job_made");
    assert_eq!(
        there_already(&pushed(ready(), true, false), &other, &by_key, now).unwrap(),
        "'two' holds the unique key 'daily' (ready, pushed 1m1s ago): nothing was pushed"
    );
    assert_eq!(
        there_already(&pushed(ready(), true, true), &other, &by_key, now).unwrap(),
        "'two' holds the unique key 'daily': it has the new content now, and no second job was pushed"
    );
    // A new job, and a push of ours that was sent twice, are none.
    assert_eq!(there_already(&pushed(ready(), false, false), &id("two"), &by_id, now), None);
    assert_eq!(there_already(&pushed(ready(), true, false), &id("two"), &by_key, now), None);
}
