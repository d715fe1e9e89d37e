//! `tenure push`: stores one job and prints its id or its result, or every line of a file (see `push_lines`).

use serde::Serialize;
use tenure::Client;
use tenure_core::decode;
use tenure_core::flow::OnParentFailure;
use tenure_core::job::{Labels, Need, NewJob, OnConflict, PushedJob, Until};
use tenure_core::names::{FlowName, Group, JobId, JobRef, QueueName, UniqueKey};
use tenure_core::requests::{ListQueues, Page, Push, PushAnswer, Pushed};
use tenure_core::secret::Json;
use tenure_core::settings::QueueView;
use tenure_core::time::{Moment, Span};
use tenure_core::trace::TraceParent;

use crate::args::flows::KinArgs;
use crate::args::jobs::{PushArgs, SayArgs};
use crate::child::environment::TRACEPARENT;
use crate::cmd::push_lines::{self, Lines};
use crate::cmd::result::{self, HowLong};
use crate::exit::Failure;
use crate::json_args;
use crate::output::Output;

/// Names shown beside a queue that nobody asks for.
const NAMES_SHOWN: usize = 5;

/// Stores what is said.
pub async fn run(client: &Client, out: Output, args: PushArgs) -> Result<(), Failure> {
    let PushArgs { queue, payload, lines, payloads, id, unique, wait, at, delay, kin, say, .. } =
        args;
    let when = RunsAt { at, delay };
    let (until, on_conflict, within) = (args.until.into(), args.on_conflict.into(), args.within);
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
                return Err(Failure::usage("each line of --lines says what its job is")
                    .hint("leave out the options of the job, or add --payloads"));
            }
        };
        return push_lines::run(client, out, &file, each).await;
    }
    // Without --lines there is a queue: that is checked when the line is parsed.
    let queue = queue.ok_or_else(|| Failure::usage("push to which queue?"))?;
    let payload = json_args::payload(payload.as_deref())?;
    let unique = unique.map(|key| UniqueSaid { key, until, on_conflict, within });
    let mut job = job(&queue, payload, id, unique, when, &kin, &say)?;
    // An id of our own makes the push safe to repeat, should its answer be lost.
    job.id.get_or_insert_with(tenure::ids::job_id);
    let pushed = one(client, job).await?;
    if wait.is_none() {
        out.answer(&pushed, |pushed| format!("{}\n", pushed.job.id))?;
    }
    if pushed.workers == Some(0) {
        tell_no_worker(client, &pushed.job.queue).await;
    }
    let Some(wait) = wait else { return Ok(()) };
    let job = pushed.job.id;
    // Who gives up waiting needs it, and stdout is the result's.
    crate::output::tell(&format!("waiting for job '{job}'"));
    result::show(client, out, JobRef::Id(job), wait.map_or(HowLong::Ever, HowLong::AtMost)).await
}

async fn one(client: &Client, job: NewJob) -> Result<PushedJob, Failure> {
    let push = Push { jobs: vec![job], answer: PushAnswer::Whole };
    let refused = |error| {
        let mut failure = Failure::from(error);
        // The user pushed one job, not an array: there is no item 0 for him.
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

/// A job as the API takes it, so that every form and bound is checked in one place.
#[derive(Serialize)]
struct JobSaid<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a JobId>,
    queue: &'a QueueName,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    payload: &'a Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a Group>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<Vec<Need>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique: Option<UniqueSaid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Labels>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_parent_failure: Option<OnParentFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<&'a FlowName>,
}

/// When the job runs, as `--at` or `--delay` says it; neither means now.
#[derive(Clone, Copy, Default)]
struct RunsAt {
    at: Option<Moment>,
    delay: Option<Span>,
}

impl RunsAt {
    fn is_silent(self) -> bool {
        self.at.is_none() && self.delay.is_none()
    }
}

#[derive(Serialize)]
struct UniqueSaid {
    key: UniqueKey,
    until: Until,
    on_conflict: OnConflict,
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<Span>,
}

fn job(
    queue: &QueueName,
    payload: Json,
    id: Option<JobId>,
    unique: Option<UniqueSaid>,
    when: RunsAt,
    kin: &KinArgs,
    say: &SayArgs,
) -> Result<NewJob, Failure> {
    let needs = json_args::needs(&say.needs)?;
    let labels = json_args::labels(&say.labels)?;
    let said = JobSaid {
        id: id.as_ref(),
        queue,
        kind: say.kind.as_deref(),
        payload: &payload,
        run_at: when.at,
        delay: when.delay,
        priority: say.priority,
        group: say.group.as_ref(),
        needs: Some(needs).filter(|needs| !needs.is_empty()),
        unique,
        labels: Some(labels).filter(|labels| !labels.is_empty()),
        after: json_args::parents(&kin.after)?,
        on_parent_failure: kin.on_parent_failure.map(OnParentFailure::from),
        flow: kin.flow.as_ref(),
    };
    let text = Json::of(&said).map_err(Failure::bug)?;
    let job = decode::push_line(text.text().as_bytes());
    let mut job = job.map_err(|no| json_args::usage("push", &no))?;
    // One that is not well formed is as none: whatever set it may not keep a push from being stored.
    let trace = std::env::var(TRACEPARENT).ok();
    job.traceparent = trace.and_then(|text| TraceParent::of_header(&text));
    Ok(job)
}

/// Says that nobody asks for a queue, and which queues somebody does ask for: a slip of the pen
/// would else wait for ever. That this cannot be found out is no failure of the push.
pub async fn tell_no_worker(client: &Client, queue: &QueueName) {
    let page = Page { max: tenure_core::bounds::LIST_MAX, cursor: None };
    let listed = client.run(ListQueues { page }).await;
    let queues = listed.map(|listed| listed.items).unwrap_or_default();
    crate::output::tell(&no_worker(queue, &queues));
}

fn no_worker(queue: &QueueName, queues: &[QueueView]) -> String {
    let busy = |view: &&QueueView| view.workers > 0 && view.name != *queue;
    let names: Vec<&str> = queues.iter().filter(busy).map(|view| view.name.as_str()).collect();
    let head = format!("nobody has asked for queue '{queue}' in the last minute");
    match some_names(queue.as_str(), &names) {
        Some(names) => format!("{head}; queues with workers: {names}"),
        None => format!("{head}; no queue has workers"),
    }
}

/// A few names, the one that was perhaps meant first; `None` if there are none.
pub fn some_names(meant: &str, names: &[&str]) -> Option<String> {
    let nearest = decode::nearest(meant, names.iter().copied());
    let others = names.iter().copied().filter(|name| Some(*name) != nearest);
    let quoted: Vec<String> =
        nearest.into_iter().chain(others).take(NAMES_SHOWN).map(|n| format!("'{n}'")).collect();
    let more = if names.len() > NAMES_SHOWN { ", …" } else { "" };
    Some(quoted.join(", ") + more).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::flows::ParentFailureWord;
    use tenure_core::flow::Parent;
    use tenure_core::settings::{QueueCounts, QueueSettings};

    fn view(name: &str, workers: u64) -> QueueView {
        QueueView {
            name: QueueName::parse(name).unwrap(),
            paused: false,
            paused_until: None,
            settings: QueueSettings::default(),
            counts: QueueCounts::default(),
            oldest_ready_at: None,
            workers,
            skipped: 0,
        }
    }

    #[test]
    fn a_queue_that_nobody_asks_for_is_told_with_those_that_somebody_does() {
        let queue = QueueName::parse("expmple").unwrap();
        let queues = [view("crawl", 1), view("example", 2), view("expmple", 0), view("idle", 0)];
        assert_eq!(
            no_worker(&queue, &queues),
            "nobody has asked for queue 'expmple' in the last minute; queues with workers: \
             'example', 'crawl'"
        );
        assert_eq!(
            no_worker(&queue, &[]),
            "nobody has asked for queue 'expmple' in the last minute; no queue has workers"
        );
    }

    #[test]
    fn options_become_the_fields_of_a_job() {
        let queue = QueueName::parse("q").unwrap();
        let say = SayArgs {
            kind: Some("k".into()),
            priority: Some(-3),
            group: Group::parse("g").ok(),
            needs: vec!["limit:a,weight=2".into(), "pool:p#cn".into()],
            labels: vec![("a".into(), "b=c".into())],
        };
        let when = RunsAt { at: None, delay: Some(Span::from_s(5)) };
        let unique = UniqueSaid {
            key: UniqueKey::parse("u").unwrap(),
            until: Until::Start,
            on_conflict: OnConflict::Reject,
            within: Some(Span::from_s(60)),
        };
        let kin = KinArgs {
            after: vec!["a".into(), "key:k".into(), r#" {"flow":"f"}"#.into()],
            on_parent_failure: Some(ParentFailureWord::Run),
            flow: FlowName::parse("import-7").ok(),
        };
        let id = JobId::parse("i").ok();
        let job = job(&queue, Json::from(1), id, Some(unique), when, &kin, &say).unwrap();
        assert_eq!(job.id, JobId::parse("i").ok());
        assert_eq!((job.kind.as_str(), job.priority), ("k", -3));
        assert_eq!(job.when, tenure_core::job::When::In(Span::from_s(5)));
        assert_eq!(job.needs.as_ref().map(Vec::len), Some(2));
        assert_eq!(job.labels["a"], "b=c");
        let unique = job.unique.unwrap();
        assert_eq!((unique.until, unique.on_conflict), (Until::Start, OnConflict::Reject));
        assert_eq!(unique.within, Some(Span::from_s(60)));
        assert_eq!(job.after.len(), 3);
        assert!(matches!(&job.after[2].parent, Parent::Flow(flow) if flow.as_str() == "f"));
        assert_eq!(job.on_parent_failure, OnParentFailure::Run);
        assert_eq!(job.flow.unwrap().as_str(), "import-7");
    }

    #[test]
    fn what_breaks_a_bound_is_wrong_usage() {
        let queue = QueueName::parse("q").unwrap();
        for say in [
            SayArgs { kind: Some("x".repeat(129)), ..SayArgs::default() },
            SayArgs { needs: vec!["limit:".into()], ..SayArgs::default() },
            SayArgs { needs: vec!["limit:a".into(); 2], ..SayArgs::default() },
            SayArgs { labels: vec![("a".into(), "b".into()); 2], ..SayArgs::default() },
        ] {
            let job =
                job(&queue, Json::null(), None, None, RunsAt::default(), &KinArgs::default(), &say);
            assert_eq!(job.unwrap_err().code, 2);
        }
        for after in ["", "key:", "{", "[]x", r#"{"job":1}"#, r#"{"flow":"f","job":"a"}"#] {
            let kin = KinArgs { after: vec![after.into()], ..KinArgs::default() };
            let job =
                job(&queue, Json::null(), None, None, RunsAt::default(), &kin, &SayArgs::default());
            // An id may be any text but an empty one, and one that begins like JSON.
            assert_eq!(job.map_err(|no| no.code).err(), (after != "[]x").then_some(2), "{after}");
        }
    }
}
