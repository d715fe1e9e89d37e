//! Turns an HTTP answer into a reply, a refusal or a fault.
//!
//! Lenient: unknown fields are ignored. It never shows the text it reads, since an answer may carry payloads and
//! secrets: an error names a place, not a value.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tenure_core::flow::FlowView;
use tenure_core::job::{JobView, PushedJob, ResultView};
use tenure_core::lease::{Explained, Extended, LeaseView, Leased, Reason, SettledLease};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{
    Audited, DoneMany, Effect, EventsRead, Failures, Listed, Operation, Pushed, Put, Reply,
    Settled, Stats,
};
use tenure_core::schedule::{ScheduleView, SyncedSchedules};
use tenure_core::sentences::ServerRefusal;
use tenure_core::settings::{LimitView, PoolView, QueueView, ResourceView, Synced};
use tenure_core::time::Moment;
use tenure_engine_api::{CallError, Fault};

use super::wire::Heard;

/// Reads the body of a successful answer with this status.
pub type Reader = fn(u16, &[u8]) -> Result<Reply, serde_json::Error>;

const CREATED: u16 = 201;

/// A reply that can be read from the body of a successful answer.
pub trait FromHttp: Sized {
    /// Reads the body of an answer with this status.
    fn read(status: u16, body: &[u8]) -> Result<Self, serde_json::Error>;
}

/// Reads the reply of an operation.
pub fn read<O: Operation<Reply: FromHttp>>(
    status: u16,
    body: &[u8],
) -> Result<Reply, serde_json::Error> {
    O::Reply::read(status, body).map(O::wrap)
}

impl FromHttp for () {
    fn read(_: u16, _: &[u8]) -> Result<(), serde_json::Error> {
        Ok(())
    }
}

impl<T: DeserializeOwned> FromHttp for Put<T> {
    fn read(status: u16, body: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(Put { view: serde_json::from_slice(body)?, created: status == CREATED })
    }
}

impl<T: DeserializeOwned> FromHttp for Listed<T> {
    fn read(_: u16, body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }
}

impl<T: DeserializeOwned> FromHttp for Vec<T> {
    fn read(_: u16, body: &[u8]) -> Result<Self, serde_json::Error> {
        one_or_many(body)
    }
}

impl FromHttp for Pushed {
    fn read(_: u16, body: &[u8]) -> Result<Self, serde_json::Error> {
        one_or_many(body).map(Pushed::Whole)
    }
}

impl FromHttp for Settled {
    fn read(_: u16, body: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Body {
            settled: Vec<SettledLease>,
            refused: Option<Problem>,
            leases: Option<Vec<LeaseView>>,
            next_at: Option<Moment>,
            #[serde(default)]
            reasons: Vec<Reason>,
        }
        let Body { settled, refused, leases, next_at, reasons } = serde_json::from_slice(body)?;
        let lease = match (refused, leases) {
            (Some(problem), _) => Some(Err(problem.of_a_part())),
            (None, Some(leases)) => Some(Ok(Leased { leases, next_at, reasons })),
            (None, None) => None,
        };
        Ok(Settled { settled, lease })
    }
}

macro_rules! plain {
    ($($reply:ty),* $(,)?) => {
        $(impl FromHttp for $reply {
            fn read(_: u16, body: &[u8]) -> Result<Self, serde_json::Error> {
                serde_json::from_slice(body)
            }
        })*
    };
}
plain!(
    Box<JobView>,
    Box<ResultView>,
    Box<FlowView>,
    DoneMany,
    Failures,
    EventsRead,
    Explained,
    Leased,
    Extended,
    QueueView,
    LimitView,
    PoolView,
    ResourceView,
    Synced,
    SyncedSchedules,
    Box<ScheduleView>,
    Box<PushedJob>,
    Stats,
    Audited,
);

/// An array, or one item standing for an array of one.
pub fn one_or_many<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<Vec<T>, serde_json::Error> {
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
    caller: Option<String>,
}

impl Problem {
    /// The refusal with this code.
    fn refusal(self, code: Code) -> Refusal {
        let detail = if self.detail.is_empty() { self.title } else { self.detail };
        let mut refusal = Refusal::heard(code, detail, self.hint);
        refusal.pointer = self.pointer;
        refusal.index = self.index;
        refusal.line = self.line;
        refusal.job = self.job;
        refusal.caller = self.caller;
        refusal
    }

    /// The refusal of a part of the request; an unknown code counts as `internal`.
    fn of_a_part(self) -> Refusal {
        let code = self.code.parse().unwrap_or(Code::Internal);
        self.refusal(code)
    }
}

/// The reply, refusal or fault in an answer. `place` is the server, for the messages.
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
            // The position only, not the text: a parser's error quotes the value.
            CallError::Fault(Fault::Broken(format!(
                "the answer to {name} from {place} cannot be read (line {}, column {})",
                why.line(),
                why.column()
            )))
        });
    }
    Err(refused(heard, effect, place))
}

/// The refusal or fault in an answer that is no reply.
pub fn refused(heard: &Heard, effect: Effect, place: &str) -> CallError {
    let problem: Problem = lenient(&heard.body);
    let Ok(code) = problem.code.parse::<Code>() else {
        return CallError::Fault(unnamed(heard.status, &problem, effect, place));
    };
    let mut refusal = problem.refusal(code);
    refusal.retry_after_s = heard.retry_after_s;
    match code {
        Code::Unauthorized | Code::ForbiddenOrigin => CallError::Fault(Fault::Denied(refusal)),
        Code::OutcomeUnknown => CallError::Fault(lost(effect, refusal.detail)),
        Code::StoreUnavailable => {
            CallError::Fault(Fault::StoreAway(format!("{place} answers, but {}", refusal.detail)))
        }
        Code::Internal => CallError::Fault(Fault::Broken(refusal.detail)),
        _ => CallError::Refused(refusal),
    }
}

/// Whether another server of the same store may give another answer: before anything happened, this one said that it
/// does not serve, or a proxy said that it is not there.
pub fn leads_elsewhere(heard: &Heard) -> bool {
    if heard.status < 500 {
        return false;
    }
    match lenient::<Problem>(&heard.body).code.parse() {
        Ok(code) => matches!(code, Code::Draining | Code::NotOwner | Code::StoreUnavailable),
        Err(_) => matches!(heard.status, 502..=504),
    }
}

/// Sent, but not answered: a call that changes something may have happened, a read may be retried.
pub fn lost(effect: Effect, why: String) -> Fault {
    match effect {
        Effect::Reads => Fault::Unavailable(why),
        Effect::Sets | Effect::Adds => Fault::Unknown(why),
    }
}

/// A status without a known code: from a proxy, another program, or a later server.
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
        // A proxy may or may not have forwarded it.
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

/// The readable part of a problem; an unreadable one becomes a problem without a code.
fn lenient<T: DeserializeOwned + Default>(body: &[u8]) -> T {
    serde_json::from_slice(body).unwrap_or_default()
}
