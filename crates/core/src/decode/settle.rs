//! Settle calls: their items, and the outcome file of a child process.

use super::fields::{Fields, ObjectShape, Value, document};
use super::jobs::new_job;
use super::leases::lease_of_settle;
use super::needs::one_limit;
use super::times::later_required;
use super::timing::every;
use crate::at::At;
use crate::bounded::{AMOUNT, Spans, retry_goes_on};
use crate::bounds::{
    ERROR_BYTES_MAX, ITEMS_MAX, PAYLOAD_BYTES_MAX, PROGRESS_BYTES_MAX, SETTLE_PUSH_MAX,
};
use crate::job::Outcome;
use crate::lease::{Ending, LimitVerdict, ResourceVerdict, SettleItem, Verdict};
use crate::names::{PoolName, ResourceId};
use crate::refusal::Refusal;
use crate::requests::Settle;
use crate::sentences::BodyRefusal;

static SETTLE: ObjectShape<2> = ObjectShape {
    what: "a settle call",
    fields: ["settle", "lease"],
    answered: &["settled", "leases", "next_at", "reasons", "refused"],
};
static ITEM: ObjectShape<14> = ObjectShape {
    what: "a settle item",
    fields: [
        "lease",
        "outcome",
        "result",
        "error",
        "retry_in",
        "final",
        "for",
        "until",
        "reset",
        "progress",
        "next_in",
        "resources",
        "limits",
        "push",
    ],
    answered: &["ok", "state", "run_at", "code", "next_at", "pushed"],
};
/// The same without `lease`, which the command line knows and its child need not know.
static FILE_ITEM: ObjectShape<13> = ObjectShape {
    what: "an outcome file",
    fields: [
        "outcome",
        "result",
        "error",
        "retry_in",
        "final",
        "for",
        "until",
        "reset",
        "progress",
        "next_in",
        "resources",
        "limits",
        "push",
    ],
    answered: &[],
};
static RESOURCE: ObjectShape<6> = ObjectShape {
    what: "a verdict on a resource",
    fields: ["pool", "id", "verdict", "for", "until", "reason"],
    answered: &[],
};
static LIMIT: ObjectShape<3> = ObjectShape {
    what: "a verdict on a limit",
    fields: ["limit", "pause", "spent"],
    answered: &[],
};

/// Reads the body of `POST /v1/leases/settle`; an empty list is answered with an empty list. One
/// error of form refuses the whole call, also an error in its lease call.
pub fn settle(body: &[u8]) -> Result<Settle, Refusal> {
    let document = document(body)?;
    let fields = Value::body(&document).fields(&SETTLE)?;
    let form = "\"settle\": [{\"lease\": \"LEASE\", \"outcome\": \"succeeded\"}]";
    let items = fields.required("settle", form)?;
    let settle = items.each_indexed(0..=ITEMS_MAX, |item| {
        let fields = item.fields(&ITEM)?;
        let lease = fields.required("lease", "\"lease\": \"LEASE\"")?.string()?.into_owned();
        settle_item(&fields, lease)
    })?;
    let lease = fields.take("lease", lease_of_settle)?.map(Box::new);
    Ok(Settle { settle, lease })
}

/// Reads a settle item without `lease`, as in the outcome file of a child process: the caller that
/// settles names the lease.
pub fn settle_item_without_lease(body: &[u8]) -> Result<SettleItem, Refusal> {
    let document = document(body)?;
    settle_item(&Value::body(&document).fields(&FILE_ITEM)?, String::new())
}

fn settle_item<const N: usize>(
    fields: &Fields<'_, '_, N>,
    lease: String,
) -> Result<SettleItem, Refusal> {
    Ok(SettleItem {
        lease,
        ending: ending(fields)?,
        progress: fields.take("progress", |v| v.json(PROGRESS_BYTES_MAX))?,
        next_in: fields.take("next_in", every)?,
        resources: fields
            .take("resources", |v| v.each(0..=ITEMS_MAX, resource_verdict))?
            .unwrap_or_default(),
        limits: fields
            .take("limits", |v| v.each(0..=ITEMS_MAX, limit_verdict))?
            .unwrap_or_default(),
        push: fields.take("push", |v| v.each(0..=SETTLE_PUSH_MAX, new_job))?.unwrap_or_default(),
    })
}

fn ending<const N: usize>(fields: &Fields<'_, '_, N>) -> Result<Ending, Refusal> {
    let outcomes = [
        ("succeeded", Outcome::Succeeded),
        ("failed", Outcome::Failed),
        ("snoozed", Outcome::Snoozed),
        ("released", Outcome::Released),
    ];
    let outcome = fields
        .required("outcome", "\"outcome\": \"succeeded\"")?
        .one_of("an outcome", &outcomes)?;
    let others: &[&'static str] = match outcome {
        Outcome::Succeeded => &["error", "retry_in", "final", "for", "until"],
        Outcome::Failed => &["result", "for", "until"],
        Outcome::Snoozed => &["result", "error", "retry_in", "final"],
        Outcome::Released | Outcome::Lost | Outcome::Undelivered => {
            &["result", "error", "retry_in", "final", "for", "until"]
        }
    };
    fields.none_of(others, &format!("the outcome \"{}\"", outcome.as_str()))?;
    let reset = fields.take("reset", |v| match outcome {
        Outcome::Snoozed => v.boolean(),
        _ => Err(v.refuse(BodyRefusal::ResetWithoutSnooze { outcome: outcome.as_str().into() })),
    })?;
    Ok(match outcome {
        Outcome::Succeeded => {
            Ending::Succeeded { result: fields.take("result", |v| v.json(PAYLOAD_BYTES_MAX))? }
        }
        Outcome::Failed => failed(fields)?,
        Outcome::Snoozed => Ending::Snoozed {
            later: later_required(fields, Spans::SNOOZE)?,
            reset: reset.unwrap_or_default(),
        },
        Outcome::Released | Outcome::Lost | Outcome::Undelivered => Ending::Released,
    })
}

fn failed<const N: usize>(fields: &Fields<'_, '_, N>) -> Result<Ending, Refusal> {
    let error = fields.take("error", |v| v.string())?.unwrap_or_default();
    let retry_in = fields.take("retry_in", |v| v.span(Spans::ANY))?;
    let last = fields.take("final", |v| v.boolean())?.unwrap_or_default();
    retry_goes_on(last, retry_in.is_some(), &At::Member(&fields.at, "retry_in"))?;
    Ok(Ending::Failed { error: last_bytes(&error).to_owned(), retry_in, last })
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

fn resource_verdict(value: Value<'_, '_>) -> Result<ResourceVerdict, Refusal> {
    #[derive(Clone, Copy)]
    enum Word {
        Ok,
        Cool,
        Ban,
    }
    let fields = value.fields(&RESOURCE)?;
    let pool = fields.required("pool", "\"pool\": \"accounts\"")?.parsed(PoolName::known)?;
    let id = fields.required("id", "\"id\": \"RESOURCE\"")?.parsed(ResourceId::known)?;
    let words = [("ok", Word::Ok), ("cool", Word::Cool), ("ban", Word::Ban)];
    let word = fields.take("verdict", |v| v.one_of("a verdict", &words))?.unwrap_or(Word::Ok);
    let verdict = match word {
        Word::Ok => {
            fields.none_of(&["for", "until", "reason"], "the verdict \"ok\"")?;
            Verdict::Ok
        }
        Word::Cool => {
            fields.none_of(&["reason"], "the verdict \"cool\"")?;
            Verdict::Cool(later_required(&fields, Spans::ANY)?)
        }
        Word::Ban => {
            fields.none_of(&["for", "until"], "the verdict \"ban\"")?;
            Verdict::Ban { reason: fields.take("reason", |v| v.short(ERROR_BYTES_MAX))? }
        }
    };
    Ok(ResourceVerdict { pool, id, verdict })
}

fn limit_verdict(value: Value<'_, '_>) -> Result<LimitVerdict, Refusal> {
    let fields = value.fields(&LIMIT)?;
    Ok(LimitVerdict {
        limit: fields.required("limit", "\"limit\": \"site:example.com\"")?.parsed(one_limit)?,
        pause: fields.take("pause", |v| v.span(Spans::ANY))?,
        spent: fields.take("spent", |v| v.integer(AMOUNT))?,
    })
}
