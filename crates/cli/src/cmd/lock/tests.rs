//! `lock` and `lease` around CMD, on a scripted engine.

use super::*;
use crate::args::leases::BondArgs;
use std::ffi::OsString;
use std::sync::Arc;
use tenure::{SettleOutcome, Verdict};
use tenure_core::lease::{Extended, Leased};
use tenure_core::names::Namespace;
use tenure_core::requests::{Put, Reply, Request};
use tenure_core::settings::{LimitSettings, LimitView};
use tenure_testkit::fake::{self, Fake, Says};

fn args(script: &str) -> HoldArgs {
    let command = ["sh", "-c", script].map(OsString::from).to_vec();
    HoldArgs {
        wait: None,
        no_wait: false,
        quiet: false,
        exit_code: 1,
        bonds: BondArgs::default(),
        command,
    }
}

/// Grants at the nth call; before it nothing is free.
fn granting(nth: usize) -> Arc<Fake> {
    let mut calls = 0;
    Fake::new(move |request, _| match request {
        Request::Lease(_) => {
            calls += 1;
            let leases = if calls == nth { vec![fake::needs_lease("L1")] } else { Vec::new() };
            Says::Now(Ok(Reply::Lease(Leased { leases, ..Leased::default() })))
        }
        Request::ForceLease(_) => Says::Now(Ok(Reply::ForceLease(()))),
        other => fake::well(other),
    })
}

async fn held(engine: &Arc<Fake>, args: HoldArgs, ttl: Span) -> Result<(), Failure> {
    let needs = json_args::needs(&["limit:lock:x".into()]).unwrap();
    let waiting = WaitTeller::new(args.quiet, "http://127.0.0.1:7171");
    hold(&Client::new(engine.clone(), Namespace::main()), "lock 'x'", needs, ttl, args, waiting)
        .await
}

fn forced(engine: &Fake) -> bool {
    engine.calls().iter().any(|(_, call)| matches!(call, Request::ForceLease(_)))
}

#[tokio::test]
async fn cmds_exit_code_is_passed_on_and_the_lease_is_given_back() {
    for (script, code) in [
        ("test \"$TENURE_FENCE\" = 7 -a \"$TENURE_LEASE\" = L1", None),
        ("exit 3", Some(3)),
        ("exit 75", Some(75)),
    ] {
        let engine = granting(1);
        let ended = held(&engine, args(script), Span::from_s(30)).await;
        assert_eq!(ended.err().map(|failure| failure.code), code, "{script}");
        assert_eq!(engine.settled(), [SettleOutcome::released().of("L1".to_owned())], "{script}");
        assert!(!forced(&engine), "{script}");
    }
}

#[tokio::test]
async fn what_a_cmd_that_was_killed_held_ends_as_after_a_crash() {
    // The second is a shell that says how its own command ended.
    for (script, code) in [("kill -9 $$", 137), ("sh -c 'kill -SEGV $$'; exit $?", 139)] {
        let engine = granting(1);
        let ended = held(&engine, args(script), Span::from_s(30)).await;
        assert_eq!(ended.unwrap_err().code, code, "{script}");
        assert_eq!(engine.settled(), [], "{script}");
        assert!(forced(&engine), "{script}");
    }
}

#[tokio::test]
async fn what_cmd_says_of_what_it_held_goes_before_how_it_ended() {
    let item = r#"{"outcome":"failed","error":"captcha","resources":[{"pool":"a","id":"ann","verdict":"ban"}]}"#;
    for (end, code) in [("exit 0", None), ("kill -9 $$", Some(137))] {
        let engine = granting(1);
        let script = format!("echo '{item}' > $TENURE_VERDICT_FILE; {end}");
        let ended = held(&engine, args(&script), Span::from_s(30)).await;
        assert_eq!(ended.err().map(|failure| failure.code), code, "{end}");
        let banned = SettleOutcome::released().resource(
            "a".parse().unwrap(),
            "ann".parse().unwrap(),
            Verdict::Ban { reason: None },
        );
        assert_eq!(engine.settled(), [banned.of("L1".to_owned())], "{end}");
        assert!(!forced(&engine), "{end}");
    }
}

#[tokio::test]
async fn an_unusable_verdict_is_reported_and_ends_the_lease_by_force() {
    let engine = granting(1);
    let ended = held(&engine, args("echo ban > $TENURE_VERDICT_FILE"), Span::from_s(30)).await;
    let failure = ended.unwrap_err();
    assert_eq!(failure.code, 1);
    assert!(failure.sentence.unwrap().starts_with("the verdict of CMD cannot be used: "));
    assert_eq!(engine.settled(), []);
    assert!(forced(&engine));
}

#[tokio::test]
async fn a_lock_not_got_in_time_ends_with_the_given_code() {
    for (wait, no_wait) in
        [(None, true), (Some(Span::ZERO), false), (Some(Span::from_ms(20)), false)]
    {
        let engine = granting(usize::MAX);
        let args = HoldArgs { wait, no_wait, exit_code: 9, ..args("exit 0") };
        assert_eq!(held(&engine, args, Span::from_s(30)).await.unwrap_err().code, 9);
        assert_eq!(engine.settled(), []);
    }
}

#[tokio::test]
async fn a_lost_lease_stops_cmd_and_is_75() {
    let inner = granting(1);
    let engine = Fake::new(move |request, _| match request {
        Request::Extend(extend) => {
            let lost = vec![extend.leases[0].lease.clone()];
            Says::Now(Ok(Reply::Extend(Extended { lost, ..Extended::default() })))
        }
        other => inner.says(other),
    });
    let ended = held(&engine, args("sleep 60"), Span::from_s(1)).await;
    assert_eq!(ended.unwrap_err().code, 75);
    assert_eq!(engine.settled(), []);
}

#[tokio::test]
async fn a_cmd_that_is_not_there_gives_the_lease_back() {
    let engine = granting(1);
    let args = HoldArgs { command: vec!["/no/such/program".into()], ..args("") };
    assert_eq!(held(&engine, args, Span::from_s(30)).await.unwrap_err().code, 127);
    assert_eq!(engine.settled(), [SettleOutcome::released().of("L1".to_owned())]);
}

#[tokio::test]
async fn a_lock_that_is_set_holds_and_one_that_is_not_is_made() {
    for (template, made) in [(Some("lock:*"), true), (None, false)] {
        let view = move |name: &LimitName| LimitView {
            name: name.clone(),
            template: template.map(|name| LimitName::parse(name).unwrap()),
            settings: LimitSettings { concurrency: Some(1), ..LimitSettings::default() },
            in_use: 0,
            resting: 0,
            external: 0,
            gauge: None,
            waiting: 0,
            over_limit: 0,
            paused_until: None,
            holders: vec![],
            line: vec![],
        };
        let engine = Fake::new(move |request, _| match request {
            Request::GetLimit(get) => Says::Now(Ok(Reply::GetLimit(view(&get.limit)))),
            Request::PutLimit(put) => {
                Says::Now(Ok(Reply::PutLimit(Put { view: view(&put.limit), created: true })))
            }
            _ => Says::Never,
        });
        let name = LimitName::parse("lock:x").unwrap();
        widen(&Client::new(engine.clone(), Namespace::main()), &name, 3).await.unwrap();
        let set = engine.calls().iter().any(|(_, request)| {
            matches!(request, Request::PutLimit(put) if put.settings.concurrency == Some(3))
        });
        assert_eq!(set, made);
    }
}
