//! Pushing, listing and changing jobs.

use tenure::core::job::Labels;
use tenure::core::names::Group;
use tenure::core::progress::ProgressSeen;
use tenure::core::requests::*;
use tenure::{Json, Span, When};

use super::words::*;
use super::{Row, row};

pub(super) fn rows() -> Vec<Row> {
    use Reply as R;
    let push = |jobs, answer| Push { jobs, answer };
    let mut patch = PatchJob::new(id());
    patch.when = Patch::Set(When::At(at()));
    patch.priority = Patch::Reset;
    patch.payload = Patch::Set(Json::parse(r#"{"n": 1.50}"#).unwrap());
    patch.needs = Patch::Set(vec![]);
    patch.group = Patch::Set(Group::parse("g").unwrap());
    patch.labels = Patch::Set(Labels::new());
    patch.timeout = Patch::Set(Span::from_s(1));
    patch.expires_at = Patch::Reset;
    let when = |when| {
        let mut patch = PatchJob::new(key());
        patch.when = when;
        patch
    };
    let pushed = format!(
        "[{},{}]",
        JOB.replace(r#""new":1"#, r#""duplicate":true,"replaced":true"#),
        JOB.replace(r#""new":1"#, r#""duplicate":false,"workers":0"#)
    );
    vec![
        row!(
            push(vec![whole_job(), plain_job(When::At(at()))], PushAnswer::Whole),
            "POST /v1/jobs",
            format!(
                r#"[{},{{"queue":"q","run_at":"2026-12-01T09:55:00.000000Z"}}]"#,
                WHOLE_JOB.replace("NEEDS", NEEDS)
            ),
            200,
            pushed.clone(),
            R::Push(Pushed::Whole(jobs)) if jobs[0].replaced
                && jobs[0].job.payload.as_ref().is_some_and(|json| json.text() == r#"{"n": 1.50}"#)
                && jobs[1].workers == Some(0)
        ),
        row!(
            push(vec![plain_job(When::Now)], PushAnswer::Ids),
            "POST /v1/jobs",
            r#"[{"queue":"q"}]"#,
            200,
            pushed,
            R::Push(Pushed::Ids(ids)) if ids[0].duplicate && ids[1].workers == Some(0)
        ),
        row!(
            push(vec![plain_job(When::Now)], PushAnswer::Ids),
            "POST /v1/jobs",
            r#"[{"queue":"q"}]"#,
            201,
            r#"{"id":"j1","duplicate":false}"#,
            R::Push(Pushed::Ids(ids)) if ids.len() == 1
        ),
        row!(GetJob { job: id() }, "GET /v1/jobs/j1", "", 200, JOB, R::GetJob(_)),
        row!(GetJob { job: key() }, "GET /v1/jobs/key:meeting%2F42", "", 200, JOB, R::GetJob(_)),
        row!(
            GetResult { job: id(), wait: Span::ZERO, seen: None },
            "GET /v1/jobs/j1/result",
            "",
            200,
            RESULT,
            R::GetResult(result) if result.result.as_ref().is_some_and(|json| json.text() == "1.50")
        ),
        row!(
            GetResult { job: key(), wait: Span::from_ms(1_500), seen: Some(ProgressSeen::Nothing) },
            "GET /v1/jobs/key:meeting%2F42/result?wait=1s500ms&seen=none",
            "",
            200,
            JOB,
            R::GetResult(result) if result.finished_at.is_none()
        ),
        row!(
            ListJobs { filter: filter(), page: page(), full: true },
            "GET /v1/jobs?full=true&queue=gr%C3%B6%C3%9Fe%20b&state=ready%2Cblocked&kind=fetch%20page\
             &label=k:a%26b%3Dc&error=timed%20out%20%26%20gone\
             &finished_after=2026-12-01T09:55:00.000000Z\
             &finished_before=2026-12-01T09:55:00.000000Z&max=7&cursor=a%2Bb%2F%3D",
            "",
            200,
            list(JOB).replace(r#""next":null"#, r#""next":"c","partial":true"#),
            R::ListJobs(jobs) if jobs.partial && jobs.next.as_deref() == Some("c")
        ),
        row!(ListJobs::default(), "GET /v1/jobs?max=100", "", 200, list(JOB), R::ListJobs(_)),
        row!(
            patch,
            "PATCH /v1/jobs/j1",
            r#"{"run_at":"2026-12-01T09:55:00.000000Z","priority":null,"payload":{"n": 1.50},
                "needs":[],"group":"g","labels":{},"timeout":"1s","expires_at":null}"#,
            200,
            JOB,
            R::PatchJob(_)
        ),
        row!(
            when(Patch::Set(When::In(Span::from_s(5)))),
            "PATCH /v1/jobs/key:meeting%2F42",
            r#"{"delay":"5s"}"#,
            200,
            JOB,
            R::PatchJob(_)
        ),
        row!(
            when(Patch::Reset),
            "PATCH /v1/jobs/key:meeting%2F42",
            r#"{"run_at":null}"#,
            200,
            JOB,
            R::PatchJob(_)
        ),
        row!(DeleteJob { job: id() }, "DELETE /v1/jobs/j1", "", 204, "", R::DeleteJob(())),
        row!(CancelJob { job: id() }, "POST /v1/jobs/j1/cancel", "", 200, JOB, R::CancelJob(_)),
        row!(
            RetryJob { job: id(), finished_at: None },
            "POST /v1/jobs/j1/retry",
            "{}",
            200,
            JOB,
            R::RetryJob(_)
        ),
        row!(
            RetryJob { job: id(), finished_at: Some(at()) },
            "POST /v1/jobs/j1/retry",
            r#"{"finished_at":"2026-12-01T09:55:00.000000Z"}"#,
            200,
            JOB,
            R::RetryJob(_)
        ),
        row!(RunJobNow { job: id() }, "POST /v1/jobs/j1/run-now", "", 200, JOB, R::RunJobNow(_)),
        row!(
            CancelJobs { filter: filter(), max: 1000, cursor: Some("17".to_owned()) },
            "POST /v1/jobs/cancel",
            r#"{"queue":"größe b","state":"ready,blocked","kind":"fetch page","label":"k:a&b=c",
                "error":"timed out & gone","finished_after":"2026-12-01T09:55:00.000000Z",
                "finished_before":"2026-12-01T09:55:00.000000Z","max":1000,"cursor":"17"}"#,
            200,
            r#"{"done":3,"more":true,"next":"7"}"#,
            R::CancelJobs(DoneMany { done: 3, more: true, next: Some(_) })
        ),
        row!(
            RetryJobs { filter: of_queue(), max: 10, cursor: None },
            "POST /v1/jobs/retry",
            r#"{"queue":"größe b","max":10}"#,
            200,
            // The answer of a server that knows no cursor.
            r#"{"done":0,"more":false}"#,
            R::RetryJobs(DoneMany { next: None, .. })
        ),
        row!(
            DeleteJobs { filter: of_queue(), max: 10, cursor: None },
            "POST /v1/jobs/delete",
            r#"{"queue":"größe b","max":10}"#,
            200,
            r#"{"done":2,"more":false,"next":null}"#,
            R::DeleteJobs(DoneMany { done: 2, more: false, next: None })
        ),
        row!(
            ListFailures {
                queue: Some(queue()),
                kind: Some("fetch page".to_owned()),
                finished_after: Some(at()),
                max: 7
            },
            "GET /v1/failures?queue=gr%C3%B6%C3%9Fe%20b&kind=fetch%20page\
             &finished_after=2026-12-01T09:55:00.000000Z&max=7",
            "",
            200,
            r#"{"items":[{"queue":"q","kind":"k","error":"http #","count":3,
                "first_at":"2026-12-01T09:55:00.000000Z","last_at":"2026-12-01T09:55:00.000000Z",
                "job":"j1","new":1}],"partial":true}"#,
            R::ListFailures(found) if found.partial && found.items[0].count == 3
        ),
        row!(
            ListFailures::default(),
            "GET /v1/failures?max=100",
            "",
            200,
            r#"{"items":[],"partial":false}"#,
            R::ListFailures(found) if found.items.is_empty()
        ),
        row!(
            ExplainJob { job: id() },
            "GET /v1/jobs/j1/explain",
            "",
            200,
            r#"{"id":"j1","state":"blocked","summary":"s","reasons":[{"kind":"limit",
                "name":"scrapy","in_use":1,"capacity":1,"holders":[{"lease":"l1","holder":"w1",
                "job":"j0","since":"2026-12-01T09:55:00.000000Z"}],"position":1,"ahead":null,
                "earliest":null,"detail":"d"}],"new":1}"#,
            R::ExplainJob(why) if why.reasons[0].holders.len() == 1
        ),
    ]
}
