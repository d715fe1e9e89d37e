//! Settle calls: their items, and the outcome file of a child process.

use serde::ser::{SerializeMap, Serializer};

use super::fields::{Fields, Value, document};
use super::forms::{
    ANY_TEXT, Content, Duration, Flag, Form, List, Name, Text, Time, ValueKind, Whole, Words,
};
use super::jobs::NewJobFields;
use super::leases::{LeaseOfSettle, Numbered};
use super::needs::HeldLimit;
use super::object::{Call, Part, SentBody, Variant, bounded_bodies, object};
use super::raw_call::http_calls;
use super::times::LaterPart;
use super::timing::Interval;
use crate::at::At;
use crate::bounded::{AMOUNT, Spans};
use crate::bounds::{
    ERROR_BYTES_MAX, ITEMS_MAX, PAYLOAD_BYTES_MAX, PROGRESS_BYTES_MAX, SETTLE_PUSH_MAX,
};
use crate::job::{NewJob, Outcome};
use crate::lease::{
    Ending, Leased, LimitVerdict, ResourceVerdict, SettleItem, SettledLease, Verdict,
};
use crate::names::{LimitName, PoolName, ResourceId};
use crate::refusal::Refusal;
use crate::requests::{Lease, Settle};
use crate::secret::Json;
use crate::sentences::BodyRefusal;
use crate::time::{Moment, Span};

object! {
    SettleFields "a settle call" "SettleCall"
    answered Leased | "settled" | "refused";
    whole Settle;
    fields {
        settle: Vec<SettleItem> = Numbered(List(0..=ITEMS_MAX, LeaseToSettle)),
            required "\"settle\": [{\"lease\": \"LEASE\", \"outcome\": \"succeeded\"}]",
            "Leases to end, at most 1,000, in this order.";
        lease: Box<Lease> = LeaseOfSettle, optional,
            "A lease call that is made right after the settles; its request_id is required.";
    }
}

object! {
    SettleItemFields "a settle item" "SettleItem"
    answered SettledLease;
    call SettleItem(lease: String);
    variants ENDINGS;
    fields {
        progress: Json = Content(PROGRESS_BYTES_MAX), optional,
            "The last progress report, at most 4 KiB, kept with the job.";
        next_in: Span = Interval, optional,
            "The schedule of the job has its next moment this long after the settle: whole seconds, 1s to 3650d.";
        resources: Vec<ResourceVerdict> = List(0..=ITEMS_MAX, ResourceVerdictFields), default,
            "What becomes of resources that were held; without a verdict, nothing special.";
        limits: Vec<LimitVerdict> = List(0..=ITEMS_MAX, LimitVerdictFields), default,
            "What becomes of limits that were held.";
        push: Vec<NewJob> = List(0..=SETTLE_PUSH_MAX, NewJobFields), default,
            "Follow-up jobs, at most 100, stored in the same step as the settle, or neither is.";
    }
    part ending: EndingPart {
        outcome: Outcome = Words("an outcome", OUTCOMES), optional,
            "How the run ended. A lease without a job takes succeeded or released.";
        result: Json = Content(PAYLOAD_BYTES_MAX), optional,
            "With succeeded: the result, any JSON of at most 256 KiB.";
        error: String = ErrorText, optional, "With failed: what went wrong; the last 8 KiB of it are kept.";
        retry_in: Span = Duration(Spans::ANY), optional,
            "With failed: the next attempt comes after this, instead of the backoff. Excludes final.";
        last as "final": bool = Flag, optional, "With failed: there is no other attempt; false if absent.";
        hold as "for": Span = Duration(Spans::SNOOZE), optional,
            "With snoozed: the job waits this long, at least 100ms. Excludes until.";
        until: Moment = Time, optional,
            "With snoozed: the job waits until this moment, at least 100 ms ahead. Excludes for.";
        reset: bool = Flag, optional, "With snoozed: attempts start again from 0; false if absent.";
    }
    others {
        lease: String = ANY_TEXT, required, "The id of the lease to end.";
    }
}
const OUTCOMES: &[(&str, Outcome)] = &[
    (Outcome::Succeeded.as_str(), Outcome::Succeeded),
    (Outcome::Failed.as_str(), Outcome::Failed),
    (Outcome::Snoozed.as_str(), Outcome::Snoozed),
    (Outcome::Released.as_str(), Outcome::Released),
];
const ENDINGS: &[Variant] = &[
    ending_variant("Succeeded", &["result"], Outcome::Succeeded),
    ending_variant("Failed", &["error", "retry_in", "final"], Outcome::Failed),
    ending_variant("Snoozed", &["for", "until", "reset"], Outcome::Snoozed),
    ending_variant("Released", &[], Outcome::Released),
];

const fn ending_variant(
    name: &'static str,
    own: &'static [&'static str],
    outcome: Outcome,
) -> Variant {
    Variant { name, own, required: &["outcome"], says: Some(("outcome", outcome.as_str())) }
}

object! {
    ResourceVerdictFields "a verdict on a resource" "ResourceVerdict"
    whole ResourceVerdict;
    fields {
        pool: PoolName = Name(PoolName::known, Some(PoolName::BYTES_MAX)), required "\"pool\": \"accounts\"",
            "The pool of the resource.";
        id: ResourceId = Name(ResourceId::known, Some(ResourceId::BYTES_MAX)), required "\"id\": \"RESOURCE\"",
            "The id of the resource.";
    }
    part verdict: VerdictPart {
        verdict: VerdictWord = Words("a verdict", VERDICTS), optional,
            "Nothing special (ok, the default), let it rest (cool), or hand it out no more (ban).";
        hold as "for": Span = Duration(Spans::ANY), optional, "With cool: how long it rests. Excludes until.";
        until: Moment = Time, optional, "With cool: when its rest ends. Excludes for.";
        reason: String = Text(ERROR_BYTES_MAX), optional, "With ban: why, for people; at most 8 KiB.";
    }
}

object! {
    LimitVerdictFields "a verdict on a limit" "LimitVerdict"
    whole LimitVerdict;
    fields {
        limit: LimitName = HeldLimit, required "\"limit\": \"site:example.com\"", "The limit that was held.";
        pause: Span = Duration(Spans::ANY), optional,
            "Nobody is granted it for this long from now; a later pause that is there holds.";
        spent: u32 = Whole(AMOUNT), optional,
            "How many rate tokens were spent in truth, 0 or more; it corrects the cost that the grant booked.";
    }
}

/// A lease to settle, with its id.
struct LeaseToSettle;

impl Form<SettleItem> for LeaseToSettle {
    fn read(&self, value: Value<'_, '_>) -> Result<SettleItem, Refusal> {
        let fields = value.fields(SettleItemFields::SHAPE)?;
        let lease = fields.read_required(&SettleItemFields::lease(), "\"lease\": \"LEASE\"")?;
        SettleItem::of_fields((lease,), &fields)
    }
    fn check(&self, value: &SettleItem, at: &At<'_>) -> Result<(), Refusal> {
        value.check_body(at)
    }
    fn write<S: Serializer>(&self, value: &SettleItem, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        SettleItemFields::lease().put(&value.lease, &mut map)?;
        value.write_members(&mut map)?;
        map.end()
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Object("SettleItem")
    }
}

/// The end of a run: an outcome, with the fields that belong to it.
struct EndingPart;

const SNOOZE: LaterPart = LaterPart(Spans::SNOOZE);

impl Part<Ending> for EndingPart {
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<Ending, Refusal> {
        let example = "\"outcome\": \"succeeded\"";
        let outcome = fields.read_required(&SettleItemFields::outcome(), example)?;
        let others: &[&'static str] = match outcome {
            Outcome::Succeeded => &["error", "retry_in", "final", "for", "until"],
            Outcome::Failed => &["result", "for", "until"],
            Outcome::Snoozed => &["result", "error", "retry_in", "final"],
            Outcome::Released | Outcome::Lost | Outcome::Undelivered => {
                &["result", "error", "retry_in", "final", "for", "until"]
            }
        };
        fields.none_of(others, &format!("the outcome \"{}\"", outcome.as_str()))?;
        if outcome != Outcome::Snoozed && fields.get("reset").is_some() {
            let case = BodyRefusal::ResetWithoutSnooze { outcome: outcome.as_str().into() };
            return Err(fields.conflict("reset", case));
        }
        Ok(match outcome {
            Outcome::Succeeded => {
                Ending::Succeeded { result: fields.read(&SettleItemFields::result())? }
            }
            Outcome::Failed => {
                let error = fields.read(&SettleItemFields::error())?.unwrap_or_default();
                let retry_in = fields.read(&SettleItemFields::retry_in())?;
                let last = fields.read(&SettleItemFields::last())?.unwrap_or_default();
                retry_goes_on(last, retry_in, &fields.at)?;
                Ending::Failed { error, retry_in, last }
            }
            Outcome::Snoozed => Ending::Snoozed {
                later: SNOOZE.read(fields)?,
                reset: fields.read(&SettleItemFields::reset())?.unwrap_or_default(),
            },
            Outcome::Released | Outcome::Lost | Outcome::Undelivered => Ending::Released,
        })
    }
    fn check(&self, value: &Ending, of: &At<'_>) -> Result<(), Refusal> {
        match value {
            Ending::Succeeded { result } => SettleItemFields::result().check_given(result, of),
            // An error that is too long is cut, not refused: its run has ended in any case.
            Ending::Failed { error: _, retry_in, last } => {
                SettleItemFields::retry_in().check_given(retry_in, of)?;
                retry_goes_on(*last, *retry_in, of)
            }
            Ending::Snoozed { later, reset: _ } => SNOOZE.check(later, of),
            Ending::Released => Ok(()),
        }
    }
    fn write<M: SerializeMap>(&self, value: &Ending, map: &mut M) -> Result<(), M::Error> {
        SettleItemFields::outcome().put(&value.outcome(), map)?;
        match value {
            Ending::Succeeded { result } => SettleItemFields::result().put_given(result, map),
            Ending::Failed { error, retry_in, last } => {
                SettleItemFields::error().put(error, map)?;
                SettleItemFields::retry_in().put_given(retry_in, map)?;
                if *last { SettleItemFields::last().put(last, map) } else { Ok(()) }
            }
            Ending::Snoozed { later, reset } => {
                SNOOZE.write(later, map)?;
                if *reset { SettleItemFields::reset().put(reset, map) } else { Ok(()) }
            }
            Ending::Released => Ok(()),
        }
    }
}

/// Refuses a `retry_in` for a run after which no attempt follows.
fn retry_goes_on(last: bool, retry_in: Option<Span>, of: &At<'_>) -> Result<(), Refusal> {
    if last && retry_in.is_some() {
        return Err(At::Member(of, "retry_in").refuse(BodyRefusal::RetryInWithFinal));
    }
    Ok(())
}

/// The error of a failed run: its end is kept.
struct ErrorText;

impl Form<String> for ErrorText {
    fn read(&self, value: Value<'_, '_>) -> Result<String, Refusal> {
        value.string().map(|text| last_bytes(&text).to_owned())
    }
    fn write<S: Serializer>(&self, value: &String, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(last_bytes(value))
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Text(None)
    }
}

/// The last [`ERROR_BYTES_MAX`](crate::bounds::ERROR_BYTES_MAX) bytes of an error text, from a whole character on,
/// since the cause usually stands at the end.
pub fn last_bytes(text: &str) -> &str {
    let mut from = text.len().saturating_sub(ERROR_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum VerdictWord {
    Ok,
    Cool,
    Ban,
}

const VERDICTS: &[(&str, VerdictWord)] =
    &[("ok", VerdictWord::Ok), ("cool", VerdictWord::Cool), ("ban", VerdictWord::Ban)];

/// A verdict, with the fields that belong to it.
struct VerdictPart;

const REST: LaterPart = LaterPart(Spans::ANY);

impl Part<Verdict> for VerdictPart {
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<Verdict, Refusal> {
        let word = fields.read(&ResourceVerdictFields::verdict())?.unwrap_or(VerdictWord::Ok);
        match word {
            VerdictWord::Ok => {
                fields.none_of(&["for", "until", "reason"], "the verdict \"ok\"")?;
                Ok(Verdict::Ok)
            }
            VerdictWord::Cool => {
                fields.none_of(&["reason"], "the verdict \"cool\"")?;
                Ok(Verdict::Cool(REST.read(fields)?))
            }
            VerdictWord::Ban => {
                fields.none_of(&["for", "until"], "the verdict \"ban\"")?;
                Ok(Verdict::Ban { reason: fields.read(&ResourceVerdictFields::reason())? })
            }
        }
    }
    fn check(&self, value: &Verdict, of: &At<'_>) -> Result<(), Refusal> {
        match value {
            Verdict::Ok | Verdict::Ban { reason: None } => Ok(()),
            Verdict::Cool(later) => REST.check(later, of),
            Verdict::Ban { reason: Some(reason) } => {
                ResourceVerdictFields::reason().check(reason, of)
            }
        }
    }
    fn write<M: SerializeMap>(&self, value: &Verdict, map: &mut M) -> Result<(), M::Error> {
        let word = match value {
            Verdict::Ok => VerdictWord::Ok,
            Verdict::Cool(_) => VerdictWord::Cool,
            Verdict::Ban { .. } => VerdictWord::Ban,
        };
        ResourceVerdictFields::verdict().put(&word, map)?;
        match value {
            Verdict::Ok | Verdict::Ban { reason: None } => Ok(()),
            Verdict::Cool(later) => REST.write(later, map),
            Verdict::Ban { reason: Some(reason) } => {
                ResourceVerdictFields::reason().put(reason, map)
            }
        }
    }
}

/// Reads the body of `POST /v1/leases/settle`; an empty list is answered with an empty list. One
/// error of form refuses the whole call, also an error in its lease call.
pub fn settle(body: &[u8]) -> Result<Settle, Refusal> {
    Settle::of_body((), body)
}

/// Reads a settle item without `lease`, as in the outcome file of a child process: the caller that
/// settles names the lease, and the child need not know it.
pub fn settle_item_without_lease(body: &[u8]) -> Result<SettleItem, Refusal> {
    let document = document(body)?;
    let fields = Value::body(&document).fields_without(
        SettleItemFields::SHAPE,
        "lease",
        "an outcome file",
    )?;
    SettleItem::of_fields((String::new(),), &fields)
}

http_calls! {
    Settle() body;
}

bounded_bodies! { Settle }
