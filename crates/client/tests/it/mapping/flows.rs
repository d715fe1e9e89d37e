//! Jobs that wait for each other, and flows.

use tenure::core::flow::{FlowState, ParentJob, ParentState};
use tenure::core::job::JobState;
use tenure::core::names::ScheduleId;
use tenure::core::requests::*;
use tenure::{
    After, FlowName, JobId, JobRef, NewJob, OnParentFailure, Parent, ParentView, Ref, Span, When,
};

use super::words::*;
use super::{Row, row};

const FLOW: &str = r#"{"flow":"import 7","state":"finished","cancelling":true,
    "counts":{"unfinished":0,"succeeded":8,"failed":1,"cancelled":2,"new":1},
    "created_at":"2026-12-01T09:55:00.000000Z","finished_at":"2026-12-01T09:55:00.000000Z","new":1}"#;
const PARENTS: &str = r#"{"id":"p1","state":"succeeded","error":null,
    "finished_at":"2026-12-01T09:55:00.000000Z","result":{"n": 1.50},"new":1},
    {"id":"p2","state":"gone","error":null,"finished_at":null},
    {"flow":"import 7","counts":{"unfinished":0,"succeeded":8,"failed":1,"cancelled":2},"new":1}"#;

fn flow() -> FlowName {
    FlowName::parse("import 7").unwrap()
}

/// A job with every form of a parent.
fn dependent_job() -> NewJob {
    let job = |text: &str| Parent::Job(JobRef::parse(text).unwrap());
    let entry = |(parent, gone_is_done)| After { parent, gone_is_done };
    let after = [
        (job("a"), false),
        (job("key:k"), false),
        (job("b"), true),
        (job("key:l"), true),
        (Parent::Item(Ref::parse("r").unwrap()), false),
        (Parent::Flow(flow()), false),
        (Parent::Flow(flow()), true),
    ];
    NewJob {
        after: after.map(entry).to_vec(),
        on_parent_failure: OnParentFailure::Run,
        reference: Ref::parse("me").ok(),
        flow: FlowName::parse("other").ok(),
        ..plain_job(When::Now)
    }
}

const DEPENDENT_JOB: &str = r#"{"queue":"q","after":["a","key:k",{"job":"b","gone":"done"},
    {"job":"key:l","gone":"done"},{"ref":"r"},{"flow":"import 7"},{"flow":"import 7","gone":"done"}],
    "on_parent_failure":"run","ref":"me","flow":"other"}"#;

/// The part of a job that shows its flow and its parents.
fn shown() -> String {
    let said = r#""flow":"import 7","after":["a",{"flow":"f"}],"parents":102,"waiting_on":7,
        "on_parent_failure":"run","cancelled_children":3"#;
    JOB.replace(r#""new":1"#, said)
}

fn settle() -> Settle {
    let mut item = settles().remove(6);
    item.push = vec![dependent_job()];
    Settle::of(vec![item])
}

pub(super) fn rows() -> Vec<Row> {
    use Reply as R;
    let narrow = || JobFilter {
        flow: Some(flow()),
        schedule: ScheduleId::parse("news 42").ok(),
        ..JobFilter::default()
    };
    vec![
        row!(
            Push { jobs: vec![dependent_job()], answer: PushAnswer::Ids },
            "POST /v1/jobs",
            format!("[{DEPENDENT_JOB}]"),
            201,
            r#"{"id":"j1","duplicate":false}"#,
            R::Push(Pushed::Ids(_))
        ),
        row!(
            settle(),
            "POST /v1/leases/settle",
            format!(
                r#"{{"settle":[{{"lease":"l7","outcome":"succeeded","push":[{DEPENDENT_JOB}]}}]}}"#
            ),
            200,
            r#"{"settled":[{"lease":"l7","ok":true,"state":"succeeded"}]}"#,
            R::Settle(_)
        ),
        row!(
            ListJobs { filter: narrow(), ..ListJobs::default() },
            "GET /v1/jobs?flow=import%207&schedule=news%2042&max=100",
            "",
            200,
            list(&shown()),
            R::ListJobs(jobs) if jobs.items[0].after.len() == 2
        ),
        row!(
            RetryJobs { filter: narrow(), max: 10, cursor: None },
            "POST /v1/jobs/retry",
            r#"{"flow":"import 7","schedule":"news 42","max":10}"#,
            200,
            r#"{"done":0,"more":false,"next":null}"#,
            R::RetryJobs(_)
        ),
        row!(
            RetryJob { job: id(), finished_at: None },
            "POST /v1/jobs/j1/retry",
            "{}",
            200,
            shown(),
            R::RetryJob(job) if job.cancelled_children == Some(3)
                && (job.parents, job.waiting_on) == (102, 7)
                && job.flow == Some(flow())
                && job.on_parent_failure == OnParentFailure::Run
        ),
        row!(
            ListParents { job: key(), full: true, page: page() },
            "GET /v1/jobs/key:meeting%2F42/parents?full=true&max=7&cursor=a%2Bb%2F%3D",
            "",
            200,
            list(PARENTS),
            R::ListParents(parents) if matches!(
                &parents.items[..],
                [
                    ParentView::Job(ParentJob { result: Some(result), .. }),
                    ParentView::Job(ParentJob { state: ParentState::Gone(_), result: None, .. }),
                    ParentView::Flow { counts, .. },
                ] if result.text() == r#"{"n": 1.50}"# && counts.cancelled == 2
            )
        ),
        row!(
            ListParents { job: id(), full: false, page: Page::default() },
            "GET /v1/jobs/j1/parents?max=100",
            "",
            200,
            list(""),
            R::ListParents(_)
        ),
        row!(
            ListChildren { job: id(), page: page() },
            "GET /v1/jobs/j1/children?max=7&cursor=a%2Bb%2F%3D",
            "",
            200,
            list(r#"{"id":"c","state":"dependent","on_parent_failure":"run","new":1}"#),
            R::ListChildren(children) if children.items[0].state == JobState::Dependent
                && children.items[0].id == JobId::parse("c").unwrap()
        ),
        row!(
            ListFlows { page: page() },
            "GET /v1/flows?max=7&cursor=a%2Bb%2F%3D",
            "",
            200,
            list(FLOW),
            R::ListFlows(flows) if flows.items[0].flow == flow()
        ),
        row!(
            GetFlow { flow: flow(), wait: Span::ZERO },
            "GET /v1/flows/import%207",
            "",
            200,
            FLOW,
            R::GetFlow(view) if view.state == FlowState::Finished && view.counts.succeeded == 8
        ),
        row!(
            GetFlow { flow: flow(), wait: Span::from_s(30) },
            "GET /v1/flows/import%207?wait=30s",
            "",
            200,
            FLOW,
            R::GetFlow(_)
        ),
        row!(
            CancelFlow { flow: flow() },
            "POST /v1/flows/import%207/cancel",
            "",
            200,
            FLOW,
            R::CancelFlow(view) if view.cancelling
        ),
    ]
}
