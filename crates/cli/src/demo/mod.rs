//! `tenure demo`: real work handed out under real caps, with crashes in the middle, and a web site
//! that counts for itself whether any cap was broken.
//!
//! It uses nothing but the public API, the library and processes of this same binary. All that it
//! starts and writes is gone when it ends, however it ends. On a Redis it runs two servers, kills one,
//! and starts that again when the other has gone on for a while.

mod crawl;
mod fetch;
mod look;
mod show;
mod site;
mod store;
mod verdict;
mod witness;
pub mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;
use tenure::Client;
use tenure_core::count::counted;
use tenure_core::names::Namespace;
use tenure_core::requests::{Audit, ListLeases, ListWorkers};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use self::crawl::{ACCOUNTS, DemoNames, Got, HOSTS, PAGES};
use self::look::{DemoLook, Most, look};
use self::show::Show;
use self::site::{Site, Temper};
use self::store::{DemoPlace, Servers};
use self::verdict::{DemoRecords, DemoVerdict};
use self::worker::{Accepted, SLOTS};
use crate::child_processes::{
    ChildProcess, ProcessWords as Say, temporary_folder, unless_interrupted,
};
use crate::exit::{Failure, NO, NOT_STARTED};
use crate::output::prose::wrapped;
use crate::output::{Output, width};
use crate::scratch;

/// Workers at the start; one is killed.
const WORKERS: usize = 3;
/// The one that is killed.
const VICTIM: usize = 1;
/// One worker is killed after this many pages, right after the site has answered it.
const KILL_WORKER_AFTER: u64 = 60;
/// The site bans an account after this many pages.
const BAN_AFTER: u64 = 120;
/// A server is killed after this many pages.
const KILL_SERVER_AFTER: u64 = 180;
/// If there is another server, it answers this many pages before the killed one is started again.
const MEANWHILE: u64 = 20;
/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The crawl takes about 15 s; longer than this something is wrong.
const CRAWL_MAX: Duration = Duration::from_secs(120);
/// How long a worker may take to finish.
const FINISH_MAX: Duration = Duration::from_secs(10);

/// Watch Tenure at work, without any preparation: a crawl under caps, with crashes in the middle.
#[derive(Args, Debug, Clone)]
pub struct DemoArgs {
    /// Run on a Redis, with two servers: redis://HOST:6379 and the like (uses its own keys and removes them at the
    /// end), or `redis` to start one.
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// Keep the server running at the end, until Ctrl-C.
    #[arg(long)]
    pub hold: bool,
}

/// The document of `--json`.
#[derive(Serialize)]
struct DemoAnswer<'a> {
    pages: usize,
    seconds: f64,
    servers: usize,
    server_away_ms: f64,
    /// Pages that were answered while it was away.
    pages_meanwhile: u64,
    #[serde(flatten)]
    verdict: &'a DemoVerdict,
}

/// What happened at the site.
enum DemoEvent {
    WorkerKilled,
    Banned(String),
}

/// Runs the demo; exit 1 if a count does not hold.
pub async fn run(out: Output, args: DemoArgs) -> Result<(), Failure> {
    let place = DemoPlace::of(args.store.as_deref())?;
    let ended = unless_interrupted(show(out, &args, &place)).await;
    // All that wrote there has ended by now.
    scratch::left(ended, place.leave().await)
}

/// All that is up while the demo runs. Dropped in this order: workers, servers, folder.
struct Stage {
    workers: Vec<ChildProcess>,
    servers: Servers,
    site: Site,
    client: Client,
    words: DemoNames,
    said: mpsc::UnboundedReceiver<String>,
    events: mpsc::UnboundedReceiver<DemoEvent>,
    /// The process to be killed by the site, once it is armed; 0 before and after.
    trap: Arc<AtomicU32>,
    _folder: tempfile::TempDir,
}

async fn show(out: Output, args: &DemoArgs, place: &DemoPlace) -> Result<(), Failure> {
    let mut show = Show::new();
    let mut stage = Stage::set(&mut show, place).await?;
    let begun = Instant::now();
    let played = stage.play(&mut show).await;
    show.end();
    let Played { held, most, away, meanwhile } = played?;
    let seconds = begun.elapsed().as_secs_f64();
    let records = stage.told(held, most).await?;
    let verdict = verdict::judge(&crawl::pages(), &stage.site.seen(), &records);
    let server_away_ms = away.as_secs_f64() * 1_000.0;
    let servers = stage.servers.count();
    let answer = DemoAnswer {
        pages: PAGES,
        seconds,
        servers,
        server_away_ms,
        pages_meanwhile: meanwhile,
        verdict: &verdict,
    };
    out.answer(&answer, |answer| {
        let (pages, seconds) = (answer.pages, answer.seconds);
        let away = answer.server_away_ms;
        let mut first =
            format!("{pages} pages in {seconds:.1} s; the server was away for {away:.0} ms");
        if servers > 1 {
            first = format!(
                "{pages} pages in {seconds:.1} s; one of {servers} servers was away for {away:.0} \
                 ms, and the crawl went on: {meanwhile} pages meanwhile"
            );
        }
        let width = width::of_prose();
        let first = wrapped(&first, width, "");
        format!("\n{first}\n\n{}\n{}", verdict.text(width), next_steps(&stage, args))
    })?;
    if args.hold {
        crate::output::tell("the server is up until Ctrl-C");
        std::future::pending::<()>().await;
    }
    if verdict.ok {
        Ok(())
    } else {
        Err(Failure::new(NO, "a count does not hold").hint("this is a bug: please report it"))
    }
}

/// Three commands to go on with, as they can be typed.
fn next_steps(stage: &Stage, args: &DemoArgs) -> String {
    let own = std::env::args().next().unwrap_or_else(|| "tenure".to_owned());
    if args.hold {
        let own = format!("{own} --url {}", stage.servers.lasting().url());
        return format!(
            "To look around while the server is up:\n  {own} limit\n  {own} pool accounts\n  \
             {own} job news.example/1\n"
        );
    }
    format!(
        "To go on with a server of your own, each line in its own terminal:\n  {own} serve\n  \
         {own} push mail '{{\"to\":\"ann@example.com\"}}'\n  {own} work mail -- cat\n\n\
         To look around in the server of the demo, which is gone now:\n  {own} demo --hold\n"
    )
}

/// Facts of the play that neither the site nor the store knows.
struct Played {
    held: Vec<String>,
    most: Most,
    away: Duration,
    meanwhile: u64,
}

/// A server that was killed and is not back yet.
#[derive(Clone, Copy)]
struct Killed {
    begun: Instant,
    /// Pages that the site had answered.
    done: u64,
}

impl Stage {
    async fn set(show: &mut Show, place: &DemoPlace) -> Result<Self, Failure> {
        let folder = temporary_folder(None)?;
        let servers = Servers::start(place, folder.path()).await?;
        let client = Client::new(servers.lasting().engine()?, Namespace::main());
        let words = DemoNames::new()?;
        let (send, events) = mpsc::unbounded_channel();
        let trap = Arc::new(AtomicU32::new(0));
        let site = Site::open(temper(send, trap.clone())).await.map_err(|error| {
            Failure::new(NOT_STARTED, format!("the demo's site cannot listen: {error}"))
        })?;
        crawl::prepare(&client, &words).await?;
        crawl::push(&client, &words).await?;
        let (say, said) = mpsc::unbounded_channel();
        let address = site.address().to_string();
        let worker = |n: usize| {
            let name = worker_name(n);
            let url = servers.of_worker(n).url().to_string();
            let args = ["demo-worker", "--server", &url, "--site", &address, "--name", &name];
            ChildProcess::start(None, &args, Say::Lines(say.clone()))
        };
        let workers = (0..WORKERS).map(worker).collect::<Result<Vec<_>, _>>()?;
        for server in servers.described() {
            show.tell(&server);
        }
        show.tell(&format!("a web site of {} hosts: http://{address}", HOSTS.len()));
        show.tell(&format!(
            "{WORKERS} workers of {SLOTS} slots, {ACCOUNTS} accounts, {PAGES} pages pushed"
        ));
        Ok(Stage { workers, servers, site, client, words, said, events, trap, _folder: folder })
    }

    /// Lets the crawl run, with its crashes, until no job is open.
    async fn play(&mut self, show: &mut Show) -> Result<Played, Failure> {
        let until = Instant::now() + CRAWL_MAX;
        let (mut held, mut armed) = (None, false);
        let (mut killed, mut away) = (None, None);
        let mut most = Most::default();
        loop {
            while let Ok(event) = self.events.try_recv() {
                match event {
                    DemoEvent::WorkerKilled => held = Some(self.worker_killed(show).await?),
                    DemoEvent::Banned(account) => show.tell(&format!(
                        "the site bans {account}: its worker reports this, and no worker gets it again"
                    )),
                }
            }
            let done = self.site.seen().answered;
            if done >= KILL_WORKER_AFTER && !armed {
                armed = true;
                // The site springs it with its next answer to that worker.
                self.trap.store(self.workers[VICTIM].pid(), Ordering::SeqCst);
            }
            if done >= KILL_SERVER_AFTER && killed.is_none() {
                killed = Some(self.kill_server(show, done));
            }
            if let (Some(Killed { begun, done: then }), None) = (killed, away) {
                let goes_on = self.servers.count() > 1;
                if !goes_on || done >= then + MEANWHILE {
                    away = Some((self.start_server(show, begun).await?, done - then));
                }
            }
            if let Ok(look) = look(&self.client, &self.words).await {
                most.note(&look);
                show.draw(&look);
                if look.open == 0 {
                    // Both crashes came long before the last page, or the demo showed nothing.
                    let (Some(held), Some((away, meanwhile))) = (held.take(), away) else {
                        return Err(Failure::bug("the crawl ended before its crashes"));
                    };
                    return Ok(Played { held, most, away, meanwhile });
                }
                self.late(until, Some(&look))?;
            }
            self.late(until, None)?;
            sleep(LOOK_EVERY).await;
        }
    }

    fn late(&self, until: Instant, look: Option<&DemoLook>) -> Result<(), Failure> {
        if Instant::now() < until {
            return Ok(());
        }
        let open = look.map_or("the server does not answer".to_owned(), |look| {
            format!("{} still open", counted(look.open, "job is", "jobs are"))
        });
        Err(Failure::new(NO, format!("the crawl does not end: {open}")))
    }

    /// The site has killed a worker: finds it in Tenure, and returns the jobs that it still holds.
    async fn worker_killed(&mut self, show: &Show) -> Result<Vec<String>, Failure> {
        self.workers[VICTIM].kill();
        let pid = self.workers[VICTIM].pid();
        let workers = self.client.run(ListWorkers::default()).await?.items;
        let Some(worker) = workers.into_iter().find(|worker| worker.pid == Some(pid)) else {
            return Err(Failure::bug(format!("Tenure does not know the worker with pid {pid}")));
        };
        let worker = Some(worker.id.to_string());
        let leases = self.client.run(ListLeases { worker, ..ListLeases::default() }).await?;
        let held: Vec<String> =
            leases.items.into_iter().filter_map(|lease| Some(lease.job?.to_string())).collect();
        show.tell(&format!(
            "kill -9 of worker {} (pid {pid}) right after an answer of the site; it holds {}",
            worker_name(VICTIM),
            held.join(", ")
        ));
        Ok(held)
    }

    fn kill_server(&mut self, show: &Show, done: u64) -> Killed {
        let begun = Instant::now();
        let which = self.servers.which();
        let server = self.servers.mortal();
        let pid = server.pid();
        server.kill();
        show.tell(&format!("kill -9 of {which} (pid {pid})"));
        Killed { begun, done }
    }

    async fn start_server(&mut self, show: &Show, begun: Instant) -> Result<Duration, Failure> {
        let which = self.servers.which();
        let server = self.servers.mortal();
        server.restart().await?;
        let away = begun.elapsed();
        show.tell(&format!("{which} is back (pid {}) after {away:.0?}", server.pid()));
        Ok(away)
    }

    /// Lets the workers finish, and gathers their records and Tenure's.
    async fn told(&mut self, held: Vec<String>, most: Most) -> Result<DemoRecords, Failure> {
        for worker in &mut self.workers {
            worker.finish(FINISH_MAX).await;
        }
        let mut records =
            DemoRecords { held, most, killed: worker_name(VICTIM), ..DemoRecords::default() };
        while let Ok(Some(line)) = timeout(FINISH_MAX, self.said.recv()).await {
            if let Some(one) = Accepted::read(&line) {
                records.accepted.entry(one.page).or_default().insert(one.fetch);
            }
        }
        let jobs = look::all_succeeded(&self.client, &self.words).await?;
        let result = |job: &tenure_core::job::JobView| {
            let got: Got = serde_json::from_str(job.result.as_ref()?.text()).ok()?;
            Some((job.id.to_string(), got.fetch))
        };
        records.results = jobs.iter().filter_map(result).collect::<BTreeMap<_, _>>();
        records.faults = self.client.run(Audit::default()).await?.faults;
        Ok(records)
    }
}

fn worker_name(n: usize) -> String {
    format!("w{}", n + 1)
}

/// The site bans an account in the middle. Once the trap is armed, it kills the victim right after an answer: so the
/// worker dies between the answer and its settle.
fn temper(send: mpsc::UnboundedSender<DemoEvent>, trap: Arc<AtomicU32>) -> Temper {
    let killed = send.clone();
    Temper {
        ban_after: BAN_AFTER,
        served: Box::new(move |worker| {
            if worker != worker_name(VICTIM) {
                return;
            }
            let pid = trap.swap(0, Ordering::SeqCst);
            if let (Ok(raw), true) = (i32::try_from(pid), pid != 0) {
                // It is our child and not waited for yet, so the id is still its own.
                let _ = kill(Pid::from_raw(raw), Signal::SIGKILL);
                let _ = killed.send(DemoEvent::WorkerKilled);
            }
        }),
        banned: Box::new(move |account| drop(send.send(DemoEvent::Banned(account.to_owned())))),
    }
}
