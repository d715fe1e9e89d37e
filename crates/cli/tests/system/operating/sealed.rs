//! A store whose contents are sealed, as operators run it: in a folder, in a Redis with several servers, copied and restored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisServer};
use tenure_testkit::tenure::{done, once, until};

use crate::operating::{SOON, Server, serving, start, tenure, told};

const OLD: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
const NEW: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// Stands in contents, and nowhere else.
const MARK: &str = "geheim7f3a";
/// Stands in a label, which is clear.
const LABEL: &str = "sichtbar2b9c";

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Home(tempfile::tempdir().unwrap());
        for (name, keys) in [("old", vec![OLD]), ("both", vec![NEW, OLD]), ("new", vec![NEW])] {
            fs::write(home.path(name), keys.join("\n")).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn folder(&self, name: &str) -> String {
        format!("file:{}", self.path(name).display())
    }

    /// A server; `keys`: the name of its file.
    fn serve(&self, store: &str, keys: Option<&str>) -> Server {
        let mut command = serving(self.0.path(), &[]);
        command.env("TENURE_STORE", store).env("TENURE_LOG_FORMAT", "text");
        command.envs(keys.map(|keys| ("TENURE_SEAL_KEY_FILE", self.path(keys))));
        start(command)
    }

    fn command(&self, url: &str, keys: Option<&str>, arguments: &[&str]) -> Command {
        let mut command = tenure(self.0.path(), arguments);
        command.env("TENURE_URL", url);
        command.envs(keys.map(|keys| ("TENURE_SEAL_KEY_FILE", self.path(keys))));
        command
    }

    /// Exit code, stdout and stderr of a command.
    fn run(&self, url: &str, keys: Option<&str>, arguments: &[&str]) -> (i32, String, String) {
        told(&mut self.command(url, keys, arguments))
    }

    #[track_caller]
    fn done(&self, url: &str, keys: Option<&str>, arguments: &[&str]) -> String {
        done(&mut self.command(url, keys, arguments))
    }
}

fn holds(place: &Path, word: &str) -> bool {
    let found = Command::new("grep").args(["-rqaF", word]).arg(place).status().unwrap().code();
    assert!(matches!(found, Some(0 | 1)), "{place:?} cannot be searched");
    found == Some(0)
}

/// Brings contents into a store, by way of commands.
fn fill(home: &Home, url: &str) {
    let secret = format!("{{\"password\":\"{MARK}\"}}");
    let label = format!("kind={LABEL}");
    home.done(url, None, &["pool", "add", "accounts", "139", "--data", &secret]);
    home.done(url, None, &["push", "mail", &secret, "--id", "waits", "--label", &label]);
    home.done(url, None, &["push", "other", &secret, "--id", "ran", "--need", "pool:accounts"]);
    let works = format!(
        "test $TENURE_RESOURCE_PASSWORD = {MARK} && grep -q {MARK} && echo '\"{MARK}\"' > $TENURE_RESULT_FILE"
    );
    home.done(url, None, &["work", "other", "--max-jobs", "1", "--", "sh", "-c", &works]);
}

/// All of it is shown as it was given.
fn is_read(home: &Home, url: &str, keys: Option<&str>) {
    assert!(home.done(url, keys, &["job", "waits", "--json"]).contains(MARK));
    assert!(home.done(url, keys, &["result", "ran"]).contains(MARK));
    let show =
        ["lease", "--need", "pool:accounts", "--", "sh", "-c", "echo $TENURE_RESOURCE_PASSWORD"];
    assert!(home.done(url, keys, &show).contains(MARK));
    home.done(url, keys, &["check", "--deep"]);
}

#[test]
fn a_sealed_folder_is_served_saved_and_sealed_again() {
    let home = Home::new();
    let server = home.serve(&home.folder("store"), Some("old"));
    fill(&home, &server.url());
    is_read(&home, &server.url(), None);
    let backup = home.path("backup");
    home.done(&server.url(), None, &["backup", backup.to_str().unwrap()]);
    home.done("http://127.0.0.1:1", None, &["backup", "verify", backup.to_str().unwrap()]);
    assert_eq!(server.stop().0, Some(0));
    for place in [&home.path("store"), &backup] {
        assert!(!holds(place, MARK), "{}", place.display());
        assert!(holds(place, LABEL), "{}", place.display());
    }

    // Without the key, or with another one, it says which key it needs.
    for keys in [None, Some("new")] {
        let (code, _, err) = home.run(&home.folder("store"), keys, &["jobs"]);
        assert_eq!(code, 69, "{err}");
        assert!(err.contains("is sealed with the key") && err.contains("--seal-key-file"), "{err}");
    }
    is_read(&home, &home.folder("store"), Some("old"));

    // A restore and a copy seal again; the source stays under its own key.
    let (from, to) = (home.folder("store"), home.folder("copied"));
    let (code, _, err) = home.run("", None, &["copy", "--from", &from, "--to", &to]);
    assert!(code == 1 && err.contains("--seal-key-file"), "{code}: {err}");
    assert!(!err.contains("stays paused"), "{err}");
    // It undid itself: the source is not paused.
    is_read(&home, &from, Some("old"));
    home.done("", Some("both"), &["copy", "--from", &from, "--to", &to]);
    let restored = home.folder("restored");
    let restore = ["restore", backup.to_str().unwrap(), "--no-wait", "--to", &restored];
    home.done("", Some("both"), &restore);
    for (name, store) in [("copied", &to), ("restored", &restored)] {
        is_read(&home, store, Some("new"));
        assert!(!holds(&home.path(name), MARK), "{name}");
    }
}

#[test]
fn a_sealed_redis_is_led_by_a_server_that_has_the_key() {
    needs_redis!();
    let home = Home::new();
    fs::create_dir(home.path("redis")).unwrap();
    let redis = RedisServer::start(Aof::Always, &["--dir", home.path("redis").to_str().unwrap()]);
    let first = home.serve(&redis.url(), Some("old"));
    fill(&home, &first.url());
    let without = home.serve(&redis.url(), None);
    let read = |server: &Server| {
        let out = once(SOON, "a read job", || {
            let (code, out, err) = home.run(&server.url(), None, &["job", "waits", "--json"]);
            if code == 0 { Ok(out) } else { Err(format!("{err}: {}", server.said())) }
        });
        assert!(out.contains(MARK), "{out}");
    };
    read(&without);
    // It forwards calls, and does not take the store when the leader is gone.
    first.signal(Signal::SIGKILL);
    without.line("is sealed with the key");
    let ready = || without.get("/readyz");
    until(SOON, "a server without a key", || ready().contains("is sealed with the key"));
    let second = home.serve(&redis.url(), Some("old"));
    read(&second);
    read(&without);
    is_read(&home, &without.url(), None);
    assert!(!holds(&home.path("redis"), MARK));
    assert!(holds(&home.path("redis"), LABEL));
    assert_eq!((without.stop().0, second.stop().0), (Some(0), Some(0)));
}

#[test]
fn a_server_does_not_start_with_a_file_that_has_no_key() {
    let home = Home::new();
    fs::write(home.path("bad"), "hunter2\n").unwrap();
    let store = home.folder("store");
    for (file, why) in [("bad", "line 1 is not a key"), ("none", "cannot be read")] {
        let path = home.path(file);
        let arguments = ["serve", "--store", &store, "--seal-key-file", path.to_str().unwrap()];
        let (code, _, err) = told(&mut tenure(home.0.path(), &arguments));
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(why) && !err.contains("hunter2"), "{err}");
        assert!(!home.path("store").exists(), "{file}");
    }
}
