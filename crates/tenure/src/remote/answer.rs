//! From HTTP to a reply, a refusal or a fault.
//!
//! Lenient: fields that it does not know are ignored. It never shows what it read, since an answer
//! may carry payloads and secrets: an error names a place, not a value.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Effect, PushAnswer, Pushed, Put, Reply, Request};
use tenure_core::sentences::ServerRefusal;
use tenure_engine::{CallError, Fault};

use super::wire::Heard;

/// Reads the body of a good answer with this status.
type Reader = fn(u16, &[u8]) -> Result<Reply, serde_json::Error>;

const CREATED: u16 = 201;

macro_rules! plain {
    ($variant:ident) => {
        |_, body| serde_json::from_slice(body).map(Reply::$variant)
    };
}
macro_rules! put {
    ($variant:ident) => {
        |status, body| {
            let view = serde_json::from_slice(body)?;
            Ok(Reply::$variant(Put { view, created: status == CREATED }))
        }
    };
}
macro_rules! empty {
    ($variant:ident) => {
        |_, _| Ok(Reply::$variant(()))
    };
}

/// How the answer to this request is read; taken before the request is sent, which need not be kept.
pub fn reader(request: &Request) -> Reader {
    use Request as R;
    match request {
        R::Push(push) => match push.answer {
            PushAnswer::Whole => |_, body| Ok(Reply::Push(Pushed::Whole(one_or_many(body)?))),
            PushAnswer::Ids => |_, body| Ok(Reply::Push(Pushed::Ids(one_or_many(body)?))),
        },
        R::GetJob(_) => plain!(GetJob),
        R::ListJobs(_) => plain!(ListJobs),
        R::PatchJob(_) => plain!(PatchJob),
        R::DeleteJob(_) => empty!(DeleteJob),
        R::CancelJob(_) => plain!(CancelJob),
        R::RetryJob(_) => plain!(RetryJob),
        R::RunJobNow(_) => plain!(RunJobNow),
        R::CancelJobs(_) => plain!(CancelJobs),
        R::RetryJobs(_) => plain!(RetryJobs),
        R::ExplainJob(_) => plain!(ExplainJob),
        R::Lease(_) => plain!(Lease),
        R::Extend(_) => plain!(Extend),
        R::Settle(_) => plain!(Settle),
        R::ListLeases(_) => plain!(ListLeases),
        R::ForceLease(_) => empty!(ForceLease),
        R::ListQueues(_) => plain!(ListQueues),
        R::GetQueue(_) => plain!(GetQueue),
        R::PutQueue(_) => put!(PutQueue),
        R::PatchQueue(_) => put!(PatchQueue),
        R::DeleteQueue(_) => empty!(DeleteQueue),
        R::PauseQueue(_) => plain!(PauseQueue),
        R::ResumeQueue(_) => plain!(ResumeQueue),
        R::ListLimits(_) => plain!(ListLimits),
        R::GetLimit(_) => plain!(GetLimit),
        R::PutLimit(_) => put!(PutLimit),
        R::PatchLimit(_) => put!(PatchLimit),
        R::DeleteLimit(_) => empty!(DeleteLimit),
        R::PauseLimit(_) => plain!(PauseLimit),
        R::ResumeLimit(_) => plain!(ResumeLimit),
        R::ObserveLimit(_) => plain!(ObserveLimit),
        R::ListPools(_) => plain!(ListPools),
        R::GetPool(_) => plain!(GetPool),
        R::PutPool(_) => put!(PutPool),
        R::PatchPool(_) => put!(PatchPool),
        R::DeletePool(_) => empty!(DeletePool),
        R::SyncResources(_) => plain!(SyncResources),
        R::AddResources(_) => |_, body| Ok(Reply::AddResources(one_or_many(body)?)),
        R::ListResources(_) => plain!(ListResources),
        R::GetResource(_) => plain!(GetResource),
        R::PatchResource(_) => plain!(PatchResource),
        R::DeleteResource(_) => empty!(DeleteResource),
        R::CoolResource(_) => plain!(CoolResource),
        R::BanResource(_) => plain!(BanResource),
        R::RestoreResource(_) => plain!(RestoreResource),
        R::ListWorkers(_) => plain!(ListWorkers),
        R::GetStats(_) => plain!(GetStats),
        R::Audit(_) => plain!(Audit),
    }
}

/// An array, or one item standing for an array of one.
fn one_or_many<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<Vec<T>, serde_json::Error> {
    let first = body.iter().find(|c| !c.is_ascii_whitespace());
    if first == Some(&b'[') {
        serde_json::from_slice(body)
    } else {
        Ok(vec![serde_json::from_slice(body)?])
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Problem {
    code: String,
    title: String,
    detail: String,
    hint: String,
    pointer: Option<String>,
    index: Option<usize>,
    line: Option<usize>,
    job: Option<String>,
}

/// What an answer means. `place` is the server, for the sentences.
pub fn answer(
    heard: &Heard,
    read: Reader,
    name: &str,
    effect: Effect,
    place: &str,
) -> Result<Reply, CallError> {
    let status = heard.status;
    if (200..300).contains(&status) {
        return read(status, &heard.body).map_err(|why| {
            // Only where, never what: the text of a parser's error quotes the value.
            CallError::Fault(Fault::Broken(format!(
                "the answer to {name} from {place} cannot be read (line {}, column {})",
                why.line(),
                why.column()
            )))
        });
    }
    let problem: Problem = lenient(&heard.body);
    let Ok(code) = problem.code.parse::<Code>() else {
        return Err(CallError::Fault(unnamed(status, &problem, effect, place)));
    };
    let detail = if problem.detail.is_empty() { problem.title } else { problem.detail };
    let mut refusal = Refusal::heard(code, detail, problem.hint);
    refusal.pointer = problem.pointer;
    refusal.index = problem.index;
    refusal.line = problem.line;
    refusal.job = problem.job;
    refusal.retry_after_s = heard.retry_after_s;
    Err(match code {
        Code::Unauthorized | Code::ForbiddenOrigin => CallError::Fault(Fault::Denied(refusal)),
        Code::OutcomeUnknown => CallError::Fault(lost(effect, refusal.detail)),
        Code::StoreUnavailable => CallError::Fault(Fault::Unavailable(refusal.detail)),
        Code::Internal => CallError::Fault(Fault::Broken(refusal.detail)),
        _ => CallError::Refused(refusal),
    })
}

/// Sent, but not answered: what changes something may have happened, what reads may be asked again.
pub fn lost(effect: Effect, why: String) -> Fault {
    match effect {
        Effect::Reads => Fault::Unavailable(why),
        Effect::Sets | Effect::Adds => Fault::Unknown(why),
    }
}

/// A status without a code that is known here: a proxy, another program, or a later server.
fn unnamed(status: u16, problem: &Problem, effect: Effect, place: &str) -> Fault {
    match status {
        401 => {
            let place = place.to_owned();
            Fault::Denied(ServerRefusal::TokenRefused { place, status }.into())
        }
        403 => {
            let place = place.to_owned();
            Fault::Denied(ServerRefusal::OriginRefused { place, status }.into())
        }
        // Whether a proxy had passed it on is not known.
        500.. => lost(effect, format!("{place} answered {status}")),
        _ if !problem.code.is_empty() => Fault::Broken(format!(
            "{place} refused with the code \"{}\", which this version does not know: {}",
            problem.code, problem.detail
        )),
        _ => Fault::Unavailable(format!(
            "what answers at {place} is not Tenure (status {status}); check the address"
        )),
    }
}

/// What can be read of a problem; nothing at all is a problem without a code.
fn lenient<T: DeserializeOwned + Default>(body: &[u8]) -> T {
    serde_json::from_slice(body).unwrap_or_default()
}
