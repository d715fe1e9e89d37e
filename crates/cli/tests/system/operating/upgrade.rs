//! An upgrade, rehearsed: this release opens the data of an earlier one. All is there, live leases go on, and data that
//! cannot be opened is refused with advice.
//!
//! `before/write` made the data: `layout-11` by the last release whose folders have format 5 and whose Redis has layout 11,
//! `layout-12` by the last whose folders have format 6, and whose Redis has the layout of now. Whoever raises one of them keeps data of the release before.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisServer};
use tenure_testkit::tenure::{done, once, until};

use crate::operating::{SOON, Server, serving, start, tenure, told};

/// Where SQLite keeps the format of a folder: four bytes, the greatest first.
const FORMAT_AT: u64 = 60;

/// Unpacks what is kept beside this file.
fn unpack(name: &str, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let from =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/operating/before").join(name);
    let unpacked = Command::new("gzip").arg("-dc").arg(&from).output().unwrap();
    assert!(unpacked.status.success(), "{from:?}: {}", String::from_utf8_lossy(&unpacked.stderr));
    fs::write(to, unpacked.stdout).unwrap();
}

/// A server on a store; its address may hold a password, so it is no argument.
fn serve(home: &Path, store: &str) -> Server {
    let mut command = serving(home, &[]);
    command.env("TENURE_STORE", store);
    start(command)
}

/// A server on a folder of an earlier release.
fn on_folder(home: &Path, name: &str) -> Server {
    let store = home.join("store");
    unpack(name, &store.join("tenure.db"));
    serve(home, &format!("file:{}", store.display()))
}

/// A Redis that starts from the snapshot of an earlier one.
fn redis_of(home: &Path, name: &str) -> RedisServer {
    unpack(name, &home.join("redis/dump.rdb"));
    RedisServer::start(Aof::Off, &["--dir", home.join("redis").to_str().unwrap()])
}

/// The answer to a call, which is one document.
fn answer(server: &Server, call: &str, body: &Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let text = server.exchange(call, &body);
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|why| panic!("{call}: {why}: {text}"))
}

fn get(server: &Server, path: &str) -> Value {
    answer(server, &format!("GET {path}"), &Value::Null)
}

fn job(server: &Server, id: &str) -> Value {
    get(server, &format!("/v1/jobs/{id}"))
}

/// Waiting jobs and held things: all of it as it was written, whatever happened since. `leased`: accounts that are
/// held.
fn all_is_there(server: &Server, leased: u64) {
    for (id, queue, state, attempt, errors) in [
        ("succeeded", "end", "succeeded", 1, 0),
        ("failed", "end", "failed", 2, 2),
        ("cancelled", "end", "cancelled", 0, 0),
        ("ready", "wait", "ready", 0, 0),
        ("scheduled", "wait", "scheduled", 0, 0),
        ("keyed", "wait", "scheduled", 0, 0),
        ("paused", "paused", "ready", 0, 0),
        ("parent", "flow", "ready", 0, 0),
        ("child", "flow", "dependent", 0, 0),
        ("plain-1", "plain", "ready", 0, 0),
        ("plain-20", "plain", "ready", 0, 0),
    ] {
        let job = job(server, id);
        let shown = (&job["queue"], &job["state"], &job["attempt"]);
        assert_eq!(shown, (&json!(queue), &json!(state), &json!(attempt)), "{job}");
        assert_eq!(job["errors"].as_array().unwrap().len(), errors, "{job}");
    }
    let items = get(server, "/v1/jobs?max=1000")["items"].as_array().unwrap().len();
    assert_eq!(items, 32);
    assert_eq!(job(server, "succeeded")["result"], json!({"pages": 12}));
    assert_eq!(job(server, "failed")["error"], "http 503");
    let ready = job(server, "ready");
    for (field, value) in [
        ("kind", json!("mail")),
        ("payload", json!({"to": "ann"})),
        ("priority", json!(5)),
        ("group", json!("vip")),
        ("labels", json!({"site": "y"})),
    ] {
        assert_eq!(ready[field], value, "{ready}");
    }
    assert_eq!(job(server, "key:daily")["id"], "keyed");
    let elsewhere = "GET /v1/jobs/elsewhere WITH Tenure-Namespace: other";
    assert_eq!(answer(server, elsewhere, &Value::Null)["state"], "ready");

    let queue = get(server, "/v1/queues/run");
    assert_eq!((&queue["shares"]["vip"], &queue["retry"]["max_attempts"]), (&json!(3), &json!(3)));
    assert_eq!(get(server, "/v1/queues/paused")["paused"], true);
    let tokens = answer(server, "POST /v1/leases", &json!({"needs": [{"limit": "tokens"}]}));
    assert_eq!(tokens["reasons"][0]["kind"], "rate", "the rate still owes: {tokens}");
    // A folder that is opened again tries blocked jobs once more.
    let blocked = job(server, "blocked");
    assert_eq!(blocked["needs"][0]["limit"], "shut", "{blocked}");
    assert!(["ready", "blocked"].iter().any(|state| blocked["state"] == *state), "{blocked}");
    let pool = get(server, "/v1/pools/accounts");
    for (state, count) in
        [("available", 2 - leased), ("leased", leased), ("cooling", 1), ("banned", 1)]
    {
        assert_eq!(pool[state], count, "{state}: {pool}");
    }
    let banned = get(server, "/v1/pools/accounts/resources/banned");
    assert!(banned.to_string().contains("captcha"), "{banned}");
    assert_eq!(get(server, "/v1/schedules/nightly")["paused"], true);
    let later = get(server, "/v1/schedules/later");
    assert!(later["summary"].as_str().unwrap().starts_with("fires at 2200-01-0"), "{later}");
}

/// Leases of before: a holder that comes back goes on, a holder that does not is detected.
fn leases_go_on(server: &Server) {
    let leases = get(server, "/v1/leases");
    let of = |holder: &str| {
        let mut all = leases["items"].as_array().unwrap().iter();
        let one = all.find(|lease| lease["holder"] == holder);
        one.unwrap_or_else(|| panic!("{holder}: {leases}"))["lease"].clone()
    };
    let (held, guard) = (of("holder"), of("guard"));
    let extended =
        answer(server, "POST /v1/leases/extend", &json!({"leases": [held, guard], "ttl": "1m"}));
    assert_eq!(extended["extended"].as_array().unwrap().len(), 2, "{extended}");
    all_is_there(server, 1);
    let lock = json!({"needs": [{"limit": "lock:deploy"}]});
    let refused = answer(server, "POST /v1/leases", &lock);
    assert_eq!(refused["reasons"][0]["holders"][0]["holder"], "guard", "{refused}");

    once(SOON, "the orphan to be taken back", || match job(server, "orphan") {
        orphan if orphan["lost"] == 1 => Ok(()),
        orphan => Err(orphan.to_string()),
    });
    let settle = json!({"settle": [
        {"lease": held, "outcome": "succeeded", "result": 1},
        {"lease": guard, "outcome": "released"},
    ]});
    let settled = answer(server, "POST /v1/leases/settle", &settle);
    assert!(
        settled["settled"].as_array().unwrap().iter().all(|one| one["ok"] == true),
        "{settled}"
    );
    let done = job(server, "held");
    assert_eq!((&done["state"], &done["progress"]), (&json!("succeeded"), &json!({"page": 3})));
    let granted = answer(server, "POST /v1/leases", &lock);
    assert_eq!(granted["leases"].as_array().unwrap().len(), 1, "{granted}");

    let parent = answer(server, "POST /v1/leases", &json!({"queues": ["flow"]}));
    assert_eq!(parent["leases"][0]["job"]["id"], "parent", "{parent}");
    let end = json!({"lease": parent["leases"][0]["lease"], "outcome": "succeeded"});
    answer(server, "POST /v1/leases/settle", &json!({"settle": [end]}));
    assert_eq!(job(server, "child")["state"], "ready");
    let audit = get(server, "/v1/audit");
    assert_eq!(audit["ok"], true, "{audit}");
}

/// The stream goes on where it was.
fn events_are_kept(server: &Server) {
    let events = get(server, "/v1/events?since=first&max=1000").to_string();
    for (kind, job) in [("job.failed", "failed"), ("job.succeeded", "held"), ("job.lost", "orphan")]
    {
        assert!(
            events.contains(kind) && events.contains(&format!("\"{job}\"")),
            "{kind}: {events}"
        );
    }
}

#[test]
fn a_folder_of_the_release_before_is_opened_and_goes_on() {
    for name in ["layout-11.db.gz", "layout-12.db.gz"] {
        let home = tempfile::tempdir().unwrap();
        let server = on_folder(home.path(), name);
        leases_go_on(&server);
        events_are_kept(&server);
        assert_eq!(server.stop().0, Some(0), "{name}");
    }
}

#[test]
fn a_redis_of_an_old_release_is_refused_and_its_copy_accepted() {
    needs_redis!();
    let home = tempfile::tempdir().unwrap();
    for name in ["layout-11.rdb.gz", "layout-12.rdb.gz"] {
        let redis = redis_of(&home.path().join(name), name);
        let server = serve(home.path(), &redis.url());
        let ready = once(SOON, "a refusal", || {
            let ready = get(&server, "/readyz").to_string();
            if ready.contains("has namespaces under") { Ok(ready) } else { Err(ready) }
        });
        assert!(ready.contains("with that release copy them to a folder"), "{ready}");
    }

    // The copy that the release before made into a folder, and this one copies back. A copy ends leases as released.
    let redis = RedisServer::start(Aof::Off, &[]);
    unpack("layout-11.moved.gz", &home.path().join("moved/tenure.db"));
    let mut copy = tenure(home.path(), &["copy", "--from", "file:./moved", "--to", &redis.url()]);
    done(copy.current_dir(home.path()));
    let server = serve(home.path(), &redis.url());
    until(SOON, "an owner of the store", || server.look("/readyz").0 == 200);
    all_is_there(&server, 0);
    let held = job(&server, "held");
    assert_eq!((&held["state"], &held["attempt"]), (&json!("ready"), &json!(0)), "{held}");
    let audit = get(&server, "/v1/audit");
    assert_eq!(audit["ok"], true, "{audit}");
}

#[test]
fn a_folder_of_a_newer_release_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("store/tenure.db");
    unpack("layout-12.db.gz", &file);
    let file = fs::OpenOptions::new().write(true).open(&file).unwrap();
    file.write_all_at(&99_u32.to_be_bytes(), FORMAT_AT).unwrap();
    let mut command = tenure(home.path(), &["stats", "--url", "file:./store"]);
    let (code, _, err) = told(command.current_dir(home.path()));
    assert_eq!(code, 69, "{err}");
    assert!(err.contains("has format 99, and this release knows up to "), "{err}");
    assert!(err.contains(env!("CARGO_PKG_VERSION")), "the release that wrote it is named: {err}");
}
