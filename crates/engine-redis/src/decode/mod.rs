//! From the answers of the library's functions to replies: MessagePack maps with short names, and
//! the texts that they refer to by number.
//!
//! The server's maps are lenient: an empty one comes as an empty list, and nothing is `nil`, `false`
//! or absent. What is not of the form is a fault that names the call and never what was in it.

mod copied;
mod events;
mod explain;
mod findings;
mod flows;
mod jobs;
mod leases;
mod lenient;
mod resources;
mod row;
mod schedules;
mod settings;
mod totals;

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::NamedRefusal;
use tenure_engine::Fault;

use jobs::Shape;

use crate::lease_id::{Named, Signer};

pub(crate) use copied::{
    BegunReply, Copied, CopiedReply, FrozenReply, HeadReply, JobCopied, KeyCopied, LeaseCopied,
    LimitCopied, LookReply, PoolCopied, QueueCopied, ResourceCopied, SettingCopied, TurnCopied,
};
pub(crate) use events::EventsReply;
#[cfg(test)]
pub(crate) use findings::{FINDINGS, THINGS};
pub(crate) use flows::{FlowCopied, FlowReply, KinCopied, ParentReply};
pub(crate) use jobs::{
    FailuresReply, ListedJobs, ManyReply, NotAwaited, PushReply, ResultFound, ResultReply,
    SentTexts, Stored, pushed_ids, pushed_jobs,
};
pub(crate) use leases::{
    ExtendedReply, LeasedReply, LeasesReply, SettleReply, SettledAndLeased, Views, extended,
    settled,
};
pub(crate) use lenient::Maybe;
pub(crate) use resources::SyncedReply;
pub(crate) use schedules::{
    ComparedReply, FireReply, PutScheduleReply, ScheduleCopied, ScheduleReply, SetCopied,
    SyncedSchedulesReply, WantedReply,
};
pub(crate) use settings::stored_gauge;
pub(crate) use totals::{AuditReply, KeyReply, StatsReply, TickReply};

/// A page of anything.
#[derive(Deserialize)]
pub(crate) struct PageReply<T> {
    pub items: Vec<T>,
    #[serde(default)]
    pub next: Maybe<String>,
}

/// What a call was answered.
pub(crate) struct Answered<R> {
    /// The server's clock, in µs.
    pub now: u64,
    /// The soonest due moment that the call knows of, in µs.
    pub due: Option<u64>,
    /// The reply.
    pub reply: R,
    /// What the reply refers to by number.
    pub blobs: Blobs,
    /// The name of the namespace's key, once it has one.
    pub kid: Option<String>,
    /// The end of the recovery, in µs, while the namespace recovers.
    pub recovers_until: Option<u64>,
    /// Only to who told another one, or none: what it told, and the epoch of this store.
    pub epoch: Option<OtherEpoch>,
    /// What the call carried of its operator's settings counted.
    pub counted: bool,
    /// Some process was denied a notification here lately.
    pub unsaid: bool,
    /// The channel of a notification of this very call that was denied.
    pub denied: Option<String>,
}

impl<R> Answered<R> {
    /// The same answer with a part of its reply, and the other part.
    pub(crate) fn split<A, B>(self, parts: impl FnOnce(R) -> (A, B)) -> (A, Answered<B>) {
        let (first, reply) = parts(self.reply);
        let Answered {
            now, due, blobs, kid, recovers_until, epoch, counted, unsaid, denied, ..
        } = self;
        let second = Answered {
            now,
            due,
            reply,
            blobs,
            kid,
            recovers_until,
            epoch,
            counted,
            unsaid,
            denied,
        };
        (first, second)
    }
}

/// What a call told as the epoch of the store, and which one it is.
pub(crate) type OtherEpoch = (Maybe<String>, String);

/// What a reply refers to by numbers from 1 on: texts beside it, and shapes of jobs.
pub(crate) struct Blobs {
    texts: Vec<Vec<u8>>,
    shapes: Vec<Shape>,
    /// Who signs the ids of the leases that it shows.
    pub signer: Option<Arc<Signer>>,
}

impl Blobs {
    /// The id of a lease.
    fn lease_id(&self, lease: Named<'_>) -> Result<String, Malformed> {
        let signer = self.signer.as_ref().ok_or(Malformed("the key of its leases"))?;
        Ok(signer.id(lease))
    }

    fn get(&self, number: usize) -> Result<&[u8], Malformed> {
        let blob = number.checked_sub(1).and_then(|at| self.texts.get(at));
        blob.map(Vec::as_slice).ok_or(Malformed("a part that it refers to"))
    }

    fn shape(&self, number: usize) -> Result<&Shape, Malformed> {
        let shape = number.checked_sub(1).and_then(|at| self.shapes.get(at));
        shape.ok_or(Malformed("the shape of a job"))
    }

    fn text(&self, number: usize) -> Result<&str, Malformed> {
        std::str::from_utf8(self.get(number)?).map_err(|_| Malformed("a text"))
    }

    fn json(&self, number: usize) -> Result<tenure_core::secret::Json, Malformed> {
        let text = self.text(number)?;
        tenure_core::secret::Json::parse(text).ok_or(Malformed("a part that is JSON"))
    }
}

/// A reply that the library's answer says whole, by its type.
pub(crate) trait FromWire: Sized {
    /// The form of the answer.
    type Wire: DeserializeOwned;
    /// Reads it; `blobs` is what the answer refers to.
    fn read(wire: Self::Wire, blobs: &Blobs) -> Result<Self, Malformed>;
}

impl FromWire for () {
    type Wire = serde::de::IgnoredAny;
    fn read(_: Self::Wire, _: &Blobs) -> Result<Self, Malformed> {
        Ok(())
    }
}

impl<T: FromWire> FromWire for Vec<T> {
    type Wire = Vec<T::Wire>;
    fn read(wire: Self::Wire, blobs: &Blobs) -> Result<Self, Malformed> {
        wire.into_iter().map(|one| T::read(one, blobs)).collect()
    }
}

/// What of a reply is not of its form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Malformed(pub &'static str);

/// Why a call has no reply.
#[derive(Debug)]
pub(crate) enum Denied {
    /// The answer is no.
    No(Refusal),
    /// The body that was to be changed is another by now: read it again.
    StaleBody,
}

#[derive(Deserialize)]
struct Envelope<R> {
    #[serde(default)]
    t: u64,
    #[serde(default)]
    d: Maybe<u64>,
    #[serde(default)]
    k: Maybe<String>,
    #[serde(default)]
    l: Maybe<u64>,
    #[serde(default)]
    b: Maybe<OtherEpoch>,
    #[serde(default)]
    s: Maybe<bool>,
    #[serde(default)]
    u: Maybe<bool>,
    #[serde(default)]
    x: Maybe<String>,
    #[serde(default)]
    sh: Vec<usize>,
    r: Option<R>,
    #[serde(default)]
    no: Maybe<No>,
}

/// A refusal as the library says it: which case it is, with its parameters, and where in the request.
#[derive(Deserialize)]
struct No {
    why: Why,
    #[serde(default)]
    pointer: Maybe<String>,
    #[serde(default)]
    index: Maybe<usize>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a refusal of this release")]
enum Why {
    Refused(NamedRefusal),
    Own(OwnCase),
}

/// What the library refuses and no caller ever sees.
#[derive(Deserialize)]
#[serde(tag = "case", rename_all = "snake_case")]
enum OwnCase {
    StaleBody,
}

impl No {
    fn denied(self) -> Denied {
        match self.why {
            Why::Refused(NamedRefusal(mut no)) => {
                no.pointer = self.pointer.0;
                no.index = self.index.0;
                Denied::No(no)
            }
            Why::Own(OwnCase::StaleBody) => Denied::StaleBody,
        }
    }
}

/// Reads what a call was answered: the reply, or the refusal. `parts` are the map and the texts
/// beside it.
pub(crate) fn read<R: DeserializeOwned>(
    operation: &str,
    mut parts: Vec<Vec<u8>>,
) -> Result<Result<Answered<R>, Denied>, Fault> {
    if parts.is_empty() {
        return Err(malformed(operation, Malformed("its first part")));
    }
    let map = parts.remove(0);
    let envelope: Envelope<R> = rmp_serde::from_slice(&map)
        .map_err(|why| Fault::Broken(format!("the answer to {operation} cannot be read: {why}")))?;
    if let Some(no) = envelope.no.0 {
        return Ok(Err(no.denied()));
    }
    let Some(reply) = envelope.r else {
        return Err(malformed(operation, Malformed("its reply")));
    };
    let mut blobs = Blobs { texts: parts, shapes: Vec::new(), signer: None };
    let shapes = envelope.sh.into_iter().map(|words| Shape::read(blobs.get(words)?));
    blobs.shapes = shapes.collect::<Result<_, _>>().map_err(|wrong| malformed(operation, wrong))?;
    let (kid, recovers_until, epoch) = (envelope.k.0, envelope.l.0, envelope.b.0);
    Ok(Ok(Answered {
        now: envelope.t,
        due: envelope.d.0,
        reply,
        blobs,
        kid,
        recovers_until,
        epoch,
        counted: envelope.s.0 == Some(true),
        unsaid: envelope.u.0 == Some(true),
        denied: envelope.x.0,
    }))
}

/// A reply that is not of its form: a bug of ours, or another's library under our name.
pub(crate) fn malformed(operation: &str, Malformed(what): Malformed) -> Fault {
    Fault::Broken(format!("the answer to {operation} cannot be read: {what} is missing or wrong"))
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use tenure_core::refusal::Code;

    use super::*;

    /// What the library would answer.
    pub(super) fn answer(map: &impl Serialize) -> Vec<Vec<u8>> {
        vec![rmp_serde::to_vec_named(map).unwrap()]
    }

    #[derive(Serialize)]
    struct Said<N: Serialize> {
        t: u64,
        no: N,
    }

    #[test]
    fn a_refusal_is_read_with_all_that_it_says() {
        #[derive(Serialize)]
        struct Conflict<'a> {
            why: Taken<'a>,
            pointer: &'a str,
            index: usize,
        }
        #[derive(Serialize)]
        struct Taken<'a> {
            case: &'a str,
            key: &'a str,
            holder: &'a str,
        }
        let why = Taken { case: "job_key_taken", key: "a\"b", holder: "j" };
        let no = Conflict { why, pointer: "", index: 0 };
        let read = read::<u64>("push", answer(&Said { t: 1, no })).unwrap();
        let Err(Denied::No(no)) = read else { panic!("it was refused") };
        assert_eq!(no.code, Code::UniqueConflict);
        assert_eq!(no.detail, "the unique key \"a\\\"b\" is held by job \"j\"");
        assert_eq!((no.pointer.as_deref(), no.index), (Some(""), Some(0)));
        assert_eq!((no.job.as_deref(), no.retry_after_s), (Some("j"), None));
    }

    #[test]
    fn a_stale_body_is_told_apart() {
        #[derive(Serialize)]
        struct Stale {
            why: Case,
        }
        #[derive(Serialize)]
        struct Case {
            case: &'static str,
        }
        let stale = |case| Said { t: 1, no: Stale { why: Case { case } } };
        let said = stale("stale_body");
        assert!(matches!(read::<u64>("patch", answer(&said)), Ok(Err(Denied::StaleBody))));
        // Another release refuses for reasons that are unknown here: nothing happened, and nobody guesses why.
        let other = read::<u64>("patch", answer(&stale("of_tomorrow")));
        assert!(matches!(other, Err(Fault::Broken(_))));
    }

    #[test]
    fn what_is_no_answer_is_a_fault_that_names_the_call() {
        for parts in [vec![], vec![vec![]], vec![b"hello".to_vec()], vec![vec![0x80]]] {
            let Err(Fault::Broken(why)) = read::<u64>("push", parts) else { panic!("a fault") };
            assert!(why.contains("push"), "{why}");
        }
    }
}
