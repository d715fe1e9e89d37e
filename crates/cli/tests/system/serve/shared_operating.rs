//! Several servers that share a store, as their operator sees and sets them: settings, addresses, HTTPS between them.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tenure_testkit::TempDir;
use tenure_testkit::certificates::Authority;
use tenure_testkit::redis::RedisServer;
use tenure_testkit::tenure::{done, once, told};

use super::shared::{LONG, sharing, until_said as until};
use super::{SOON, Server, ended, start, start_with, tenure};

/// stdout of a command that must end well.
fn said(args: &[&str]) -> String {
    done(&mut tenure(args, None))
}

/// What `tenure store show` says; nothing before there is a store.
fn shown(store: &str) -> String {
    told(&mut tenure(&["store", "show", "--store", store], None)).1
}

#[test]
fn store_settings_come_from_the_first_server_until_changed() {
    let Some((redis, none, _)) = sharing(0) else { return };
    assert!(none.is_empty());
    let store = redis.url();
    let show = || shown(&store);
    let (code, said_by_nobody) = ended(tenure(&["store", "show", "--store", &store], None));
    assert_eq!(code, Some(1), "{said_by_nobody}");
    let first = start_with(&store, &["--retain-bytes", "64MiB", "--events-bytes", "1MiB"], None);
    until("retain bytes  64 MiB", show);
    let second =
        start_with(&store, &["--retain-bytes", "8MiB", "--advertise", "localhost:9"], None);
    let listed = until("http://localhost:9", show);
    assert!(listed.contains(&format!("http://{}, at epoch", first.at)), "{listed}");
    assert!(
        listed.contains("events bytes  1 MiB") && listed.contains("patience      10s"),
        "{listed}"
    );
    let ready = until("is 0 entries behind", || first.get("/readyz"));
    assert!(ready.contains("owns the store, at epoch") && ready.contains("localhost:9"), "{ready}");
    let settings = ["--patience", "3s", "--events-bytes", "0", "--forgets", "never"];
    let set = [&["store", "set", "--store", &store], &settings[..]].concat();
    assert_eq!(
        said(&set).trim_end(),
        "the store has patience 3s, events_bytes 0, forgets never now"
    );
    let json = said(&["--json", "store", "show", "--store", &store]);
    assert!(json.contains(r#""patience":"3s""#) && json.contains(r#""forgets":"never""#), "{json}");
    let (code, refused) = ended(tenure(&["store", "set", "--store", &store], None));
    assert!(code == Some(2) && refused.contains("no setting is named"), "{code:?}: {refused}");
    // The leader applies it.
    until("409 ", || first.get("/v1/events").lines().next().unwrap_or_default().to_owned());
    let compacted = said(&["store", "compact", "--store", &store]);
    assert!(compacted.starts_with("there is a new snapshot: "), "{compacted}");
    // No server listens at the advertised address: the doctor says that it cannot be reached.
    let (_, doctor, _) = told(&mut tenure(&["doctor", &store], None));
    let doctor = doctor.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(doctor.contains("leads the store, at epoch"), "{doctor}");
    assert!(doctor.contains("http://localhost:9 (0.1.0), a standby"), "{doctor}");
    assert!(doctor.contains("cannot be reached from here"), "{doctor}");
    second.signal(Signal::SIGKILL);
    let (_, log) = second.ended();
    let warned = "started with retain_bytes 8388608, and the store has 67108864";
    assert!(log.contains(warned), "{log}");
    assert!(log.contains("owns the store, at epoch"), "{log}");
}

#[test]
fn a_server_reports_an_unknown_store_format_and_forwards_calls() {
    let Some((redis, none, _)) = sharing(0) else { return };
    assert!(none.is_empty());
    let store = redis.url();
    let first = start(&store, None);
    until("answers calls and owns the store", || first.get("/readyz"));
    redis.must(&["HSET", "{tenure}:store", "format", "2"]);
    let second = start(&store, None);
    let ready = until("200 OK", || second.get("/readyz"));
    assert!(ready.contains("has format 2, and this release of Tenure knows 1"), "{ready}");
    let url = second.url();
    let (code, pushed) = ended(tenure(&["push", "q", "{}", "--id", "j1", "--url", &url], None));
    assert_eq!(code, Some(0), "{pushed}");
    assert!(first.get("/v1/jobs/j1").contains("200 OK"), "{}", first.get("/v1/jobs/j1"));
}

#[test]
fn a_requested_snapshot_outlives_a_server_that_cannot_make_it() {
    let Some((redis, _, _)) = sharing(0) else { return };
    let store = redis.url();
    let mut server = start_with(&store, &[], None);
    until("wrote ", || shown(&store));
    server.kill();
    let begun = Instant::now();
    let (code, output) = ended(tenure(&["store", "compact", "--store", &store], None));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}: {output}", begun.elapsed());
    let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("the leader of epoch "), "{output}");
    assert!(output.contains(" is silent; it wrote "), "{output}");
    assert!(output.contains("the request stays in the store"), "{output}");
    assert!(output.contains(&format!("tenure serve --store {store}")), "{output}");
    // And the next leader makes the requested snapshot.
    let wish = || redis.ask(&["HGET", "{tenure}:store", "compact"]).unwrap();
    assert!(wish().contains("asked"), "{}", wish());
    let _next = start_with(&store, &[], None);
    until("$0", wish);
}

/// Servers that speak HTTPS with certificates of a private authority, which they are set to trust.
struct EncryptedServers {
    _redis: RedisServer,
    folder: TempDir,
    store: String,
}

impl EncryptedServers {
    fn trusting(&self, args: &[&str]) -> Command {
        let mut command = tenure(args, None);
        command.env("TENURE_CA", self.folder.join("ca.pem"));
        command
    }

    fn start(&self) -> Server {
        let [certificate, key] = ["server.crt", "server.key"].map(|name| self.folder.join(name));
        let args = ["serve", "--listen", "127.0.0.1:0", "--store", &self.store];
        let mut command = self.trusting(&args);
        Server::start(command.arg("--tls-cert").arg(certificate).arg("--tls-key").arg(key), SOON)
    }

    /// The addresses of all servers, that of the leader first.
    fn addresses(&self) -> Vec<String> {
        let shown = ["--json", "store", "show", "--store", &self.store];
        let (_, shown, _) = told(&mut tenure(&shown, None));
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap_or_default();
        let servers = shown["servers"].as_array().cloned().unwrap_or_default();
        let (mut owner, rest): (Vec<_>, Vec<_>) =
            servers.into_iter().partition(|one| one["owns"] == true);
        owner.extend(rest);
        owner.iter().filter_map(|one| Some(one["url"].as_str()?.to_owned())).collect()
    }

    fn push(&self, url: &str, id: &str) {
        done(&mut self.trusting(&["--url", url, "push", "q", "--id", id]));
    }
}

#[test]
fn https_servers_with_a_private_authority_forward_and_take_over() {
    let Some((redis, _, _)) = sharing(0) else { return };
    let folder = TempDir::new();
    let authority = Authority::named("of the servers");
    authority.write(folder.path(), "ca");
    authority.signs(&["127.0.0.1", "localhost"]).write(folder.path(), "server");
    let store = redis.url();
    let of = EncryptedServers { _redis: redis, folder, store };
    let mut servers = vec![of.start(), of.start()];
    let all = once(LONG, "two servers", || {
        let all = of.addresses();
        if all.len() == 2 { Ok(all) } else { Err(format!("{all:?}")) }
    });
    let urls: Vec<String> = servers.iter().map(|server| format!("https://{}", server.at)).collect();
    assert!(all.iter().all(|url| urls.contains(url)), "{all:?}, {urls:?}");
    of.push(&all[0], "at-the-owner");
    of.push(&all[1], "passed-on");
    let at = urls.iter().position(|url| *url == all[0]).unwrap();
    let owner = servers.remove(at);
    owner.signal(Signal::SIGKILL);
    of.push(&all[1], "after-the-takeover");
    for id in ["at-the-owner", "passed-on", "after-the-takeover"] {
        done(&mut of.trusting(&["--url", &all[1], "job", id]));
    }
}
