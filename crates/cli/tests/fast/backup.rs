//! `tenure backup` and `tenure restore`, by the commands alone: files, exit codes, and the pages' own scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;
use tenure_testkit::redis::{Aof, RedisServer};
use tenure_testkit::tenure::{Process, Server, alone, fails, told};
use tenure_testkit::{Dice, TempDir, needs_redis};

use crate::copy::shared::{LONG, start, stop, until};
use crate::copy::{answer, done, folder, run};
use crate::{client, tenure};

/// A server on a folder with a job, and an account with a password.
fn served(dir: &TempDir) -> Server {
    let server = start(&folder(dir, "store"));
    done(&server.url(), &["push", "mail", r#"{"to":"ann"}"#, "--id", "j1"]);
    done(&server.url(), &["pool", "add", "accounts", "13800", "--data", r#"{"password":"topf"}"#]);
    server
}

fn restore(arguments: &[&str]) -> Command {
    tenure(&[&["restore"], arguments].concat())
}

/// stdout of a restore that must end well.
#[track_caller]
fn restored(arguments: &[&str]) -> String {
    tenure_testkit::tenure::done(&mut restore(arguments))
}

/// The names of all files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_store_is_saved_while_it_is_served_and_restored_elsewhere() {
    let dir = TempDir::new();
    let server = served(&dir);
    fs::create_dir(dir.join("saved")).unwrap();
    let file = dir.join("saved/tonight.backup");
    let file = file.to_str().unwrap();
    let saved = answer(&server.url(), &["backup", file]);
    assert_eq!((&saved["jobs"], &saved["file"]), (&1.into(), &file.into()), "{saved}");
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(&dir.join("saved")), ["tonight.backup"]);
    // A file is not replaced by accident.
    let (code, _, err) = run(&server.url(), &["backup", file]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("exists already") && err.contains("--force"), "{err}");
    done(&server.url(), &["push", "mail", "2", "--id", "j2"]);
    assert_eq!(answer(&server.url(), &["backup", file, "--force"])["jobs"], 2);
    // The same bytes to a pipe, with nothing beside them.
    let piped = client(&server.url(), &["backup", "-"]).output().unwrap();
    assert_eq!((piped.status.code(), &piped.stderr[..]), (Some(0), &b""[..]));
    assert!(piped.stdout.starts_with(b"tenure backup 1\n"));
    let out = tenure_testkit::tenure::done(&mut tenure(&["backup", "verify", file]));
    assert!(out.contains("whole backup of 2 jobs"), "{out}");
    stop(server);

    let target = folder(&dir, "new");
    let out = restored(&[file, "--to", &target]);
    assert!(out.contains("2 unfinished and 0 finished jobs"), "{out}");
    let new = start(&target);
    done(&new.url(), &["audit"]);
    assert_eq!(answer(&new.url(), &["job", "j1"])["payload"]["to"], "ann");
    let password =
        ["lease", "--need", "pool:accounts", "--", "printenv", "TENURE_RESOURCE_PASSWORD"];
    assert_eq!(done(&new.url(), &password).trim(), "topf");
    stop(new);
    // A store that is in use is no target.
    fails(1, &mut restore(&[file, "--to", &target]), "already");
}

#[test]
fn a_bad_file_is_refused_and_its_target_is_not_made() {
    let dir = TempDir::new();
    let server = served(&dir);
    let whole = client(&server.url(), &["backup", "-"]).output().unwrap().stdout;
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    for (bytes, part) in [
        (&whole[..whole.len() - 1], "before its last part"),
        (&damaged[..], "damaged at byte"),
        (b"SQLite format 3", "not a backup"),
        (b"tenure backup 9\n", "newer release"),
    ] {
        let file = dir.join("bad");
        fs::write(&file, bytes).unwrap();
        let (file, target) = (file.to_str().unwrap(), folder(&dir, "new"));
        for arguments in [&["backup", "verify", file][..], &["restore", file, "--to", &target]] {
            fails(1, &mut tenure(arguments), part);
        }
        assert!(!dir.join("new").exists(), "{part}");
    }
}

#[test]
fn what_cannot_be_saved_leaves_no_file() {
    let dir = TempDir::new();
    let saved = dir.join("saved");
    fs::create_dir(&saved).unwrap();
    let file = saved.join("b");
    let (file, none) = (file.to_str().unwrap(), folder(&dir, "none"));
    for (url, arguments, code, part) in [
        ("http://127.0.0.1:1", &["backup", file][..], 69, "onnection refused"),
        (&none, &["backup", file], 69, "there is no store"),
        ("memory:", &["backup", file], 2, "in memory ends with"),
        ("memory:", &["backup"], 2, "FILE"),
        ("memory:", &["backup", "verify", file], 2, "no such file"),
        ("memory:", &["restore", file, "--to", &none], 2, "no such file"),
        ("memory:", &["restore", file], 2, "--to"),
        ("memory:", &["restore", file, "--to", "http://127.0.0.1:1"], 2, "a server, not a store"),
    ] {
        fails(code, &mut client(url, arguments), part);
    }
    assert_eq!(names(&saved), [""; 0]);
    assert!(!dir.join("none").exists(), "nothing was made for it");
}

#[test]
fn a_shared_store_is_saved_by_any_server_and_restored_to_redis_and_to_a_folder() {
    needs_redis!();
    let (dir, redis) = (TempDir::new(), RedisServer::start(Aof::Off, &[]));
    let (leader, file) = (start(&redis.url()), dir.join("backup"));
    let file = file.to_str().unwrap();
    until(&leader, 0, &["push", "mail", "1", "--id", "j1"], "");
    let follower = start(&redis.url());
    until(&follower, 0, &["push", "mail", "2", "--id", "j2"], "");
    assert_eq!(answer(&follower.url(), &["backup", file])["jobs"], 2);
    assert_eq!(answer(&leader.url(), &["backup", file, "--force"])["jobs"], 2);
    stop(follower);
    stop(leader);
    for target in [format!("{}?name=restored", redis.url()), folder(&dir, "back")] {
        restored(&[file, "--to", &target, "--no-wait"]);
        let server = start(&target);
        until(&server, 0, &["audit"], "");
        assert_eq!(answer(&server.url(), &["job", "j2"])["payload"], 2);
        stop(server);
        assert_eq!(told(&mut restore(&[file, "--to", &target])).0, 1, "{target} is in use");
    }
}

/// The lines of a page or a manifest between two lines.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let (_, behind) = text.split_once(from).unwrap_or_else(|| panic!("no {from:?}"));
    behind.split_once(to).unwrap_or_else(|| panic!("no {to:?} behind {from:?}")).0
}

/// Runs a script of the pages, with the built command in its PATH.
fn script(url: &str, backups: &Path, text: &str) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    alone(shell.args(["-ec", text])).env("PATH", path).env("TENURE_URL", url);
    shell.env("TENURE_BACKUPS", backups).env("TENURE_BACKUPS_KEPT", "2");
    tenure_testkit::tenure::done(&mut shell)
}

#[test]
fn the_scripts_of_the_page_back_up_clean_up_and_rehearse() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let dir = TempDir::new();
    let (server, backups) = (served(&dir), dir.join("backups"));
    fs::create_dir(&backups).unwrap();
    for old in ["20200101T000000Z", "20210101T000000Z"] {
        fs::write(backups.join(format!("tenure-{old}.backup")), "old").unwrap();
    }
    fs::write(backups.join("another file"), "stays").unwrap();
    let nightly = read("packaging/systemd/tenure-backup");
    script(&server.url(), &backups, &nightly);
    let kept = names(&backups);
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert!(kept.contains(&"tenure-20210101T000000Z.backup".to_owned()), "{kept:?}");
    let manifest = read("packaging/kubernetes/backup.yaml");
    let indented = between(&manifest, "- |\n", "              env:");
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    };
    let commands: Vec<_> =
        lines(&nightly).into_iter().skip_while(|line| line.starts_with('#')).collect();
    assert_eq!(lines(indented), commands, "the CronJob runs the same commands");
    let rehearsal = read("docs/deploy/backup.md");
    let rehearsal = between(&rehearsal, "no worker runs:\n\n```sh\n", "```");
    let out = script(&server.url(), &backups, rehearsal);
    assert!(out.contains("all is well"), "{out}");
}

/// The process that a SIGKILL ends during a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Victim {
    Backup,
    Server,
}

/// Jobs with 100 KiB each that cannot be packed much, as lines.
fn heavy(dir: &TempDir, jobs: u64) -> String {
    let mut dice = Dice::mixed(7);
    let mut job = |n| {
        let payload = dice.text(100 << 10);
        format!(
            "{}\n",
            serde_json::json!({"queue": "heavy", "id": format!("h{n}"), "payload": payload})
        )
    };
    let file = dir.join("heavy");
    fs::write(&file, (0..jobs).map(&mut job).collect::<String>()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Begins a backup under load, kills the victim after `after_ms`, and checks what is there.
fn killed(url: &str, file: &Path, after_ms: u64, kill: impl FnOnce(&mut Child)) {
    let load = run_in_background(url);
    let mut backup = client(url, &["backup"]).arg(file).spawn().unwrap();
    // Any moment may be the bad one: there is no event to wait for.
    sleep(Duration::from_millis(after_ms));
    kill(&mut backup);
    let output = backup.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    drop(load);
    if file.exists() {
        let (code, _, err) = told(tenure(&["backup", "verify"]).arg(file));
        assert_eq!(code, 0, "after {after_ms} ms: {err}");
    } else {
        assert!(!output.status.success(), "after {after_ms} ms: {said}");
    }
}

/// Runs jobs until this is dropped.
fn run_in_background(url: &str) -> Process {
    let mut work = client(url, &["work", "mail", "--", "true"]);
    Process::start(work.stdout(Stdio::null()).stderr(Stdio::null()), LONG)
}

/// Restores the last backup, and has it audited.
fn audited(dir: &TempDir, file: &Path, name: &str) {
    let (file, target) = (file.to_str().unwrap(), folder(dir, name));
    restored(&[file, "--to", &target, "--no-wait"]);
    done(&target, &["audit"]);
    assert_eq!(answer(&target, &["job", "h7"])["state"], "ready");
}

#[test]
fn a_backup_is_whole_or_not_there_whatever_is_killed() {
    let dir = TempDir::new();
    let (store, lines) = (folder(&dir, "store"), heavy(&dir, 60));
    let mut server = start(&store);
    done(&server.url(), &["push", "--lines", &lines]);
    for (victim, after_ms) in
        [(Victim::Backup, 5), (Victim::Server, 20), (Victim::Backup, 60), (Victim::Server, 90)]
    {
        for n in 0..5 {
            done(&server.url(), &["push", "mail", &n.to_string()]);
        }
        let file = dir.join(format!("{victim:?}-{after_ms}"));
        killed(&server.url(), &file, after_ms, |backup| match victim {
            Victim::Backup => backup.kill().unwrap(),
            Victim::Server => server.kill(),
        });
        if victim == Victim::Server {
            server = start(&store);
        }
    }
    let last = dir.join("last");
    done(&server.url(), &["backup", last.to_str().unwrap()]);
    audited(&dir, &last, "restored");
}

#[test]
fn a_backup_of_a_shared_store_survives_the_death_of_redis_or_is_not_there() {
    needs_redis!();
    let (dir, mut redis) = (TempDir::new(), RedisServer::start(Aof::Off, &[]));
    let lines = heavy(&dir, 60);
    let server = start(&redis.url());
    until(&server, 0, &["push", "--lines", &lines], "");
    for after_ms in [5, 60] {
        killed(&server.url(), &dir.join(format!("{after_ms}")), after_ms, |_| redis.kill());
        redis.restart();
        until(&server, 0, &["stats"], "");
    }
    let last = dir.join("last");
    until(&server, 0, &["backup", last.to_str().unwrap()], "");
    audited(&dir, &last, "restored");
}

/// A restore that the kernel kills when a file of the target would grow beyond `blocks` of 512 bytes.
fn restore_within(blocks: u64, arguments: &[&str]) -> Command {
    let restore = restore(arguments);
    let mut limited = Command::new("sh");
    limited.args(["-c", r#"ulimit -c 0; ulimit -f "$0"; exec "$@""#, &blocks.to_string()]);
    alone(limited.arg(restore.get_program()).args(restore.get_args()));
    limited
}

#[test]
fn a_restore_that_is_killed_serves_nobody_and_begins_again() {
    let dir = TempDir::new();
    let server = start(&folder(&dir, "store"));
    done(&server.url(), &["push", "--lines", &heavy(&dir, 60)]);
    let file = dir.join("backup");
    done(&server.url(), &["backup", file.to_str().unwrap()]);
    let target = folder(&dir, "target");
    let arguments = [file.to_str().unwrap(), "--to", &target, "--no-wait"];
    let mut marked = false;
    // From the first page of the target's database to most of the 6 MB that it is to hold.
    for blocks in [1, 64, 512, 1024, 4096, 8192] {
        let output = restore_within(blocks, &arguments).output().unwrap();
        let killed = Some(Signal::SIGXFSZ as i32);
        assert_eq!(output.status.signal(), killed, "{blocks} blocks: {output:?}");
        // It has nothing yet, or it is refused from then on.
        let (code, out, err) = told(&mut client(&target, &["stats", "--json"]));
        if code == 0 && !marked {
            let stats: serde_json::Value = serde_json::from_str(&out).unwrap();
            assert_eq!(stats["jobs"]["ready"], 0, "{blocks} blocks: {out}");
        } else {
            assert!(code == 69 && err.contains("unfinished"), "{blocks} blocks: {code}: {err}");
            marked = true;
        }
    }
    assert!(marked, "no kill came between mark and end");
    restored(&arguments);
    done(&target, &["audit"]);
    assert_eq!(answer(&target, &["job", "h7"])["state"], "ready");
}
