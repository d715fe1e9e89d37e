//! Needs of a job or a caller: as JSON, and in the form of the command line.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use super::fields::Value;
use super::forms::{Form, List, Name, ValueKind, Whole};
use super::object::{Variant, object};
use super::words::{integer, phrases};
use crate::at::At;
use crate::bounded::{AMOUNT, COUNT, no_template};
use crate::bounds::{COUNT_MAX, NEEDS_MAX};
use crate::job::Need;
use crate::json::Document;
use crate::names::{LimitName, PoolName, ResourceId, Tag};
use crate::refusal::Refusal;
use crate::sentences::{BodyRefusal, NeedRefusal, cut};

object! {
    NeedFields "a need" "Need"
    variants &[
        Variant { name: "LimitNeed", own: &["limit", "weight", "cost"], required: &["limit"], says: None },
        Variant {
            name: "PoolNeed",
            own: &["pool", "tag", "prefer", "id", "count"],
            required: &["pool"],
            says: None,
        },
    ];
    fields {
        limit: LimitName = HeldLimit, optional, "The limit that is held, never a template. Excludes pool.";
        weight: u32 = Whole(COUNT), optional,
            "How many permits of the limit are held, 1 to 1,000,000,000; 1 if absent.";
        cost: u32 = Whole(AMOUNT), optional, "How many rate tokens are taken, 0 to 1,000,000,000; 1 if absent.";
        pool: PoolName = Name(PoolName::parse, Some(PoolName::BYTES_MAX)), optional,
            "The pool of which resources are held. Excludes limit.";
        tag: Tag = Name(Tag::parse, Some(Tag::BYTES_MAX)), optional, "Only resources with this tag.";
        prefer: ResourceId = Name(ResourceId::parse, Some(ResourceId::BYTES_MAX)), optional,
            "The id of the resource that is taken if it is free.";
        id: ResourceId = Name(ResourceId::parse, Some(ResourceId::BYTES_MAX)), optional,
            "The id of the only resource that will do.";
        count: u32 = Whole(COUNT), optional, "How many different resources are held, 1 or more; 1 if absent.";
    }
}

const EXAMPLE: &str = "\"limit\" or \"pool\": a need is {\"limit\": NAME} or {\"pool\": NAME}, such as {\"limit\": \"scrapy\"}";

impl Form<Need> for NeedFields {
    fn read(&self, value: Value<'_, '_>) -> Result<Need, Refusal> {
        let fields = value.fields(Self::SHAPE)?;
        fields.not_both("limit", "pool")?;
        if let Some(limit) = fields.read(&Self::limit())? {
            fields.none_of(&["tag", "prefer", "id", "count"], "\"limit\"")?;
            let weight = fields.read(&Self::weight())?.unwrap_or(1);
            let cost = fields.read(&Self::cost())?.unwrap_or(1);
            return Ok(Need::Limit { limit, weight, cost });
        }
        let Some(pool) = fields.read(&Self::pool())? else {
            return Err(fields.missing("limit", EXAMPLE));
        };
        fields.none_of(&["weight", "cost"], "\"pool\"")?;
        let tag = fields.read(&Self::tag())?;
        let prefer = fields.read(&Self::prefer())?;
        let id = fields.read(&Self::id())?;
        let count = fields.read(&Self::count())?.unwrap_or(1);
        one_of_id(id.is_some(), count, &fields.at)?;
        Ok(Need::Pool { pool, tag, prefer, id, count })
    }
    fn check(&self, value: &Need, at: &At<'_>) -> Result<(), Refusal> {
        match value {
            Need::Limit { limit, weight, cost } => {
                Self::limit().check(limit, at)?;
                Self::weight().check(weight, at)?;
                Self::cost().check(cost, at)
            }
            Need::Pool { id, count, pool: _, tag: _, prefer: _ } => {
                Self::count().check(count, at)?;
                one_of_id(id.is_some(), *count, at)
            }
        }
    }
    fn write<S: Serializer>(&self, value: &Need, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Object("Need")
    }
}

/// A need with an id names one resource, so its count must be 1.
fn one_of_id(has_id: bool, count: u32, of: &At<'_>) -> Result<(), Refusal> {
    if has_id && count > 1 {
        return Err(At::Member(of, "count").refuse(BodyRefusal::CountWithId));
    }
    Ok(())
}

/// The needs of a job, a queue or a caller: this many at least, at most 16, each name once.
pub(super) struct Needs(pub usize);

impl Needs {
    fn list(&self) -> List<NeedFields> {
        List(self.0..=NEEDS_MAX, NeedFields)
    }
}

impl Form<Vec<Need>> for Needs {
    fn read(&self, value: Value<'_, '_>) -> Result<Vec<Need>, Refusal> {
        let needs: Vec<Need> = self.list().read(value)?;
        needs_distinct(&needs).map_err(|no| no.below(&value.at.to_string()))?;
        Ok(needs)
    }
    fn check(&self, value: &Vec<Need>, at: &At<'_>) -> Result<(), Refusal> {
        self.list().check(value, at)?;
        needs_distinct(value).map_err(|no| no.below(&at.to_string()))
    }
    fn write<S: Serializer>(&self, value: &Vec<Need>, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
    fn kind(&self) -> ValueKind {
        Form::<Vec<Need>>::kind(&self.list())
    }
}

/// Refuses the same limit or the same pool twice; the pointer is `/INDEX` of the second.
pub fn needs_distinct(needs: &[Need]) -> Result<(), Refusal> {
    for (index, need) in needs.iter().enumerate() {
        let same = |other: &Need| match (need, other) {
            (Need::Limit { limit: a, .. }, Need::Limit { limit: b, .. }) => a == b,
            (Need::Pool { pool: a, .. }, Need::Pool { pool: b, .. }) => a == b,
            (Need::Limit { .. }, Need::Pool { .. }) | (Need::Pool { .. }, Need::Limit { .. }) => {
                false
            }
        };
        if needs[..index].iter().any(same) {
            let no: Refusal = match need {
                Need::Limit { limit, .. } => NeedRefusal::LimitTwice { limit: limit.clone() },
                Need::Pool { pool, .. } => NeedRefusal::PoolTwice { pool: pool.clone() },
            }
            .into();
            return Err(no.at(format!("/{index}")));
        }
    }
    Ok(())
}

/// A limit that can be held, so no template.
pub(super) struct HeldLimit;

impl Form<LimitName> for HeldLimit {
    fn read(&self, value: Value<'_, '_>) -> Result<LimitName, Refusal> {
        value.parsed(one_limit)
    }
    fn check(&self, value: &LimitName, at: &At<'_>) -> Result<(), Refusal> {
        at.here(no_template(value))
    }
    fn write<S: Serializer>(&self, value: &LimitName, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Text(Some(LimitName::BYTES_MAX))
    }
}

/// Reads the name of a limit that can be held.
pub(super) fn one_limit(text: &str) -> Result<LimitName, Refusal> {
    let limit = LimitName::parse(text)?;
    no_template(&limit)?;
    Ok(limit)
}

/// Reads one need in JSON, for the command line.
pub fn one_need_of_json(text: &str) -> Result<Need, Refusal> {
    let document = Document::parse(text.as_bytes()).map_err(|bad| bad.refusal_of("the need"))?;
    NeedFields.read(Value::body(&document))
}

/// In the short form of the command line, as [`one_need`] reads it.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |name: &str, n: u32| match n {
            1 => String::new(),
            n => format!(",{name}={n}"),
        };
        match self {
            Need::Limit { limit, weight, cost } => {
                write!(f, "limit:{limit}{}{}", counted("weight", *weight), counted("cost", *cost))
            }
            Need::Pool { pool, tag, prefer, id, count } => {
                write!(f, "pool:{pool}")?;
                if let Some(tag) = tag {
                    write!(f, "#{tag}")?;
                }
                for (name, id) in [("prefer", prefer), ("id", id)] {
                    if let Some(id) = id {
                        write!(f, ",{name}={id}")?;
                    }
                }
                f.write_str(&counted("count", *count))
            }
        }
    }
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
