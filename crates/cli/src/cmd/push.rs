//! `tenure push`: stores one job and prints its id or its result, or every line of a file (see `push_lines`).

use serde::Serialize;
use tenure::Client;
use tenure_core::decode;
use tenure_core::flow::OnParentFailure;
use tenure_core::job::{JobState, JobView, NewJob, OnConflict, PushedJob, Until};
use tenure_core::names::{FlowName, JobId, JobRef, QueueName, UniqueKey};
use tenure_core::requests::{Push, PushAnswer, Pushed};
use tenure_core::secret::Json;
use tenure_core::time::{Moment, Span};
use tenure_core::trace::TraceParent;

use crate::args::flows::KinArgs;
use crate::args::jobs::{PushArgs, SayArgs};
use crate::child::environment::TRACEPARENT;
use crate::cmd::no_worker;
use crate::cmd::push_lines::{self, Lines};
use crate::cmd::result::{self, HowLong};
use crate::exit::Failure;
use crate::json_args::{self, SaidFields};
use crate::output::Output;
use crate::output::clock;
use crate::output::table::when;

/// Stores the job, or every line of the file.
pub async fn run(client: &Client, out: Output, args: PushArgs, url: &str) -> Result<(), Failure> {
    let PushArgs { queue, payload, lines, payloads, id, unique, wait, at, delay, kin, say, .. } =
        args;
    let expires_at = args.expires_at.map(|end| end.moment(clock::now()));
    let when = Times { at, delay, expires_at };
    let (until, on_conflict) = (args.until.into(), args.on_conflict.into());
    let (hold, within) = (args.unique_for, args.within);
    if let Some(file) = lines {
        let each = match (payloads, queue) {
            (true, Some(queue)) => {
                let template = job(&queue, Json::null(), None, None, when, &kin, &say)?;
                Lines::Payloads(Box::new(template))
            }
            (_, queue) if when.is_silent() && kin.is_silent() && say.is_silent() => {
                Lines::Jobs(queue)
            }
            _ => {
                return Err(Failure::usage("with --lines each line is a whole job")
                    .hint("leave out the options of the job, or add --payloads"));
            }
        };
        return push_lines::run(client, out, &file, each).await;
    }
    // Without --lines there is a queue: that is checked when the line is parsed.
    let queue = queue.ok_or_else(|| Failure::usage("push needs a queue"))?;
    let payload = json_args::payload(payload.as_deref())?;
    let unique = unique.map(|key| UniqueSaid { key, until, hold, on_conflict, within });
    let mut job = job(&queue, payload, id, unique, when, &kin, &say)?;
    let meant =
        Meant { id: job.id.clone(), key: job.unique.as_ref().map(|unique| unique.key.clone()) };
    // An id of our own makes the push safe to repeat, should its answer be lost.
    let id = job.id.get_or_insert_with(tenure::ids::job_id).clone();
    let pushed = one(client, job).await?;
    if wait.is_none() {
        out.answer(&pushed, |pushed| format!("{}\n", pushed.job.id))?;
    }
    if let Some(there) = there_already(&pushed, &id, &meant, clock::now()) {
        crate::output::tell(&there);
    }
    if pushed.workers == Some(0) {
        no_worker::tell(client, &pushed.job.queue).await;
    }
    let Some(wait) = wait else { return Ok(()) };
    let job = pushed.job.id;
    // A user who gives up waiting needs it, and stdout is the result's.
    crate::output::tell(&format!("waiting for job '{job}'"));
    let wait = wait.map_or(HowLong::Ever, HowLong::AtMost);
    result::show(client, out, JobRef::Id(job), wait, url).await
}

async fn one(client: &Client, job: NewJob) -> Result<PushedJob, Failure> {
    let push = Push { jobs: vec![job], answer: PushAnswer::Whole };
    let refused = |error| {
        let mut failure = Failure::from(error);
        // The user pushed one job, not an array: item 0 means nothing here.
        if let Some(no) = &mut failure.refusal {
            no.index = None;
        }
        failure
    };
    match client.run(push).await.map_err(refused)? {
        Pushed::Whole(mut jobs) if jobs.len() == 1 => Ok(jobs.remove(0)),
        _ => Err(Failure::bug("one job was pushed, and not one was answered")),
    }
}

/// A job as the API takes it, so that every form and bound is checked in one place. A field that is not given is null,
/// which is its default.
#[derive(Serialize)]
struct JobSaid<'a> {
    id: Option<&'a JobId>,
    queue: &'a QueueName,
    payload: &'a Json,
    run_at: Option<Moment>,
    delay: Option<Span>,
    #[serde(flatten)]
    fields: SaidFields<'a>,
    unique: Option<UniqueSaid>,
    retry: Option<Json>,
    expires_at: Option<Moment>,
    after: Vec<Json>,
    on_parent_failure: Option<OnParentFailure>,
    flow: Option<&'a FlowName>,
}

/// When the job runs, by `--at` or `--delay` (neither means now), and by when it must have begun.
#[derive(Clone, Copy, Default)]
struct Times {
    at: Option<Moment>,
    delay: Option<Span>,
    expires_at: Option<Moment>,
}

impl Times {
    fn is_silent(self) -> bool {
        self.at.is_none() && self.delay.is_none() && self.expires_at.is_none()
    }
}

#[derive(Serialize)]
struct UniqueSaid {
    key: UniqueKey,
    until: Until,
    #[serde(rename = "for")]
    hold: Option<Span>,
    on_conflict: OnConflict,
    within: Option<Span>,
}

fn job(
    queue: &QueueName,
    payload: Json,
    id: Option<JobId>,
    unique: Option<UniqueSaid>,
    when: Times,
    kin: &KinArgs,
    say: &SayArgs,
) -> Result<NewJob, Failure> {
    let fields = JobSaid {
        id: id.as_ref(),
        queue,
        payload: &payload,
        run_at: when.at,
        delay: when.delay,
        fields: SaidFields::of(say)?,
        unique,
        retry: json_args::retry(say.retry.as_deref())?,
        expires_at: when.expires_at,
        after: json_args::parents(&kin.after)?,
        on_parent_failure: kin.on_parent_failure.map(OnParentFailure::from),
        flow: kin.flow.as_ref(),
    };
    let text = Json::of(&fields).map_err(Failure::bug)?;
    let job = decode::push_line(text.text().as_bytes());
    let mut job = job.map_err(|no| json_args::usage("push", &no))?;
    // A malformed one counts as none: a bad variable may not keep a push from being stored.
    let trace = std::env::var(TRACEPARENT).ok();
    job.traceparent = trace.and_then(|text| TraceParent::of_header(&text));
    Ok(job)
}

/// The names under which the job may exist already, as the caller gave them.
struct Meant {
    id: Option<JobId>,
    key: Option<UniqueKey>,
}

/// Says that the push met an existing job; `None` if it made one. `sent` is the id that was pushed: an answer with an
/// id that was made for this push is a repeat of this very push.
fn there_already(pushed: &PushedJob, sent: &JobId, meant: &Meant, now: Moment) -> Option<String> {
    let job = &pushed.job;
    let (id, state) = (&job.id, state(job, now));
    let key = meant.key.as_ref().map(|key| format!("the unique key '{key}'"));
    match (id == sent, key) {
        _ if !pushed.duplicate => None,
        (true, _) if meant.id.is_none() => None,
        (true, _) => Some(format!("'{id}' already exists ({state}): nothing was pushed")),
        (false, Some(key)) if pushed.replaced => Some(format!(
            "'{id}' holds {key}: it has the new content now, and no second job was pushed"
        )),
        (false, key) => {
            let key = key.unwrap_or_else(|| "the same place".to_owned());
            Some(format!("'{id}' holds {key} ({state}): nothing was pushed"))
        }
    }
}

/// `cancelled 4m12s ago`, `running for 3m2s`.
fn state(job: &JobView, now: Moment) -> String {
    let state = job.state;
    match (state, job.finished_at, job.started_at) {
        (JobState::Running, _, Some(at)) => {
            format!("running for {}", tenure_core::count::rough(now.since(at)))
        }
        (JobState::Scheduled, ..) => format!("scheduled, runs {}", when(job.run_at, now)),
        (state, Some(at), _) if state.is_finished() => format!("{state} {}", when(at, now)),
        _ => format!("{state}, pushed {}", when(job.created_at, now)),
    }
}

#[cfg(test)]
mod tests;
