//! Schedules.

use tenure::core::names::{JobId, Owner, QueueName, ScheduleId};
use tenure::core::requests::*;
use tenure::core::schedule::{CatchUp, Overlap, ScheduleSettings, ScheduledJob, TimingSpec};
use tenure::core::secret::Json;
use tenure::{Later, Moment, Span};

use super::words::*;
use super::{Row, row};

const SCHEDULE: &str = r#"{"id":"news 42","owner":"sources","cron":"0 9 * * 1-5","zone":"Europe/Berlin","every":null,
    "starts_at":null,"ends_at":null,"jitter":"5s","overlap":"queue","catch_up":"all","catch_up_max":7,
    "job":{"queue":"news","kind":"visit","payload":{"source":42},"priority":1,"group":null,"needs":null,"retry":null,
        "timeout":"5m","retain":null,"expires_in":"1h","labels":{}},
    "summary":"fires at 2026-12-01T08:00:00.000000Z","next_at":"2026-12-01T08:00:00.000000Z",
    "next":["2026-12-01T08:00:00.000000Z"],"moved":false,"paused":false,"paused_until":null,"ended":false,"unfinished":1,
    "last":{"at":"2026-11-30T08:00:00.000000Z","job":"news 42@2026-11-30T08:00:00Z"},"last_ended":null,
    "last_succeeded_at":null,"fired":12,"skipped":3,"missed":1,"created_at":"2026-11-01T00:00:00.000000Z",
    "changed_at":"2026-11-01T00:00:00.000000Z","colour":"red"}"#;

const SETTINGS: &str = r#""owner":"sources","cron":"0 9 * * 1-5","zone":"Europe/Berlin","jitter":"5s","overlap":"queue",
    "catch_up":"all","catch_up_max":7,
    "job":{"queue":"news","kind":"visit","payload":{"source":42},"priority":1,"timeout":"5m","expires_in":"1h"}"#;

fn schedule() -> ScheduleId {
    ScheduleId::parse("news 42").unwrap()
}

fn settings() -> ScheduleSettings {
    let job = ScheduledJob {
        kind: "visit".to_owned(),
        payload: Json::parse(r#"{"source":42}"#),
        priority: 1,
        timeout: Some(Span::from_s(300)),
        expires_in: Some(Span::from_s(3_600)),
        ..ScheduledJob::new(QueueName::parse("news").unwrap())
    };
    ScheduleSettings {
        owner: Owner::parse("sources").ok(),
        timing: TimingSpec {
            cron: Some("0 9 * * 1-5".to_owned()),
            zone: Some("Europe/Berlin".to_owned()),
            jitter: Span::from_s(5),
            ..TimingSpec::default()
        },
        overlap: Overlap::Queue,
        catch_up: CatchUp::All,
        catch_up_max: 7,
        job,
    }
}

pub(super) fn rows() -> Vec<Row> {
    use Reply as R;
    let path = |tail: &str| format!("/v1/schedules/news%2042{tail}");
    vec![
        row!(
            ListSchedules { owner: Owner::parse("sources").ok(), full: true, page: page() },
            "GET /v1/schedules?owner=sources&full=true&max=7&cursor=a%2Bb%2F%3D",
            "",
            200,
            list(SCHEDULE),
            R::ListSchedules(listed) if listed.items[0].settings == settings()
        ),
        row!(
            GetSchedule { schedule: schedule() },
            format!("GET {}", path("")),
            "",
            200,
            SCHEDULE,
            R::GetSchedule(view) if view.fired == 12 && view.settings == settings()
        ),
        row!(
            PutSchedule { schedule: schedule(), settings: Box::new(settings()), plan: None },
            format!("PUT {}", path("")),
            format!("{{{SETTINGS}}}"),
            201,
            SCHEDULE,
            R::PutSchedule(Put { created: true, .. })
        ),
        row!(
            PatchSchedule {
                every: Patch::Set(Span::from_s(60)),
                starts_at: Patch::Set(Moment::from_us(1_800_000_000_000_000)),
                jitter: Patch::Reset,
                overlap: Patch::Set(Overlap::Allow),
                ..PatchSchedule::new(schedule())
            },
            format!("PATCH {}", path("")),
            r#"{"every":"1m","starts_at":"2027-01-15T08:00:00.000000Z","jitter":null,"overlap":"allow"}"#,
            200,
            SCHEDULE,
            R::PatchSchedule(Put { created: false, .. })
        ),
        row!(
            DeleteSchedule { schedule: schedule() },
            format!("DELETE {}", path("")),
            "",
            204,
            "",
            R::DeleteSchedule(())
        ),
        row!(
            PauseSchedule { schedule: schedule(), until: Some(Later::For(Span::from_s(5))) },
            format!("POST {}", path("/pause")),
            r#"{"for":"5s"}"#,
            200,
            SCHEDULE,
            R::PauseSchedule(_)
        ),
        row!(
            ResumeSchedule { schedule: schedule() },
            format!("POST {}", path("/resume")),
            "",
            200,
            SCHEDULE,
            R::ResumeSchedule(_)
        ),
        row!(
            RunScheduleNow { schedule: schedule(), id: JobId::parse("r1").ok() },
            format!("POST {}", path("/run-now")),
            r#"{"id":"r1"}"#,
            201,
            JOB.replace(r#""new":1"#, r#""duplicate":false"#),
            R::RunScheduleNow(_)
        ),
        row!(
            SyncSchedules {
                owner: Owner::parse("sources").unwrap(),
                schedules: vec![(schedule(), settings())],
                meant: Meant::Yes,
                version: Some(9),
            },
            "PUT /v1/schedules?owner=sources&force=true&version=9",
            format!(r#"[{{"id":"news 42",{SETTINGS}}}]"#),
            200,
            r#"{"added":1,"updated":0,"unchanged":0,"deleted":2}"#,
            R::SyncSchedules(done) if done.deleted == 2
        ),
    ]
}
