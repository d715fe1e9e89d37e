//! Needs of a job or a caller: as JSON, and in the form of the command line.

use std::borrow::Cow;

use super::fields::{ObjectShape, Value};
use super::words::{integer, phrases};
use crate::at::At;
use crate::bounded::{self, AMOUNT, COUNT, need_count};
use crate::bounds::{COUNT_MAX, NEEDS_MAX};
use crate::job::Need;
use crate::json::Document;
use crate::names::{LimitName, PoolName, ResourceId, Tag};
use crate::refusal::Refusal;
use crate::sentences::{NeedRefusal, cut};

static NEED: ObjectShape<8> = ObjectShape {
    what: "a need",
    fields: ["limit", "weight", "cost", "pool", "tag", "prefer", "id", "count"],
    answered: &[],
};

const FORM: &str = "\"limit\" or \"pool\": a need is {\"limit\": NAME} or {\"pool\": NAME}, such as {\"limit\": \"scrapy\"}";

/// Reads the needs of a job, a queue or a caller: at most 16, each name once.
pub(super) fn needs(value: Value<'_, '_>, least: usize) -> Result<Vec<Need>, Refusal> {
    let needs = value.each(least..=NEEDS_MAX, need)?;
    needs_distinct(&needs).map_err(|no| no.below(&value.at.to_string()))?;
    Ok(needs)
}

/// Refuses the same limit or the same pool twice; the pointer is `/INDEX` of the second.
pub fn needs_distinct(needs: &[Need]) -> Result<(), Refusal> {
    bounded::distinct(needs)
}

fn need(value: Value<'_, '_>) -> Result<Need, Refusal> {
    let fields = value.fields(&NEED)?;
    fields.not_both("limit", "pool")?;
    if let Some(limit) = fields.take("limit", |v| v.parsed(one_limit))? {
        fields.none_of(&["tag", "prefer", "id", "count"], "\"limit\"")?;
        let weight = fields.take("weight", |v| v.integer(COUNT))?.unwrap_or(1);
        let cost = fields.take("cost", |v| v.integer(AMOUNT))?.unwrap_or(1);
        return Ok(Need::Limit { limit, weight, cost });
    }
    let Some(pool) = fields.take("pool", |v| v.parsed(PoolName::parse))? else {
        return Err(fields.missing("limit", FORM));
    };
    fields.none_of(&["weight", "cost"], "\"pool\"")?;
    let tag = fields.take("tag", |v| v.parsed(Tag::parse))?;
    let prefer = fields.take("prefer", |v| v.parsed(ResourceId::parse))?;
    let id = fields.take("id", |v| v.parsed(ResourceId::parse))?;
    let count = fields.take("count", |v| v.integer(COUNT))?.unwrap_or(1);
    need_count(id.is_some(), count, &At::Member(&fields.at, "count"))?;
    Ok(Need::Pool { pool, tag, prefer, id, count })
}

/// A limit that can be held, so no template.
pub(super) fn one_limit(text: &str) -> Result<LimitName, Refusal> {
    let limit = LimitName::parse(text)?;
    bounded::one_of_needs(&limit)?;
    Ok(limit)
}

/// Reads one need in JSON, for the command line.
pub fn one_need_of_json(text: &str) -> Result<Need, Refusal> {
    let document = Document::parse(text.as_bytes()).map_err(|bad| bad.refusal_of("the need"))?;
    need(Value::body(&document))
}

/// Reads one need of the command line: `limit:NAME[,weight=N][,cost=N]`,
/// `pool:NAME[#TAG][,prefer=ID][,id=ID][,count=N]`, or JSON.
///
/// A refusal of the short forms has no pointer.
pub fn one_need(text: &str) -> Result<Need, Refusal> {
    if text.trim_start().starts_with('{') {
        return one_need_of_json(text);
    }
    let mut parts = text.split(',');
    // Even an empty text has a first part.
    let head = parts.next().unwrap_or_default();
    let mut options = NeedOptions::read(text, parts)?;
    let need = match head.split_once(':') {
        Some(("limit", name)) => Need::Limit {
            limit: one_limit(name)?,
            weight: options.count("weight", 1)?,
            cost: options.count("cost", 0)?,
        },
        Some(("pool", name)) => {
            let (name, tag) = match name.split_once('#') {
                Some((name, tag)) => (name, Some(Tag::parse(tag)?)),
                None => (name, None),
            };
            let prefer = options.take("prefer").map(|id| ResourceId::parse(&id)).transpose()?;
            let id = options.take("id").map(|id| ResourceId::parse(&id)).transpose()?;
            let count = options.count("count", 1)?;
            if id.is_some() && count > 1 {
                return Err(NeedRefusal::CountOptionWithId { shown: cut(text) }.into());
            }
            Need::Pool { pool: PoolName::parse(name)?, tag, prefer, id, count }
        }
        _ => return Err(NeedRefusal::NotANeed { shown: cut(text) }.into()),
    };
    options.end(head)?;
    Ok(need)
}

/// The `NAME=VALUE` parts of a need; each is taken once.
struct NeedOptions<'t> {
    left: Vec<(&'t str, &'t str)>,
}

impl<'t> NeedOptions<'t> {
    fn read(text: &str, parts: impl Iterator<Item = &'t str>) -> Result<Self, Refusal> {
        let mut left: Vec<(&str, &str)> = Vec::new();
        for part in parts {
            let (shown, option) = (cut(text), cut(part));
            let Some((name, value)) = part.split_once('=') else {
                return Err(NeedRefusal::OptionNotAPair { shown, option }.into());
            };
            if left.iter().any(|(other, _)| *other == name) {
                return Err(NeedRefusal::OptionTwice { shown, option }.into());
            }
            left.push((name, value));
        }
        Ok(NeedOptions { left })
    }

    fn take(&mut self, name: &str) -> Option<Cow<'t, str>> {
        let at = self.left.iter().position(|(other, _)| *other == name)?;
        Some(Cow::Borrowed(self.left.swap_remove(at).1))
    }

    fn count(&mut self, name: &str, least: i64) -> Result<u32, Refusal> {
        let Some(text) = self.take(name) else { return Ok(1) };
        let number = integer(&text, least..=COUNT_MAX).map_err(|no| no.about(name))?;
        // COUNT_MAX fits.
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    }

    fn end(self, head: &str) -> Result<(), Refusal> {
        let Some((name, _)) = self.left.first() else { return Ok(()) };
        let (kind, known): (&'static str, &[&'static str]) = if head.starts_with("limit:") {
            ("limit", &["weight", "cost"])
        } else {
            ("pool", &["prefer", "id", "count"])
        };
        let known = phrases(known.iter().copied());
        Err(NeedRefusal::OptionUnknown { shown: cut(name), kind: kind.into(), known }.into())
    }
}
