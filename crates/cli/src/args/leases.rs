//! The arguments of the commands that hold leases: work, lock, lease; and of `leases`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use tenure_core::bounds::{ITEMS_MAX, QUEUES_MAX, TTL_US_DEFAULT};
use tenure_core::names::{LimitName, PoolName, QueueName};
use tenure_core::time::Span;

use crate::args::PageArgs;
use crate::args::value::{every, parse_name, positive, span, ttl, ttl_or_token};

const WORK_AFTER: &str = "\
Examples:
  tenure work mail -- ./send-mail
  tenure work urgent bulk --strict -c 8 -- python worker.py
  tenure work crawl --until-empty -- sh -c 'curl -s \"$(jq -r .url)\"'
  tenure work mail --http http://127.0.0.1:8000/send --secret-file secret
  tenure work visit -c 4 --scrapyd http://127.0.0.1:6800

CMD gets the payload on stdin and in the file $TENURE_PAYLOAD_FILE, and finds
  TENURE_JOB_ID TENURE_QUEUE TENURE_KIND TENURE_ATTEMPT TENURE_DEADLINE
  TENURE_LEASE TENURE_FENCE TENURE_LEASE_FILE (the whole lease as JSON)
  TENURE_SCHEDULE       the schedule that made the job, if one did
  TENURE_SCHEDULE_AT    its moment; absent after a run-now
  TENURE_FLOW           the flow of the job, if it belongs to one
  TRACEPARENT           the trace that the job was pushed in, if it was
  TENURE_PARENTS_FILE   if the job waited for others: a line of JSON for each (the first 1,000),
                        {\"id\":…,\"state\":…,\"result\":…,\"error\":…}, or {\"flow\":…,\"counts\":…}
  TENURE_RESOURCE_ID and TENURE_RESOURCE_<KEY> (of the first resource)
  TENURE_RESULT_FILE    what it writes here is the job's result
  TENURE_PROGRESS_FILE  what it writes here is shown as the job's progress; the next run
                        finds it in the lease file, as .job.progress
  TENURE_OUTCOME_FILE   a settle item, which goes before the exit code:
                        {\"outcome\":\"snoozed\",\"for\":\"5m\"}
                        may have \"progress\"; \"reset\":true with a snooze: attempts from 0; and
                        \"next_in\":\"6h\": the job's schedule is next due this long after
It does not get TENURE_URL, TENURE_TOKEN and TENURE_STORE unless --pass-credentials is given.
Its exit code says how the run ended:
  0   succeeded        75  not yet: run it again in 30s, costs no attempt
  65  failed for good  any other: failed, the end of stderr is the error

When the lease is lost or the job is cancelled, all that CMD started gets SIGTERM, and SIGKILL 5 s
later. What CMD leaves behind when it ends is ended before the end is told (not after exit 0 with
--leave-children). If `work` itself is killed, all of it ends within a second (not with --detach). SIGTERM or SIGINT to `work`: it takes no more jobs, lets what runs finish within
--drain-timeout, gives the rest back and exits 0; a second one: now, exit 128+n.

With --http each job is a POST whose body is the payload. Headers Tenure-Job-Id, -Queue, -Kind,
-Attempt, -Fence, -Lease, -Deadline and more, and Idempotency-Key, the same in all runs of a job.
  2xx                   done; the body is the result (at most 256 KiB)
  202, or 2xx with Retry-After           not yet: ask again then (202 alone: in 30s)
  429 or 503 with Retry-After            the same; limits of the job in Tenure-Pause rest as long
  400, 410, 422         failed for good
  all else, redirects and no connection  failed, tried again as the job's retry says
A 2xx of type application/tenure-outcome+json is a settle item, as in the outcome file. Requests are
signed as Standard Webhooks has it if --secret-file or TENURE_HTTP_SECRET gives a secret (whsec_…).

With --scrapyd the payload is {\"project\",\"spider\",\"args\",\"settings\",\"version\"}; the spider runs under
the job's id, is found again by it after a crash or restart of this worker, and is cancelled with the
job. finish_reason at the end of its log says how it ended.

--until-empty ends when no job of the queues is ready or blocked; it does not wait for jobs that
are scheduled for later.";

/// Run a command for each job of queues, or have a service over HTTP or a scrapyd do it.
#[derive(Args, Debug)]
#[command(after_help = WORK_AFTER)]
#[command(group(ArgGroup::new("way").required(true).args(["command", "http", "scrapyd"])))]
pub struct WorkArgs {
    /// The queues to take jobs from.
    #[arg(required = true, value_name = "QUEUE", num_args = 1..=QUEUES_MAX)]
    #[arg(value_parser = parse_name(QueueName::parse))]
    pub queues: Vec<QueueName>,
    /// Jobs at once; as many as there are cores if not given.
    #[arg(short = 'c', long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=ITEMS_MAX as u64))]
    pub concurrency: Option<u64>,
    /// How long the lease lives without a sign of life.
    #[arg(long, value_name = "D", default_value_t = Span::from_us(TTL_US_DEFAULT))]
    #[arg(value_parser = ttl)]
    pub ttl: Span,
    /// Always try the queues in the order given; else the order turns with each call.
    #[arg(long)]
    pub strict: bool,
    /// End when nothing is ready or blocked.
    #[arg(long)]
    pub until_empty: bool,
    /// End after so many jobs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_jobs: Option<u64>,
    /// How long jobs may finish after SIGTERM or SIGINT.
    #[arg(long, value_name = "D", default_value_t = Span::from_s(25), value_parser = span)]
    pub drain_timeout: Span,
    /// After a success, the schedule of the job is next due this long after it, in whole seconds, unless
    /// its outcome says otherwise; without effect for a job that no schedule made.
    #[arg(long, value_name = "D", value_parser = every)]
    pub next_in: Option<Span>,
    /// Post each job to this address; @FILE reads it from a file, where a password is not seen by others.
    #[arg(long, value_name = "URL|@FILE")]
    #[arg(conflicts_with_all = ["pass_credentials", "leave_children", "detach"])]
    pub http: Option<String>,
    /// A file with the secret that signs requests: whsec_ and 24 to 64 bytes in base64; several lines
    /// sign each for itself. TENURE_HTTP_SECRET holds the same where no file is given.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "scrapyd"])]
    pub secret_file: Option<PathBuf>,
    /// How long an answer is waited for, unless the deadline of the job's run is sooner.
    #[arg(long, value_name = "D", default_value_t = Span::from_s(15 * 60))]
    #[arg(conflicts_with_all = ["command", "scrapyd"], value_parser = waiting)]
    pub request_timeout: Span,
    /// Run each job as a spider of this scrapyd; @FILE reads the address from a file.
    #[arg(long, value_name = "URL|@FILE")]
    #[arg(conflicts_with_all = ["pass_credentials", "leave_children", "detach"])]
    pub scrapyd: Option<String>,
    /// How often the scrapyd is asked about each spider; 100ms or more.
    #[arg(long, value_name = "D", default_value_t = Span::from_s(5))]
    #[arg(conflicts_with_all = ["command", "http"], value_parser = waiting)]
    pub poll_every: Span,
    /// How CMD is run.
    #[command(flatten)]
    pub bonds: BondArgs,
    /// The command and its arguments.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// How long the other side of a request is waited for.
fn waiting(text: &str) -> Result<Span, String> {
    match span(text)? {
        span if span < Span::from_ms(100) => Err("the shortest is 100ms".to_owned()),
        span => Ok(span),
    }
}

/// What CMD has of this process, and how far it is bound to it.
#[derive(Args, Debug, Clone, Copy, Default)]
pub struct BondArgs {
    /// Let CMD have TENURE_URL, TENURE_TOKEN and TENURE_STORE; otherwise it does not see them.
    #[arg(long)]
    pub pass_credentials: bool,
    /// Leave processes alone that CMD left behind when it ended with 0; otherwise they are ended.
    #[arg(long)]
    pub leave_children: bool,
    /// Let CMD go on when this process is killed; otherwise all that it started is ended within a
    /// second.
    #[arg(long)]
    pub detach: bool,
}

/// How a caller waits for what it wants to hold, and what it runs then.
#[derive(Args, Debug)]
pub struct HoldArgs {
    /// Wait at most so long; without it without end.
    #[arg(long, value_name = "D", conflicts_with = "no_wait", value_parser = span)]
    pub wait: Option<Span>,
    /// Do not wait.
    #[arg(long)]
    pub no_wait: bool,
    /// Exit with this code if it could not be got in time.
    #[arg(short = 'E', long = "conflict-exit-code", value_name = "CODE", default_value_t = 1)]
    pub exit_code: u8,
    /// How CMD is run.
    #[command(flatten)]
    pub bonds: BondArgs,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

impl HoldArgs {
    /// How long to wait; `None` = without end.
    pub fn patience(&self) -> Option<Span> {
        if self.no_wait { Some(Span::ZERO) } else { self.wait }
    }
}

/// Run a command while holding a lock.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lock deploy -- ./deploy.sh
  tenure lock backup --no-wait -E 0 -- ./backup.sh     skip it if another runs
  tenure lock render -n 3 -- blender -b scene.blend    three at once

CMD keeps the terminal, finds TENURE_FENCE (grows with every holder), TENURE_LEASE and
TENURE_LEASE_FILE, does not get TENURE_URL, TENURE_TOKEN and TENURE_STORE unless
--pass-credentials is given, and its exit code is passed on (128+n if signal n ended it). If the lease is
lost, CMD gets SIGTERM, SIGKILL 5 s later, and the exit code is 75. A SIGTERM is passed to CMD's
process group, and the exit code is 143. What CMD leaves behind when it ends is ended before the
lock is given back (not after exit 0 with --leave-children). If this process is killed, all that CMD
started ends within a second (not with --detach). Locks are not re-entrant.")]
pub struct LockArgs {
    /// The lock; it is the limit `lock:NAME`.
    #[arg(value_parser = lock_name)]
    pub name: LimitName,
    /// Holders at once, if `lock:NAME` is not set yet.
    #[arg(short = 'n', long = "holders", value_name = "N", value_parser = positive)]
    pub holders: Option<u32>,
    /// How long the lease lives without a sign of life.
    #[arg(long, value_name = "D", default_value_t = Span::from_us(TTL_US_DEFAULT))]
    #[arg(value_parser = ttl)]
    pub ttl: Span,
    /// How to wait, and what to run.
    #[command(flatten)]
    pub hold: HoldArgs,
}

fn lock_name(text: &str) -> Result<LimitName, String> {
    let parse = parse_name(LimitName::parse);
    match parse(&format!("lock:{text}"))? {
        name if name.is_template() => Err("a lock's name is not '*'".to_owned()),
        name => Ok(name),
    }
}

/// Run a command while holding needs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lease --need pool:accounts#cn -- ./login.sh
  tenure lease --need limit:site:example.com --need limit:gpu,weight=2 --wait 10m -- ./train
  tenure lease --need limit:api,cost=5 --ttl 0s -- curl …     rate tokens only: nothing is held

CMD finds what `tenure lock` gives it, and of the first resource TENURE_RESOURCE_ID and
TENURE_RESOURCE_<KEY>. NEED is limit:NAME[,weight=N][,cost=N],
pool:NAME[#TAG][,prefer=ID][,id=ID], or JSON. Exit codes as `tenure lock`.")]
pub struct LeaseArgs {
    /// What to hold.
    #[arg(long = "need", value_name = "NEED", required = true)]
    pub needs: Vec<String>,
    /// How long the lease lives without a sign of life; `0s` takes rate tokens and holds nothing.
    #[arg(long, value_name = "D", default_value_t = Span::from_us(TTL_US_DEFAULT))]
    #[arg(value_parser = ttl_or_token)]
    pub ttl: Span,
    /// How to wait, and what to run.
    #[command(flatten)]
    pub hold: HoldArgs,
}

/// List live leases, or take one back by force.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  tenure leases --limit site:example.com
  tenure leases force LEASE      takes it back; its resources rest their quarantine")]
pub struct LeasesArgs {
    /// Instead of a list.
    #[command(subcommand)]
    pub action: Option<LeasesAction>,
    /// Of jobs of this queue.
    #[arg(long, value_parser = parse_name(QueueName::parse))]
    pub queue: Option<QueueName>,
    /// That hold this limit.
    #[arg(long, value_parser = parse_name(LimitName::parse))]
    pub limit: Option<LimitName>,
    /// That hold a resource of this pool.
    #[arg(long, value_parser = parse_name(PoolName::parse))]
    pub pool: Option<PoolName>,
    /// Of this holder.
    #[arg(long)]
    pub worker: Option<String>,
    /// The page.
    #[command(flatten)]
    pub page: PageArgs,
}

/// What can be done with a lease from outside.
#[derive(Subcommand, Debug)]
pub enum LeasesAction {
    /// Take a lease back, as if its holder had died.
    Force {
        /// The lease's id.
        #[arg(value_name = "ID")]
        lease: String,
    },
}
