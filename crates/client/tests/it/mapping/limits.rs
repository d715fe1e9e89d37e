//! Limits.

use tenure::core::gauge::{Gauge, GaugeAddress, GaugeSource, OnStale};
use tenure::core::requests::*;
use tenure::core::settings::LimitSettings;
use tenure::{Later, LimitName, Span};

use super::words::*;
use super::{Row, row};

fn gauge() -> Gauge {
    let scrapyd = GaugeAddress::parse("http://me:p@host").unwrap();
    let (every, lag, stale) = (Span::from_s(2), Span::from_s(10), Span::from_s(30));
    let source = GaugeSource::Scrapyd { scrapyd, project: None };
    Gauge { source, every, lag, stale, on_stale: OnStale::Hold }
}

pub(super) fn rows() -> Vec<Row> {
    use Reply as R;
    let all = LimitName::parse("site:*").unwrap();
    vec![
        row!(
            ListLimits::default(),
            "GET /v1/limits?max=100",
            "",
            200,
            list(LIMIT),
            R::ListLimits(_)
        ),
        row!(
            GetLimit { limit: all.clone() },
            "GET /v1/limits/site:*",
            "",
            200,
            LIMIT,
            R::GetLimit(view) if view.settings.rate.is_some()
        ),
        row!(
            PutLimit {
                limit: all,
                settings: LimitSettings {
                    concurrency: Some(0),
                    rate: Some(rate()),
                    gap: None,
                    quarantine: Span::from_s(60),
                },
                gauge: None,
            },
            "PUT /v1/limits/site:*",
            r#"{"concurrency":0,"rate":{"count":10,"per":"1s","burst":2},"gap":null,"quarantine":"1m"}"#,
            200,
            LIMIT,
            R::PutLimit(Put { created: false, .. })
        ),
        row!(
            PatchLimit {
                limit: limit(),
                concurrency: Patch::Set(2),
                rate: Patch::Reset,
                gap: Patch::Set(Span::from_ms(1_500)),
                quarantine: Patch::Set(Span::from_s(2)),
                gauge: Patch::Keep,
            },
            "PATCH /v1/limits/site:a.b",
            r#"{"concurrency":2,"rate":null,"gap":"1s500ms","quarantine":"2s"}"#,
            200,
            LIMIT,
            R::PatchLimit(Put { created: false, .. })
        ),
        row!(
            PutLimit {
                limit: limit(),
                settings: LimitSettings { concurrency: Some(4), ..LimitSettings::default() },
                gauge: Some(Box::new(gauge())),
            },
            "PUT /v1/limits/site:a.b",
            r#"{"concurrency":4,"rate":null,"gap":null,"quarantine":"0s","gauge":{"scrapyd":"http://me:p@host","every":"2s","lag":"10s","stale":"30s","on_stale":"hold"}}"#,
            201,
            GAUGED,
            R::PutLimit(put) if put.view.gauge.as_ref().is_some_and(|view| view.reading.is_some())
        ),
        row!(
            PatchLimit {
                limit: limit(),
                concurrency: Patch::Keep,
                rate: Patch::Keep,
                gap: Patch::Keep,
                quarantine: Patch::Keep,
                gauge: Patch::Reset,
            },
            "PATCH /v1/limits/site:a.b",
            r#"{"gauge":null}"#,
            200,
            LIMIT,
            R::PatchLimit(put) if put.view.gauge.is_none()
        ),
        row!(
            DeleteLimit { limit: limit() },
            "DELETE /v1/limits/site:a.b",
            "",
            204,
            "",
            R::DeleteLimit(())
        ),
        row!(
            PauseLimit { limit: limit(), until: Later::Until(at()) },
            "POST /v1/limits/site:a.b/pause",
            r#"{"until":"2026-12-01T09:55:00.000000Z"}"#,
            200,
            LIMIT,
            R::PauseLimit(_)
        ),
        row!(
            ResumeLimit { limit: limit() },
            "POST /v1/limits/site:a.b/resume",
            "",
            200,
            LIMIT,
            R::ResumeLimit(_)
        ),
        row!(
            ObserveLimit { limit: limit(), external: 3, hold: Some(Span::from_s(60)) },
            "POST /v1/limits/site:a.b/observe",
            r#"{"external":3,"for":"1m"}"#,
            200,
            LIMIT,
            R::ObserveLimit(_)
        ),
        row!(
            ObserveLimit { limit: limit(), external: 0, hold: None },
            "POST /v1/limits/site:a.b/observe",
            r#"{"external":0}"#,
            200,
            LIMIT,
            R::ObserveLimit(_)
        ),
    ]
}
