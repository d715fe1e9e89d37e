//! The arguments of the commands that hold leases: work, lock, lease; and of `leases`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use tenure_core::bounds::{ITEMS_MAX, QUEUES_MAX, TTL_US_DEFAULT};
use tenure_core::names::{LimitName, PoolName, QueueName};
use tenure_core::time::Span;

use crate::args::config::ConfigArg;
use crate::args::page::PageArgs;
use crate::args::value::{every, parse_name, positive, span, ttl, ttl_or_token};

const WORK_AFTER: &str = "\
CMD reads the payload from stdin and writes its result to $TENURE_RESULT_FILE. Its exit code says
how the run ended:
  0      succeeded
  65     failed for good
  75     snoozed: it runs again in 30 s and uses up no attempt
  other  failed: the end of stderr is the error; the job's retry applies
SIGTERM or SIGINT: take no more jobs, let running ones finish, give the rest back.

Examples:
  tenure work mail -- ./send-mail
  tenure work urgent bulk --strict -c 8 -- python worker.py
  tenure work crawl --until-empty -- sh -c 'curl -s \"$(jq -r .url)\"'
  tenure work mail --http http://127.0.0.1:8000/send --secret-file secret
  tenure work visit -c 4 --scrapyd http://127.0.0.1:6800

All variables and files of CMD, and the meaning of answers to --http:
  tenure help work --all";

const WORK_ALL: &str = "\
Variables of CMD:
  TENURE_PAYLOAD_FILE   the payload, which is also on stdin
  TENURE_JOB_ID TENURE_QUEUE TENURE_KIND TENURE_ATTEMPT TENURE_DEADLINE
  TENURE_LEASE TENURE_FENCE
  TENURE_LEASE_FILE     the whole lease as JSON
  TENURE_RESOURCE_ID    the first resource; TENURE_RESOURCE_<KEY>: its data
  TENURE_FLOW           the flow of the job, if it belongs to one
  TENURE_SCHEDULE       the schedule that made the job, if one did
  TENURE_SCHEDULE_AT    the occurrence it was made for; absent after a run-now
  TENURE_PARENTS_FILE   if the job waited for others: a line of JSON for each,
                        {\"id\":…,\"state\":…,\"result\":…,\"error\":…}, or
                        {\"flow\":…,\"counts\":…}; the first 1,000
  TRACEPARENT           the trace in which the job was pushed, if any
CMD gets the environment of `tenure`, without the variables that hold or name a
server, a token, a certificate or a secret unless --pass-credentials is given.

Each option can also be set by a variable, TENURE_ and its name in capitals
(TENURE_CONCURRENCY), or by a key under [work] in the file that --config names.

Files that CMD may write:
  TENURE_RESULT_FILE    the job's result
  TENURE_PROGRESS_FILE  the job's progress; the next run finds it in the lease
                        file, as .job.progress
  TENURE_OUTCOME_FILE   a settle item, which overrides the exit code, such as
                        {\"outcome\":\"snoozed\",\"for\":\"5m\"}
                        \"reset\":true     with a snooze: attempts start at 0
                        \"next_in\":\"6h\"  the job's schedule fires next this
                                         long after the end

When the lease is lost or the job is cancelled, CMD and all its child processes
get SIGTERM, and SIGKILL 5 s later. When CMD ends, its remaining child processes
are ended before the outcome is reported (except after exit 0 with
--leave-children). If `work` itself is killed, all of them are ended within a
second (except with --detach). After a second SIGTERM or SIGINT `work` ends at
once, with exit code 128+n.

With --http each job is a POST with the payload as its body. Its headers include
Tenure-Job-Id, -Queue, -Kind, -Attempt, -Fence, -Lease, -Deadline, and
Idempotency-Key, which is the same in all runs of a job. Meaning of an answer:
  2xx                    succeeded; the body is the result (at most 256 KiB)
  202                    not yet: ask again after Retry-After, or in 30 s
  2xx with Retry-After   not yet: ask again then
  429 or 503 with Retry-After   the same; limits of the job that Tenure-Pause
                         names are paused for as long
  400, 410, 422          failed for good
  any other              failed: retried by the job's retry settings
A 2xx of type application/tenure-outcome+json is a settle item, as in the
outcome file. If --secret-file or TENURE_HTTP_SECRET gives a secret (whsec_…),
requests are signed by the Standard Webhooks specification.

With --scrapyd the payload is
  {\"project\":…,\"spider\":…,\"args\":…,\"settings\":…,\"version\":…}
The spider runs under the job's id. After a crash or a restart this worker finds
it again by that id. If the job is cancelled, the spider is cancelled too. The
finish_reason at the end of the spider's log decides the outcome.";

/// Run a command for each job of one or more queues.
#[derive(Args, Debug)]
#[command(after_help = WORK_AFTER, after_long_help = WORK_ALL)]
#[command(override_usage = "tenure work [OPTIONS] <QUEUE>... -- <CMD>...
       tenure work [OPTIONS] <QUEUE>... --http <URL|@FILE>
       tenure work [OPTIONS] <QUEUE>... --scrapyd <URL|@FILE>")]
#[command(group(ArgGroup::new("way").required(true).args(["command", "http", "scrapyd"])))]
pub struct WorkArgs {
    /// The queues to take jobs from.
    #[arg(required = true, value_name = "QUEUE", num_args = 1..=QUEUES_MAX)]
    #[arg(value_parser = parse_name(QueueName::parse))]
    pub queues: Vec<QueueName>,
    /// Jobs at once; without it, one per core.
    #[arg(short = 'c', long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=ITEMS_MAX as u64))]
    pub concurrency: Option<u64>,
    /// End when no job of the queues is ready or blocked; do not wait for scheduled ones.
    #[arg(long)]
    pub until_empty: bool,
    /// End after this many jobs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_jobs: Option<u64>,
    /// Always try the queues in the order given; without this the order rotates with each call.
    #[arg(long)]
    pub strict: bool,
    /// Do not report the start and the end of each job.
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Post each job to this address; @FILE reads it from a file, which hides a password from other users.
    #[arg(long, value_name = "URL|@FILE")]
    #[arg(conflicts_with_all = ["pass_credentials", "leave_children", "detach"])]
    pub http: Option<String>,
    /// Run each job as a spider of this scrapyd; @FILE reads the address from a file.
    #[arg(long, value_name = "URL|@FILE")]
    #[arg(conflicts_with_all = ["pass_credentials", "leave_children", "detach"])]
    pub scrapyd: Option<String>,
    /// How long a lease lives without a heartbeat, 1s to 1h.
    #[arg(long, value_name = "D", default_value_t = Span::from_us(TTL_US_DEFAULT))]
    #[arg(value_parser = ttl, help_heading = MORE)]
    pub ttl: Span,
    /// How long running jobs may take to finish after SIGTERM or SIGINT.
    #[arg(long, value_name = "D", default_value_t = Span::from_s(25), value_parser = span)]
    #[arg(help_heading = MORE)]
    pub drain_timeout: Span,
    /// End with exit code 69 when the server has not answered for this long; running jobs finish first. Without it the
    /// worker waits until the server is back.
    #[arg(long, value_name = "D", value_parser = span, help_heading = MORE)]
    pub exit_when_away: Option<Span>,
    /// Hosts at link-local addresses that a gauge may query, separated by commas. Only for a worker that opens a
    /// store itself: a server reads its own gauges.
    #[arg(long, value_name = "HOST,…", value_delimiter = ',', help_heading = MORE)]
    pub gauge_allow: Vec<String>,
    /// When a job succeeds, its schedule fires next this long after the end of the job.
    #[arg(long, value_name = "D", value_parser = every, help_heading = MORE)]
    pub next_in: Option<Span>,
    /// --http: a file with the secret that signs requests (whsec_…); each further line adds a signature.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "scrapyd"])]
    #[arg(help_heading = MORE)]
    pub secret_file: Option<PathBuf>,
    /// --http: how long to wait for an answer, unless the job's deadline is sooner.
    #[arg(long, value_name = "D", default_value_t = Span::from_s(15 * 60))]
    #[arg(conflicts_with_all = ["command", "scrapyd"], value_parser = waiting, help_heading = MORE)]
    pub request_timeout: Span,
    /// --scrapyd: how often to poll it for each spider, 100ms or more.
    #[arg(long, value_name = "D", default_value_t = Span::from_s(5))]
    #[arg(conflicts_with_all = ["command", "http"], value_parser = waiting, help_heading = MORE)]
    pub poll_every: Span,
    /// How CMD is run.
    #[command(flatten)]
    pub bonds: BondArgs,
    /// Where the settings of this worker are.
    #[command(flatten)]
    pub config: ConfigArg,
    /// The command and its arguments.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// The heading of options that few need.
const MORE: &str = "More options";

/// How long to wait for the other side of a request.
fn waiting(text: &str) -> Result<Span, String> {
    match span(text)? {
        span if span < Span::from_ms(100) => Err("must be at least 100ms".to_owned()),
        span => Ok(span),
    }
}

/// How closely CMD is bound to this process, and what it inherits from it.
#[derive(Args, Debug, Clone, Copy, Default)]
pub struct BondArgs {
    /// Pass CMD the variables that hold or name a server, a token, a certificate or a secret.
    #[arg(long, help_heading = MORE)]
    pub pass_credentials: bool,
    /// Leave child processes of CMD running if CMD exits with 0; without this they are ended.
    #[arg(long, help_heading = MORE)]
    pub leave_children: bool,
    /// Let CMD run on if this process is killed; without this CMD is ended within a second.
    #[arg(long, help_heading = MORE)]
    pub detach: bool,
}

impl BondArgs {
    /// Whether something that CMD started may outlive it, or this process.
    pub fn may_outlive(self) -> bool {
        self.leave_children || self.detach
    }
}

/// How a caller waits for what it wants to hold, and the command that it runs then.
#[derive(Args, Debug)]
pub struct HoldArgs {
    /// Wait at most this long; without it, wait as long as it takes.
    #[arg(long, value_name = "D", conflicts_with = "no_wait", value_parser = span)]
    pub wait: Option<Span>,
    /// Do not wait: take it now or not at all.
    #[arg(long)]
    pub no_wait: bool,
    /// Do not report what the command waits for.
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Exit code if the lease is not granted in time.
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
#[command(override_usage = "tenure lock [OPTIONS] <NAME> -- <CMD>...")]
#[command(after_help = "\
CMD keeps the terminal, and its exit code is the exit code of tenure (128+n if signal n ended CMD).
CMD gets the variables TENURE_FENCE (a number that grows with every holder), TENURE_LEASE and
TENURE_LEASE_FILE. If the lease is lost, for example because tenure was stopped or the machine was
suspended, CMD gets SIGTERM, and SIGKILL 5 s later, and the exit code is 75. tenure forwards a
SIGTERM to CMD and exits with 143. A lock is not reentrant: its holder cannot take it again.

Examples:
  tenure lock deploy -- ./deploy.sh
  tenure lock backup --no-wait -E 0 -- ./backup.sh     skip it if another runs
  tenure lock render -n 3 -- blender -b scene.blend    three at once")]
pub struct LockArgs {
    /// The lock's name; `tenure limit lock:NAME` shows its holders.
    #[arg(value_parser = lock_name)]
    pub name: LimitName,
    /// Maximum holders at once, 1 if not given; an existing limit lock:NAME takes precedence.
    #[arg(short = 'n', long = "holders", value_name = "N", value_parser = positive)]
    pub holders: Option<u32>,
    /// How long the lease lives without a heartbeat, 1s to 1h.
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
        name if name.is_template() => Err("a lock cannot have the name '*'".to_owned()),
        name => Ok(name),
    }
}

/// Run a command while holding permits, tokens or resources of pools.
#[derive(Args, Debug)]
#[command(override_usage = "tenure lease [OPTIONS] --need <NEED>... -- <CMD>...")]
#[command(after_help = "\
NEED is limit:NAME[,weight=N][,cost=N], pool:NAME[#TAG][,prefer=ID][,id=ID], or JSON.

CMD gets the variables of `tenure lock`, and TENURE_RESOURCE_ID and TENURE_RESOURCE_<KEY> for the
first resource. The exit codes are those of `tenure lock`.

CMD may write a settle item with verdicts on its resources to the file $TENURE_VERDICT_FILE:
  {\"outcome\":\"released\",\"resources\":[{\"pool\":\"accounts\",\"id\":\"ann\",\"verdict\":\"ban\"}]}
  or \"verdict\":\"cool\",\"for\":\"10m\"
Without verdicts the resources are given back unchanged, whatever the exit code of CMD. Only after
128+n, where n is a signal, they rest for their quarantine, as after a crash. (`tenure` forwards a
SIGTERM to CMD, which does not count as a crash.)

Examples:
  tenure lease --need pool:accounts#cn -- ./login.sh
  tenure lease --need limit:gpu,weight=2 --need limit:net --wait 10m -- ./train
  tenure lease --need limit:api,cost=5 --ttl 0s -- ./call     holds nothing")]
pub struct LeaseArgs {
    /// A need to hold; may be given several times.
    #[arg(long = "need", value_name = "NEED", required = true)]
    pub needs: Vec<String>,
    /// How long the lease lives without a heartbeat, 1s to 1h; 0s takes rate tokens and holds nothing.
    #[arg(long, value_name = "D", default_value_t = Span::from_us(TTL_US_DEFAULT))]
    #[arg(value_parser = ttl_or_token)]
    pub ttl: Span,
    /// How to wait, and what to run.
    #[command(flatten)]
    pub hold: HoldArgs,
}

/// List leases with their holders, or take one back by force.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  tenure leases --limit site:example.com
  tenure leases ID               one lease, in full
  tenure leases force ID         takes it back from its holder")]
pub struct LeasesArgs {
    /// Instead of a list.
    #[command(subcommand)]
    pub action: Option<LeasesAction>,
    /// Show this lease: its id, the first letters of the id, or the short form in a table.
    #[arg(value_name = "ID", conflicts_with_all = ["queue", "limit", "pool", "worker", "cursor"])]
    pub lease: Option<String>,
    /// Only leases of jobs of this queue.
    #[arg(long, value_parser = parse_name(QueueName::parse))]
    pub queue: Option<QueueName>,
    /// Only those that hold this limit.
    #[arg(long, value_parser = parse_name(LimitName::parse))]
    pub limit: Option<LimitName>,
    /// Only those that hold a resource of this pool.
    #[arg(long, value_parser = parse_name(PoolName::parse))]
    pub pool: Option<PoolName>,
    /// Only leases of this holder, by its id.
    #[arg(long)]
    pub worker: Option<String>,
    /// The page of the list.
    #[command(flatten)]
    pub page: PageArgs,
}

/// Calls on a lease, from outside its holder.
#[derive(Subcommand, Debug)]
pub enum LeasesAction {
    /// Take a lease back. The job returns to its place; no attempt and no loss is counted.
    Force {
        /// The lease's id, or its short form in a table.
        #[arg(value_name = "ID")]
        lease: String,
    },
}
