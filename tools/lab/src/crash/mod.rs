//! `tenure-lab crash`: kill -9 of the server under load, again and again, and a check that no
//! answered call is lost and no job ran twice at one time.

mod check;
pub mod client;
mod log;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tenure::Client;
use tenure_console::child_processes::{
    ChildProcess, ChildServer, ProcessWords, ServerStore, temporary_folder, unless_interrupted,
};
use tenure_console::exit::{Failure, NO};
use tenure_console::output::Output;
use tenure_core::bounds::LIST_MAX;
use tenure_core::count::counted;
use tenure_core::job::{JobState, JobView, Need};
use tenure_core::names::{LimitName, Namespace, PoolName, ResourceId};
use tenure_core::requests::{Audit, GetStats, ListJobs, Meant, Page, PutLimit, SyncResources};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitSettings, NewResource};
use tokio::sync::mpsc;
use tokio::time::sleep;

use self::check::{Checked, CheckedJob};
use self::client::{FAMILY, POOL, Ran, Role};
use crate::chance::Chance;
use crate::{say, under_test};

/// Clients of each role.
const OF_EACH: usize = 4;
/// Resources of the pool.
const THINGS: usize = 4;
/// How long the server lives before it is killed.
const LIFE_MS: (u64, u64) = (50, 1_000);
/// How long the clients may take to begin.
const BEGIN_MAX: Duration = Duration::from_secs(30);
/// How long the remaining jobs may take, once no more are pushed.
const REST_MAX: Duration = Duration::from_secs(120);
/// How long a client may take to finish: its calls are retried for a minute.
const FINISH_MAX: Duration = Duration::from_secs(90);
/// The pause between two looks at the remaining jobs.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Kill the server with SIGKILL under load, and check that nothing answered is lost.
#[derive(Args, Debug, Clone)]
pub struct CrashArgs {
    /// How often it is killed.
    #[arg(long, value_name = "N", default_value_t = 20)]
    rounds: u32,
    /// Makes the random moments those of an earlier run; printed at the start.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Durability of an answer.
    #[arg(long, value_name = "WORD", default_value = "always")]
    #[arg(value_parser = ["always", "everysec"])]
    durability: String,
    /// Where the temporary folder is made.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct CrashAnswer<'a> {
    ok: bool,
    seed: u64,
    kills: u32,
    away_ms_max: f64,
    #[serde(flatten)]
    checked: &'a Checked,
}

/// Runs the check; exit 1 if it finds a fault.
pub async fn run(out: Output, args: CrashArgs) -> Result<(), Failure> {
    unless_interrupted(crash(out, args)).await
}

async fn crash(out: Output, args: CrashArgs) -> Result<(), Failure> {
    let seed = args.seed.unwrap_or_else(Chance::any_seed);
    say(&format!("seed {seed}"));
    let mut chance = Chance::of(seed);
    let folder = temporary_folder(args.dir.as_deref())?;
    let mut server =
        under_test::server(folder.path(), ServerStore::folder(&args.durability)).await?;
    let client = Client::new(server.engine()?, Namespace::main());
    prepare(&client).await?;
    let mut load = Load::start(&server, folder.path(), &mut chance)?;

    load.begun().await?;

    let mut longest = Duration::ZERO;
    for round in 1..=args.rounds {
        sleep(Duration::from_millis(chance.within(LIFE_MS.0, LIFE_MS.1))).await;
        let begun = Instant::now();
        server.restart().await?;
        longest = longest.max(begun.elapsed());
        load.alive()?;
        say(&format!("kill {round} of {}, back after {:.0?}", args.rounds, begun.elapsed()));
    }
    load.finish(&client).await?;
    // Once more, without clients: the check reads what is on the disk.
    server.restart().await?;

    let mut notes = Vec::new();
    for path in &load.logs {
        notes.extend(log::read(path).map_err(|error| Failure::file("cannot read a log", &error))?);
    }
    let mut checked = check::check(&notes, &stored(&client).await?);
    for fault in client.run(Audit::default()).await?.faults {
        checked.fault(format!("audit: {fault}"));
    }
    if checked.runs == 0 || checked.settled == 0 {
        checked.fault("nothing ran, so nothing was checked".to_owned());
    }
    let away_ms_max = longest.as_secs_f64() * 1_000.0;
    let kills = args.rounds;
    let ok = checked.faults == 0;
    let answer = CrashAnswer { ok, seed, kills, away_ms_max, checked: &checked };
    out.answer(&answer, text)?;
    if ok {
        Ok(())
    } else {
        Err(Failure::new(NO, format!("{} faults were found", checked.faults))
            .hint(format!("this is a bug: please report it, with --seed {seed}")))
    }
}

fn text(answer: &CrashAnswer<'_>) -> String {
    let Checked { pushed, runs, settled, ran_again, shown, .. } = answer.checked;
    let mut text = format!(
        "{} under load, the server away for at most {:.0} ms\n{pushed} answered pushes, {runs} runs \
         ({ran_again} jobs ran more than once), {settled} answered settles\n",
        counted(u64::from(answer.kills), "kill", "kills"),
        answer.away_ms_max
    );
    for fault in shown {
        text += &format!("FAULT {fault}\n");
    }
    if answer.ok {
        text += "every answered push is there, every answered settle holds, no two runs of a job \
                 overlap, fences rise, the audit is clean\n";
    }
    text
}

async fn prepare(client: &Client) -> Result<(), Failure> {
    let limit = LimitName::parse(&format!("{FAMILY}:*"))?;
    let settings = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
    client.run(PutLimit { limit, settings, gauge: None }).await?;
    let thing = |n: usize| {
        let id = ResourceId::parse(&format!("thing-{n}"))?;
        Ok(NewResource { id, data: Json::null(), tags: Vec::new(), slots: 1 })
    };
    let resources: Result<_, Failure> = (0..THINGS).map(thing).collect();
    let pool = PoolName::parse(POOL)?;
    let sync = SyncResources { pool, resources: resources?, meant: Meant::Ask, version: None };
    client.run(sync).await?;
    Ok(())
}

/// The running clients of the check.
struct Load {
    pushers: Vec<ChildProcess>,
    workers: Vec<ChildProcess>,
    logs: Vec<PathBuf>,
    words: mpsc::UnboundedReceiver<String>,
}

impl Load {
    fn start(server: &ChildServer, folder: &Path, chance: &mut Chance) -> Result<Self, Failure> {
        let url = server.url().to_string();
        let (send, words) = mpsc::unbounded_channel();
        let mut logs = Vec::new();
        let mut start = |role: Role, n: usize| {
            let path = folder.join(format!("{}-{n}.log", role.word()));
            let (log, seed) = (path.display().to_string(), chance.within(0, u64::MAX).to_string());
            let args = ["crash-client", "--server", &url, "--role", role.word()];
            let args = [&args[..], &["--log", &log, "--seed", &seed]].concat();
            logs.push(path);
            ChildProcess::start(None, &args, ProcessWords::Answer(send.clone()))
        };
        let pushers = (0..OF_EACH).map(|n| start(Role::Push, n)).collect::<Result<_, _>>()?;
        let workers = (0..OF_EACH).map(|n| start(Role::Work, n)).collect::<Result<_, _>>()?;
        Ok(Load { pushers, workers, logs, words })
    }

    /// Waits until every client has written a note: each has reached the server, and from then on
    /// survives its deaths.
    async fn begun(&mut self) -> Result<(), Failure> {
        let until = Instant::now() + BEGIN_MAX;
        let empty = |path: &PathBuf| std::fs::metadata(path).map_or(true, |file| file.len() == 0);
        while self.logs.iter().any(empty) {
            self.alive()?;
            if Instant::now() > until {
                return Err(Failure::new(NO, "a client does not begin"));
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// A client that has given up would check nothing.
    fn alive(&mut self) -> Result<(), Failure> {
        for client in self.pushers.iter_mut().chain(&mut self.workers) {
            if let Some(status) = client.ended() {
                let word = self.words.try_recv().unwrap_or_default();
                return Err(Failure::new(NO, format!("a client gave up ({status}) {word}")));
            }
        }
        Ok(())
    }

    /// Lets the pushers finish, then the workers when no job is left to run.
    async fn finish(&mut self, client: &Client) -> Result<(), Failure> {
        for pusher in &mut self.pushers {
            ended_well(pusher.finish(FINISH_MAX).await)?;
        }
        let until = Instant::now() + REST_MAX;
        loop {
            let jobs = client.run(GetStats).await?.jobs;
            let open = |(state, _): &(&JobState, &u64)| !state.is_finished();
            let left: u64 = jobs.iter().filter(open).map(|(_, count)| count).sum();
            if left == 0 {
                break;
            }
            if Instant::now() > until {
                return Err(Failure::new(
                    NO,
                    format!("{} never done", counted(left, "job is", "jobs are")),
                ));
            }
            sleep(LOOK_EVERY).await;
        }
        for worker in &mut self.workers {
            ended_well(worker.finish(FINISH_MAX).await)?;
        }
        Ok(())
    }
}

fn ended_well(status: Option<std::process::ExitStatus>) -> Result<(), Failure> {
    match status {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(Failure::new(NO, format!("a client gave up ({status})"))),
        None => Err(Failure::new(NO, "a client did not finish")),
    }
}

/// All jobs of the store.
async fn stored(client: &Client) -> Result<BTreeMap<String, CheckedJob>, Failure> {
    let mut all = BTreeMap::new();
    let mut cursor = None;
    loop {
        let page = Page { max: LIST_MAX, cursor };
        let listed = client.run(ListJobs { page, full: true, ..ListJobs::default() }).await?;
        all.extend(listed.items.iter().map(|job| (job.id.to_string(), stored_job(job))));
        cursor = listed.next;
        if cursor.is_none() {
            return Ok(all);
        }
    }
}

fn stored_job(job: &JobView) -> CheckedJob {
    let result = job.result.as_ref().and_then(|text| serde_json::from_str::<Ran>(text.text()).ok());
    let limit = job.needs.iter().find_map(|need| match need {
        Need::Limit { limit, .. } => Some(limit.to_string()),
        Need::Pool { .. } => None,
    });
    CheckedJob {
        state: job.state,
        result: result.map(|ran| ran.fence),
        attempt: job.attempt,
        limit,
    }
}
