//! Leases, extends and settles; workers, stats, the audit.

use tenure::core::job::JobState;
use tenure::core::lease::ExtendItem;
use tenure::core::requests::*;
use tenure::{Json, Span};

use super::words::*;
use super::{Row, row};

pub(super) fn rows() -> Vec<Row> {
    use Reply as R;
    let extend = |item: &str, progress| ExtendItem { lease: item.to_owned(), progress };
    vec![
        row!(
            jobs_call(),
            "POST /v1/leases",
            r#"{"queues":["größe b","b"],"max":3,"wait":"5s","ttl":"30s",
                "worker":{"id":"w1","host":"h","pid":42},"request_id":"r1"}"#,
            200,
            format!(r#"{{"leases":[{}]}}"#, LEASE.replace(r#""job":null"#, &format!(r#""job":{JOB}"#))),
            R::Lease(leased) if leased.leases[0].job.is_some()
                && leased.leases[0].resources[0].data.text() == r#"{"password":"x"}"#
        ),
        row!(
            needs_call(),
            "POST /v1/leases",
            r#"{"needs":[{"limit":"site:a.b","weight":2,"cost":0}],"ttl":"0s",
                "request_id":"r2","place":"r1"}"#,
            200,
            r#"{"leases":[{"lease":null,"fence":9,"limits":["llm:tokens"]}]}"#,
            R::Lease(leased) if leased.leases[0].lease.is_none() && leased.leases[0].fence.get() == 9
        ),
        row!(
            Lease::needs(needs()),
            "POST /v1/leases",
            format!(r#"{{"needs":{NEEDS},"ttl":"30s"}}"#),
            200,
            r#"{"leases":[],"next_at":"2026-12-01T09:55:00.000000Z","reasons":[]}"#,
            R::Lease(leased) if leased.next_at.is_some()
        ),
        row!(
            Extend {
                leases: vec![extend("l1", None), extend("l2", Some(Json::of(&[1]).unwrap()))],
                ttl: Some(Span::from_s(60)),
            },
            "POST /v1/leases/extend",
            r#"{"leases":["l1",{"lease":"l2","progress":[1]}],"ttl":"1m"}"#,
            200,
            r#"{"extended":[{"lease":"l1","expires_at":"2026-12-01T09:55:00.000000Z"}],
                "lost":["l2"],"cancel":["l1"],"new":1}"#,
            R::Extend(extended) if extended.lost == ["l2"] && extended.cancel == ["l1"]
        ),
        row!(
            Extend { leases: vec![], ttl: None },
            "POST /v1/leases/extend",
            r#"{"leases":[]}"#,
            200,
            r#"{"extended":[],"lost":[],"cancel":[]}"#,
            R::Extend(_)
        ),
        row!(
            Settle::of(settles()),
            "POST /v1/leases/settle",
            SETTLES,
            200,
            format!(
                r#"{{"settled":[{{"lease":"l1","ok":true,"state":"succeeded","run_at":null,
                    "pushed":[{}]}},{{"lease":"l2","ok":false,"code":"already_settled"}}]}}"#,
                JOB.replace(r#""new":1"#, r#""duplicate":false"#)
            ),
            R::Settle(settled) if settled.settled[0].pushed[0].job.id.as_str() == "j1"
                && settled.settled[1].code == Some(tenure::Code::AlreadySettled)
        ),
        row!(
            Settle { settle: vec![], lease: Some(Box::new(jobs_call())) },
            "POST /v1/leases/settle",
            r#"{"settle":[],"lease":{"queues":["größe b","b"],"max":3,"wait":"5s","ttl":"30s",
                "worker":{"id":"w1","host":"h","pid":42},"request_id":"r1"}}"#,
            200,
            format!(r#"{{"settled":[],"leases":[{LEASE}],"next_at":null}}"#),
            R::Settle(settled) if matches!(&settled.lease, Some(Ok(leased)) if leased.leases.len() == 1)
        ),
        row!(
            Settle { settle: vec![], lease: Some(Box::new(needs_call())) },
            "POST /v1/leases/settle",
            r#"{"settle":[],"lease":{"needs":[{"limit":"site:a.b","weight":2,"cost":0}],
                "ttl":"0s","request_id":"r2","place":"r1"}}"#,
            200,
            r#"{"settled":[],"leases":[],"next_at":null,"refused":{"type":"t","title":"T","status":422,
                "code":"unknown_limit","detail":"d","hint":"h","pointer":"/lease/needs/0/limit"}}"#,
            R::Settle(settled) if matches!(&settled.lease, Some(Err(no))
                if no.code == tenure::Code::UnknownLimit && no.detail == "d"
                    && no.pointer.as_deref() == Some("/lease/needs/0/limit"))
        ),
        row!(
            ListLeases {
                queue: Some(queue()),
                limit: Some(limit()),
                pool: Some(pool()),
                worker: Some("w 1".to_owned()),
                page: page(),
            },
            "GET /v1/leases?queue=gr%C3%B6%C3%9Fe%20b&limit=site:a.b&pool=p&worker=w%201&max=7\
             &cursor=a%2Bb%2F%3D",
            "",
            200,
            list(SUMMARY),
            R::ListLeases(leases) if leases.items.len() == 1
        ),
        row!(
            ForceLease { lease: "l/1".to_owned() },
            "DELETE /v1/leases/l%2F1",
            "",
            204,
            "",
            R::ForceLease(())
        ),
        row!(
            ListWorkers { page: page() },
            "GET /v1/workers?max=7&cursor=a%2Bb%2F%3D",
            "",
            200,
            list(WORKER),
            R::ListWorkers(_)
        ),
        row!(
            GetStats,
            "GET /v1/stats",
            "",
            200,
            r#"{"jobs":{"ready":1},"queues":{"q":{"ready":1}},"leases":0,"oldest_ready_at":null,
                "schedules":{"count":3,"paused":2,"due":1,
                    "oldest_due_at":"2026-12-01T08:00:00.000000Z"},
                "store":{"kind":"embedded","bytes":1}}"#,
            R::GetStats(stats) if stats.jobs[&JobState::Ready] == 1
                && (stats.schedules.count, stats.schedules.paused, stats.schedules.due) == (3, 2, 1)
                && stats.schedules.oldest_due_at == "2026-12-01T08:00:00Z".parse().ok()
        ),
        row!(
            Audit::default(),
            "GET /v1/audit",
            "",
            200,
            r#"{"ok":false,"checked":1,"faults":["f"]}"#,
            R::Audit(audit) if audit.faults == ["f"]
        ),
        row!(
            Audit { deep: true },
            "GET /v1/audit?deep=true",
            "",
            200,
            r#"{"ok":true,"checked":1,"faults":[]}"#,
            R::Audit(audit) if audit.ok
        ),
    ]
}
