//! A limit whose gauge is a scrapyd, seen from the scrapyd: it never runs more than the cap, by its own count.
//!
//! It starts runs late, ends them before their workers notice, answers garbage, hangs, and is restarted without its
//! list; a worker is killed while its runs go on. Then the same at random, with the server killed as well, for some
//! seconds (`TENURE_GAUGE_SECONDS=600` for a soak).

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenure_testkit::redis::{Aof, RedisServer};
use tenure_testkit::tenure::{Process, Server, told};
use tenure_testkit::{Dice, needs_redis};

use crate::{client, tenure};

/// Most runs at once.
const CAP: usize = 3;
const JOBS: usize = 14;
/// A run is shown, and begins, this long after it was asked for at the latest; the gauge's `lag` is longer.
const LATE_MS: u64 = 700;
const PATIENCE: Duration = Duration::from_secs(120);

/// CMD asks for a run and waits until a file says that it is over. Each of its runs has a name of its own.
const CMD: &str = r#"
name="$TENURE_JOB_ID.$$"
echo > "$name.new" && mv "$name.new" "$name.asked"
while [ -e alive ] && [ ! -e "$name.over" ]; do sleep 0.03; done
"#;
/// While this file is there, runs go on.
const ALIVE: &str = "alive";

/// How the address answers.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mood {
    Well,
    Garbage,
    Hangs,
}

struct Run {
    job: String,
    begins: Instant,
    ends: Instant,
    /// When its worker learns of the end; `None` if it has.
    tells: Option<Instant>,
}

/// The runs that really exist.
struct Scrapyd {
    folder: PathBuf,
    runs: BTreeMap<String, Run>,
    mood: Mood,
    asked: usize,
    read: usize,
    most: usize,
    /// Whether more than the cap ran at once.
    over: Vec<String>,
}

impl Scrapyd {
    fn live(&self, now: Instant) -> impl Iterator<Item = &Run> {
        self.runs.values().filter(move |run| run.begins <= now && run.ends > now)
    }

    /// A run of somebody else, from now on.
    fn theirs(&mut self, name: &str, length: Duration) {
        let now = Instant::now();
        let run = Run { job: name.to_owned(), begins: now, ends: now + length, tells: None };
        self.runs.insert(name.to_owned(), run);
    }

    fn step(&mut self) {
        let now = Instant::now();
        for entry in std::fs::read_dir(&self.folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let Some(name) = name.strip_suffix(".asked").map(str::to_owned) else { continue };
            if self.runs.contains_key(&name) {
                continue;
            }
            self.asked += 1;
            // Always the same, and never two equal ones in a row.
            let n = self.asked as u64;
            let begins = now + Duration::from_millis(n * 271 % LATE_MS);
            let ends = begins + Duration::from_millis(300 + n * 397 % 900);
            let tells = Some(ends + Duration::from_millis(n * 113 % 300));
            let job = name.split('.').next().unwrap_or_default().to_owned();
            self.runs.insert(name, Run { job, begins, ends, tells });
        }
        let live = self.live(now).count();
        self.most = self.most.max(live);
        if live > CAP {
            self.over.push(format!("{live} run at once"));
        }
        let folder = self.folder.clone();
        for (name, run) in &mut self.runs {
            if run.tells.take_if(|at| *at <= now).is_some() {
                std::fs::write(folder.join(format!("{name}.over")), "").unwrap();
            }
        }
    }

    /// It is restarted: its runs are killed, and its list is empty.
    fn starts_anew(&mut self) {
        let now = Instant::now();
        for run in self.runs.values_mut().filter(|run| run.ends > now) {
            run.ends = now;
            run.tells = run.tells.map(|_| now);
        }
    }

    fn list(&self) -> String {
        let one = |run: &Run| format!("{{\"id\":\"{}\",\"spider\":\"s\"}}", run.job);
        let running: Vec<String> = self.live(Instant::now()).map(one).collect();
        format!(
            "{{\"status\":\"ok\",\"pending\":[],\"running\":[{}],\"finished\":[]}}",
            running.join(",")
        )
    }
}

type Shared = Arc<Mutex<Scrapyd>>;

/// Answers one request by the mood.
fn answer(mut stream: TcpStream, scrapyd: &Shared) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    assert!(head.starts_with("GET /listjobs.json?project=news HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: Basic bWU6Z2VoZWlt\r\n"), "{head}");
    let (mood, list) = {
        let mut scrapyd = scrapyd.lock().unwrap();
        scrapyd.read += 1;
        (scrapyd.mood, scrapyd.list())
    };
    let body = match mood {
        Mood::Well => list,
        Mood::Garbage => "<html>geheim</html>".to_owned(),
        Mood::Hangs => {
            // Until the other side gives up.
            let _ = stream.read(&mut byte);
            return;
        }
    };
    let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
}

/// The address, and what keeps it alive.
struct Fake {
    scrapyd: Shared,
    at: String,
    over: Arc<AtomicBool>,
}

impl Fake {
    fn start(folder: &Path) -> Self {
        let scrapyd = Arc::new(Mutex::new(Scrapyd {
            folder: folder.to_owned(),
            runs: BTreeMap::new(),
            mood: Mood::Well,
            asked: 0,
            read: 0,
            most: 0,
            over: Vec::new(),
        }));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let over = Arc::new(AtomicBool::new(false));
        let (answered, ended) = (scrapyd.clone(), over.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let scrapyd = answered.clone();
                std::thread::spawn(move || answer(stream, &scrapyd));
            }
        });
        let (stepped, ended) = (scrapyd.clone(), over.clone());
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                stepped.lock().unwrap().step();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Fake { scrapyd, at, over }
    }

    fn look<T>(&self, look: impl FnOnce(&mut Scrapyd) -> T) -> T {
        look(&mut self.scrapyd.lock().unwrap())
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.at);
    }
}

fn said(url: &str, within: &Path, arguments: &[&str]) -> String {
    let (code, text, errors) = told(client(url, arguments).current_dir(within));
    assert_eq!(code, 0, "{arguments:?}: {text}{errors}");
    assert!(!text.contains("geheim") && !errors.contains("geheim"), "{text}{errors}");
    text
}

fn serve(within: &Path, store: &str, port: u16) -> Server {
    let mut command = tenure(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
    Server::start(command.env("TENURE_STORE", store).current_dir(within), PATIENCE)
}

fn worker(url: &str, within: &Path) -> Process {
    let arguments = ["work", "q", "--concurrency", "4", "--ttl", "2s", "--", "sh", "-c", CMD];
    let mut work = client(url, &arguments);
    work.current_dir(within).stdout(Stdio::null()).stderr(Stdio::null());
    Process::start(&mut work, PATIENCE)
}

fn until(what: &str, fake: &Fake, so: impl Fn(&Fake) -> bool) {
    tenure_testkit::tenure::until(PATIENCE, what, || {
        assert_eq!(fake.look(|scrapyd| scrapyd.over.clone()), Vec::<String>::new(), "{what}");
        so(fake)
    });
}

/// A folder for runs in one of the test's own.
fn folder_of_runs(folder: &Path) -> PathBuf {
    let runs = folder.join("runs");
    std::fs::create_dir(&runs).unwrap();
    std::fs::write(runs.join(ALIVE), "").unwrap();
    runs
}

/// The limit `scrapy` counts the runs there.
fn set_gauge(url: &str, folder: &Path, runs: &Path, fake: &Fake) {
    let cap = CAP.to_string();
    let address = folder.join("address");
    std::fs::write(&address, format!("http://me:geheim@{}/\n", fake.at)).unwrap();
    let address = format!("@{}", address.display());
    let set = [
        ["limit", "set", "scrapy"].as_slice(),
        &["--concurrency", &cap, "--gauge-scrapyd", &address, "--gauge-project", "news"],
        &["--gauge-every", "500ms", "--gauge-lag", "3s", "--gauge-on-stale", "hold"],
    ];
    let output = said(url, runs, &set.concat());
    assert!(
        output.contains("scrapyd http://•••@127.0.0.1") && output.contains("project news"),
        "{output}"
    );
}

#[test]
fn a_scrapyd_never_runs_more_than_the_cap() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder_of_runs(folder.path());
    let fake = Fake::start(&runs);
    let server = serve(folder.path(), "memory:", 0);
    let url = server.url();
    set_gauge(&url, folder.path(), &runs, &fake);
    // Somebody else is there already.
    fake.look(|scrapyd| scrapyd.theirs("theirs-1", Duration::from_secs(3)));
    fake.look(|scrapyd| scrapyd.theirs("theirs-2", Duration::from_secs(5)));
    for n in 0..JOBS {
        let id = format!("visit-{n}");
        said(&url, &runs, &["push", "q", "--id", &id, "--need", "limit:scrapy"]);
    }
    let (killed, worker_that_lives) = (worker(&url, &runs), worker(&url, &runs));
    let asked = |n| move |fake: &Fake| fake.look(|scrapyd| scrapyd.asked >= n);
    until("it is read, and the first job runs", &fake, asked(1));
    let output = said(&url, &runs, &["limit", "scrapy"]);
    assert!(output.contains("last reading"), "{output}");
    fake.look(|scrapyd| scrapyd.mood = Mood::Garbage);
    let failed = || said(&url, &runs, &["limit", "scrapy"]);
    until("it says that the answer is garbage", &fake, |_| failed().contains("not JSON"));
    fake.look(|scrapyd| scrapyd.mood = Mood::Well);
    until("a third job runs", &fake, asked(3));
    drop(killed);
    until("a fifth job runs", &fake, asked(5));
    fake.look(|scrapyd| scrapyd.mood = Mood::Hangs);
    until("it says that it got no answer", &fake, |_| failed().contains("no whole answer"));
    fake.look(|scrapyd| scrapyd.mood = Mood::Well);
    until("a seventh job runs", &fake, asked(7));
    fake.look(Scrapyd::starts_anew);
    let succeeded = || said(&url, &runs, &["jobs", "--state", "succeeded", "--json"]);
    until("all jobs have ended", &fake, |_| succeeded().matches("\"visit-").count() >= JOBS);
    drop(worker_that_lives);
    let (over, most, read) =
        fake.look(|scrapyd| (scrapyd.over.clone(), scrapyd.most, scrapyd.read));
    assert_eq!(over, Vec::<String>::new());
    assert_eq!(most, CAP, "all that is free is used");
    assert!(read > 5, "{read} readings");
    assert!(!server.said().contains("geheim"));
}

/// Workers and the server are killed while the scrapyd misbehaves.
fn chaos(store: impl Fn(&Path) -> String) {
    let lasts = std::env::var("TENURE_GAUGE_SECONDS").ok();
    let lasts = Duration::from_secs(lasts.map_or(8, |text| text.parse().unwrap()));
    let folder = tempfile::tempdir().unwrap();
    let runs = folder_of_runs(folder.path());
    let fake = Fake::start(&runs);
    let (store, port) = (store(folder.path()), tenure_testkit::redis::free_port());
    let mut server = serve(folder.path(), &store, port);
    let url = server.url();
    set_gauge(&url, folder.path(), &runs, &fake);
    // Somebody else is there already.
    fake.look(|scrapyd| scrapyd.theirs("theirs", Duration::from_secs(3)));
    let jobs = lasts.as_secs() * 10;
    let lines: Vec<_> = (0..jobs).map(|n| format!("{{\"id\":\"visit-{n}\"}}")).collect();
    std::fs::write(folder.path().join("jobs"), lines.join("\n")).unwrap();
    let file = folder.path().join("jobs").display().to_string();
    said(&url, &runs, &["queue", "set", "q", "--needs", "limit:scrapy"]);
    said(&url, &runs, &["push", "q", "--lines", &file]);
    let mut workers: Vec<_> = (0..3).map(|_| worker(&url, &runs)).collect();
    let (mut dice, begun) = (Dice(0x9E37_79B9_7F4A_7C15), Instant::now());
    let (mut killed, mut servers) = (0, 0);
    while begun.elapsed() < lasts {
        let next = Instant::now() + Duration::from_millis(200 + dice.below(900));
        until("the next thing happens", &fake, |_| Instant::now() >= next);
        match dice.below(10) {
            0..3 => {
                let at = dice.below(workers.len() as u64) as usize;
                workers[at] = worker(&url, &runs);
                killed += 1;
            }
            3..6 => {
                drop(server);
                server = serve(folder.path(), &store, port);
                servers += 1;
            }
            6 => fake.look(Scrapyd::starts_anew),
            7..9 => fake.look(|scrapyd| scrapyd.mood = Mood::Garbage),
            _ => fake.look(|scrapyd| scrapyd.mood = Mood::Hangs),
        }
        if dice.below(4) > 0 {
            fake.look(|scrapyd| scrapyd.mood = Mood::Well);
        }
    }
    drop(workers);
    std::fs::remove_file(runs.join(ALIVE)).unwrap();
    let (over, most, asked) =
        fake.look(|scrapyd| (scrapyd.over.clone(), scrapyd.most, scrapyd.asked));
    println!("{killed} workers and {servers} servers killed; {asked} runs, at most {most} at once");
    assert_eq!(over, Vec::<String>::new());
    assert!(asked as u64 >= lasts.as_secs() / 2, "next to nothing ran: {asked}");
}

#[test]
fn kills_never_make_a_scrapyd_exceed_its_cap() {
    chaos(|folder| format!("file:{}", folder.join("store").display()));
}

#[test]
fn kills_never_make_a_scrapyd_exceed_its_cap_on_redis() {
    needs_redis!();
    let redis = RedisServer::start(Aof::Always, &[]);
    chaos(|_| format!("{}?forgets=never", redis.url()));
}
