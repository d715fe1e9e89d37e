//! Clients that find the servers of their store in Redis, and their work after the leader is killed.

use std::collections::BTreeMap;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use tenure::core::job::JobState;
use tenure::{Client, Job, JobRef, Told};
use tenure_testkit::needs_redis;
use tenure_testkit::redis::{Aof, RedisServer};
use tenure_testkit::tenure::{done, read, told};
use tokio::time::timeout;

use super::shared::{LONG, owner, sharing};
use super::{ended, tenure};

const PUSHES: usize = 30;
/// The push before which the leader is killed.
const KILLED_AT: usize = 10;

/// How often each job was begun, and which run now.
#[derive(Default)]
struct Runs {
    begun: BTreeMap<String, usize>,
    running: Vec<String>,
    twice_at_once: Vec<String>,
}

/// stdout of a command that ended well.
fn stdout(output: Output) -> String {
    let (code, out, err) = read(output);
    assert_eq!(code, 0, "{err}");
    out
}

#[test]
fn clients_of_every_kind_go_on_when_the_leader_is_killed() {
    let Some((redis, mut servers, runtime)) = sharing(3) else { return };
    let url = redis.url();
    let command = |args: &[&str]| tenure(&[&["--url", &url][..], args].concat(), None);
    let owns = owner(&servers);
    let runs = Arc::new(Mutex::new(Runs::default()));
    let client = runtime.block_on(async { Client::connect(&url).await.unwrap() });
    // A worker, a reader of events, a wait and a lock that are there before the leader dies.
    let worker = client.worker(["q"]).concurrency(4);
    let stopper = worker.stopper();
    let seen = runs.clone();
    let working = runtime.spawn(worker.run(move |job: Job| {
        let seen = seen.clone();
        async move {
            let id = job.id().to_string();
            {
                let mut runs = seen.lock().unwrap();
                *runs.begun.entry(id.clone()).or_default() += 1;
                if runs.running.contains(&id) {
                    runs.twice_at_once.push(id.clone());
                }
                runs.running.push(id.clone());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            seen.lock().unwrap().running.retain(|one| *one != id);
        }
    }));
    let mut events = client.events().only("job.succeeded").queue("q").from_first();
    let reading = runtime.spawn(async move {
        let mut ended = Vec::new();
        while ended.len() < PUSHES {
            match events.next().await.unwrap() {
                Some(Told::Event(event)) => ended.extend(event.happened.about.job),
                other => panic!("{other:?}"),
            }
        }
        ended
    });
    let waits = command(&["push", "late", "7", "--id", "late", "--wait"]).spawn().unwrap();
    let locks = command(&["lock", "deploy", "--", "sh", "-c", "cat"])
        .stdin(std::process::Stdio::piped())
        .spawn();
    let mut locks = locks.unwrap();
    for n in 0..PUSHES {
        if n == KILLED_AT {
            let killed = servers.remove(owns);
            killed.signal(Signal::SIGKILL);
            drop(killed);
        }
        done(&mut command(&["push", "q", "--id", &format!("{n:02}")]));
    }
    // The servers that are left have a leader too.
    owner(&servers);
    let script = "echo 49 > $TENURE_RESULT_FILE";
    done(&mut command(&["work", "late", "--until-empty", "--", "sh", "-c", script]));
    let result = stdout(waits.wait_with_output().unwrap());
    assert!(result.contains("49"), "{result}");
    drop(locks.stdin.take());
    stdout(locks.wait_with_output().unwrap());
    let read = runtime.block_on(async { timeout(LONG, reading).await.unwrap().unwrap() });
    assert_eq!(read.len(), PUSHES);
    stopper.drain();
    runtime.block_on(async { timeout(LONG, working).await.unwrap().unwrap().unwrap() });
    for n in 0..PUSHES {
        let job = JobRef::parse(&format!("{n:02}")).unwrap();
        let job = runtime.block_on(client.get_job(job)).unwrap();
        assert_eq!((job.state, job.lost), (JobState::Succeeded, 0), "{job:?}");
    }
    let runs = runs.lock().unwrap();
    assert_eq!(runs.twice_at_once, Vec::<String>::new());
    assert_eq!(runs.begun.values().filter(|begun| **begun != 1).count(), 0, "{:?}", runs.begun);
    assert_eq!(runs.begun.len(), PUSHES);
}

#[test]
fn a_store_that_no_server_uses_is_69_and_says_how_to_start_one() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Off, &[]);
    redis.must(&["ACL", "SETUSER", "ann", "on", ">geheim", "~*", "+@all"]);
    let given = redis.url().replace("redis://", "redis://ann:geheim@");
    let shown = redis.url().replace("redis://", "redis://•••@");
    let work = ["work", "q", "--until-empty", "--", "true"];
    for args in [&["push", "q"][..], &["jobs"], &work, &["status"]] {
        let (code, log) = ended(tenure(&[&["--url", &given][..], args].concat(), None));
        assert_eq!(code, Some(69), "{args:?}: {log}");
        let says =
            format!("no server of Tenure uses {shown}; start one: tenure serve --store {shown}\n");
        assert!(log.contains(&says) && !log.contains("geheim"), "{args:?}: {log}");
        // That is all: the hint of a server that does not answer would say it again.
        assert!(!log.contains("hint: "), "{args:?}: {log}");
    }
    // Commands that read the Redis itself name it too.
    for args in [
        &["store", "show", "--store", &given][..],
        &["store", "set", "--replicas", "1", "--store", &given],
        &["store", "compact", "--store", &given],
        &["doctor", &given],
    ] {
        let (_, out, err) = told(&mut tenure(args, None));
        let log = (out + &err).split_whitespace().collect::<Vec<_>>().join(" ");
        let says = format!("start one: tenure serve --store {shown}");
        assert!(log.contains(&says) && !log.contains("geheim"), "{args:?}: {log}");
    }
}

#[test]
fn status_and_doctor_look_at_the_servers_of_a_list() {
    let Some((redis, servers, _runtime)) = sharing(2) else { return };
    owner(&servers);
    let list = format!("http://127.0.0.1:1,http://{},http://{}", servers[0].at, servers[1].at);
    for url in [list.clone(), redis.url()] {
        let said = done(&mut tenure(&["--url", &url, "status", "--json"], None));
        assert!(said.contains("\"ready\":true"), "{said}");
    }
    let (code, said, _) = told(&mut tenure(&["--url", &list, "doctor"], None));
    assert_eq!(code, 1, "{said}");
    for server in &servers {
        assert!(said.contains(&format!("\nhttp://{}\n", server.at)), "{said}");
    }
    assert!(said.contains("\nhttp://127.0.0.1:1\nwrong  reached"), "{said}");
    assert!(!said.contains("all in all"), "nothing stands there: {said}");
    // Findings about the whole store stand below the address of the Redis, those about a server below its own.
    let (_, said, _) = told(&mut tenure(&["doctor", &redis.url()], None));
    assert!(said.starts_with(&format!("{}\nok     version ", redis.url())), "{said}");
    for server in &servers {
        assert!(said.contains(&format!("\nhttp://{}\nok     token ", server.at)), "{said}");
    }
    for part in ["tenure doctor redis://HOST", "ok     sync ", "  room "] {
        assert!(!said.contains(part), "{part} is of no store in Redis: {said}");
    }
}
