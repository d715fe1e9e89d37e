//! Rows and lives of jobs, as `lua/machine/jobs.lua` writes them: what the two sides of the store must
//! agree on. A change of either is a change of the layout.

use serde::Deserialize;
use serde::de::IgnoredAny;
use tenure_core::copy::CopiedOrigin;
use tenure_core::flow::OnParentFailure;
use tenure_core::job::{JobState, Unique};
use tenure_core::names::{FlowName, ScheduleId};
use tenure_core::schedule::MadeBy;
use tenure_core::time::Moment;

use super::Malformed;
use super::flows::on_failure;
use super::jobs::{Shape, State, UniqueReply};
use super::lenient::Maybe;
use crate::lease_id::Held;

/// Bytes of a row before its id: shape (4), created at (7), arrival (6), bytes (4).
const NUMBERS: usize = 21;
const CREATED_AT: std::ops::Range<usize> = 4..11;
/// Bytes of a block's index for each row.
const INDEX_BYTES: usize = 8;

/// What is written once, at the push.
pub(super) struct Row<'a> {
    pub id: &'a str,
    pub created_at: u64,
    pub unique: Option<Unique>,
    /// The schedule that made it.
    pub made_by: Option<MadeBy>,
    /// What it belongs to.
    pub flow: Option<FlowName>,
    pub body: &'a [u8],
}

impl<'a> Row<'a> {
    /// Numbers; the id, the bucket and the length of the unique key on a line each; that key; the body.
    pub(super) fn read(row: &'a [u8]) -> Result<Self, Malformed> {
        const WRONG: Malformed = Malformed("the row of a job");
        let (numbers, rest) = row.split_at_checked(NUMBERS).ok_or(WRONG)?;
        let created_at =
            numbers[CREATED_AT].iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        Row::read_text(rest, created_at)
    }

    /// So many rows of a block: their texts are one, and the index tells where each ends, from the one before the
    /// first on, if there is one. All were pushed at one moment.
    pub(super) fn read_block(
        index: &[u8],
        texts: &'a [u8],
        many: usize,
        pushed_at: &[u8],
    ) -> Result<Vec<Result<Self, Malformed>>, Malformed> {
        const WRONG: Malformed = Malformed("the rows of a block");
        let created_at = pushed_at.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let mut ends = index.chunks_exact(INDEX_BYTES).map(|entry| {
            entry[..INDEX_BYTES / 2].iter().fold(0, |all, byte| all << 8 | usize::from(*byte))
        });
        let first = match index.len() / INDEX_BYTES {
            n if n == many => 0,
            n if n == many + 1 => ends.next().ok_or(WRONG)?,
            _ => return Err(WRONG),
        };
        let mut start = 0;
        let row = |end: usize| {
            let end = end.checked_sub(first).ok_or(WRONG)?;
            let text = texts.get(start..end).ok_or(WRONG)?;
            start = end;
            Row::read_text(text, created_at)
        };
        Ok(ends.map(row).collect())
    }

    /// So many rows as they are sent to be a block: their index, and their texts.
    pub(super) fn read_sent(
        sent: &'a [u8],
        many: usize,
        pushed_at: &[u8],
    ) -> Result<Vec<Result<Self, Malformed>>, Malformed> {
        let (index, texts) =
            sent.split_at_checked(many * INDEX_BYTES).ok_or(Malformed("the rows of a block"))?;
        Row::read_block(index, texts, many, pushed_at)
    }

    fn read_text(rest: &'a [u8], created_at: u64) -> Result<Self, Malformed> {
        const WRONG: Malformed = Malformed("the row of a job");
        let mut lines = rest.splitn(4, |byte| *byte == b'\n');
        let mut line = || {
            let line = lines.next().ok_or(WRONG)?;
            std::str::from_utf8(line).map_err(|_| WRONG)
        };
        let (id, _bucket, length) = (line()?, line()?, line()?);
        let rest = lines.next().ok_or(WRONG)?;
        let length = if length.is_empty() { 0 } else { length.parse().map_err(|_| WRONG)? };
        let (before, body) = rest.split_at_checked(length).ok_or(WRONG)?;
        let BeforeBody(unique, origin, flow) = match before {
            [] => BeforeBody::default(),
            before => rmp_serde::from_slice(before).map_err(|_| WRONG)?,
        };
        let (unique, made_by) = (unique.0.map(UniqueReply::read), origin.0.map(OriginReply::read));
        Ok(Row { id, created_at, unique, made_by, flow: flow.0, body })
    }
}

/// What stands before a body: the unique key of a job, the schedule that made it, its flow.
#[derive(Default, Deserialize)]
struct BeforeBody(Maybe<UniqueReply>, Maybe<OriginReply>, Maybe<FlowName>);

/// The schedule, the moment, and the era of the schedule then.
#[derive(Deserialize)]
pub(super) struct OriginReply(ScheduleId, Maybe<u64>, u64);

impl OriginReply {
    fn read(self) -> MadeBy {
        self.whole().by
    }

    /// With the era of the schedule then.
    pub(super) fn whole(self) -> CopiedOrigin {
        let by = MadeBy { id: self.0, at: self.1.0.map(Moment::from_us) };
        CopiedOrigin { by, era: self.2 }
    }
}

/// The lease that a job runs under: its fence, its holder, what it holds.
pub(super) struct LifeLease {
    pub fence: u64,
    pub holder: Option<String>,
    pub held: Held,
}

/// A lease's fields in their order, as `alphabet` names them. `first` is its first ttl if that was another, and
/// `begins` whether its job had never run.
#[derive(Deserialize)]
struct LeaseFields {
    holder: Maybe<String>,
    granted_at: u64,
    ttl: u64,
    deadline: Maybe<u64>,
    limits: Vec<(String, u64, u64)>,
    resources: Vec<(String, String)>,
    #[serde(rename = "request")]
    _request: IgnoredAny,
    #[serde(rename = "extended")]
    _extended: IgnoredAny,
    #[serde(rename = "again")]
    _again: IgnoredAny,
    #[serde(rename = "seen_at")]
    _seen_at: IgnoredAny,
    #[serde(default)]
    first: Maybe<u64>,
    #[serde(default, rename = "begins")]
    _begins: IgnoredAny,
}

impl LeaseFields {
    fn read(self, fence: u64) -> LifeLease {
        let LeaseFields { granted_at, ttl, .. } = self;
        let timeout = self.deadline.0.map_or(0, |deadline| deadline.saturating_sub(granted_at));
        let held = Held(self.first.0.unwrap_or(ttl), timeout, self.limits, self.resources);
        LifeLease { fence, holder: self.holder.0, held }
    }
}

const SHORT: Malformed = Malformed("the short life of a job");

/// A number in network order.
fn number(bytes: &[u8], at: std::ops::Range<usize>) -> Result<u64, Malformed> {
    let bytes = bytes.get(at).ok_or(SHORT)?;
    Ok(bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

/// What changes in a job's life.
pub(super) struct Life {
    pub run_at: u64,
    pub expires_at: Option<u64>,
    pub started_at: Option<u64>,
    pub finished_at: Option<u64>,
    pub lease: Option<LifeLease>,
    pub ended: u32,
    pub lost: u32,
    pub cancel: bool,
    pub error: Option<String>,
    /// How it stands to its parents, if it has any.
    pub kin: Option<KinFields>,
}

/// How a job stands to its parents; in their order, as `alphabet` names them.
#[derive(Deserialize)]
pub(super) struct KinFields {
    /// So many of them have not ended, or have not been told of yet.
    pub open: u32,
    #[serde(rename = "turn")]
    _turn: IgnoredAny,
    runs: bool,
    #[serde(rename = "above")]
    _above: IgnoredAny,
    pub parents: u32,
    #[serde(rename = "follows")]
    _follows: IgnoredAny,
}

impl KinFields {
    pub(super) fn on_failure(&self) -> OnParentFailure {
        on_failure(self.runs)
    }
}

/// Its fields in their order, as `alphabet` names them.
#[derive(Deserialize)]
struct LifeFields {
    state: State,
    #[serde(rename = "arrival")]
    _arrival: IgnoredAny,
    run_at: u64,
    expires_at: u64,
    #[serde(rename = "bytes")]
    _bytes: IgnoredAny,
    #[serde(rename = "shape")]
    _shape: IgnoredAny,
    fence: u64,
    #[serde(rename = "lease_expires_at")]
    _lease_expires_at: IgnoredAny,
    lease: Maybe<LeaseFields>,
    started_at: u64,
    #[serde(rename = "wait")]
    _wait: IgnoredAny,
    ended: u32,
    lost: u32,
    #[serde(rename = "released")]
    _released: IgnoredAny,
    cancel: bool,
    #[serde(rename = "keeps")]
    _keeps: IgnoredAny,
    #[serde(rename = "settles")]
    _settles: IgnoredAny,
    error: Maybe<String>,
    finished_at: u64,
    #[serde(rename = "kept_until")]
    _kept_until: IgnoredAny,
    #[serde(rename = "lane")]
    _lane: IgnoredAny,
    #[serde(rename = "has_key")]
    _has_key: IgnoredAny,
    #[serde(rename = "undelivered")]
    _undelivered: IgnoredAny,
    kin: Maybe<KinFields>,
    #[serde(rename = "ended_unsettled")]
    _ended_unsettled: IgnoredAny,
}

/// What the life of a job begins with that went the short way. Then come its arrival (6 bytes), fence (8),
/// row number (6) and bytes (4), its shape (4), and of one that runs its expiry, its grant, its deadline or
/// 0 (7 each), its ttl (5), the lengths of its holder's name and of its limits (2 each), that name and those
/// limits, unless they are those that its shape needs; of one that succeeded its grant and its end.
const SHORT_RUNNING: u8 = 1;
/// The same of a job whose row has a unique key that it holds until its end.
const SHORT_RUNNING_WITH_KEY: u8 = 3;
const SHORT_SUCCEEDED: u8 = 2;
/// Stands for the length of limits that are those which its shape needs.
const AS_NEEDED: usize = 65_535;

impl Life {
    /// The life of the job of this row.
    pub(super) fn read(life: &[u8], row: &Row<'_>, shape: &Shape) -> Result<Self, Malformed> {
        match life.first() {
            Some(&(SHORT_RUNNING | SHORT_RUNNING_WITH_KEY)) => {
                Life::short_running(life, row, shape)
            }
            Some(&SHORT_SUCCEEDED) => Ok(Life {
                ended: 1,
                started_at: Some(number(life, 29..36)?),
                finished_at: Some(number(life, 36..43)?),
                ..Life::of_new(row)
            }),
            _ => Life::packed(life),
        }
    }

    fn short_running(life: &[u8], row: &Row<'_>, shape: &Shape) -> Result<Self, Malformed> {
        let granted_at = number(life, 36..43)?;
        let timeout = number(life, 43..50)?.saturating_sub(granted_at);
        let length = |at| number(life, at).map(|n| usize::try_from(n).unwrap_or(0));
        let (name, limits) = (length(55..57)?, length(57..59)?);
        let named = life.get(59..59 + name);
        let limits = match limits {
            0 => Vec::new(),
            AS_NEEDED => {
                let needed = shape.limits_needed().into_iter();
                needed.map(|(name, weight, cost)| (name.to_string(), weight, cost)).collect()
            }
            _ => {
                let packed = life.get(59 + name..59 + name + limits).ok_or(SHORT)?;
                rmp_serde::from_slice(packed).map_err(|_| SHORT)?
            }
        };
        let held = Held(number(life, 50..55)?, timeout, limits, Vec::new());
        let holder = named.and_then(|name| std::str::from_utf8(name).ok()).ok_or(SHORT)?;
        let holder = (!holder.is_empty()).then(|| holder.to_owned());
        Ok(Life {
            lease: Some(LifeLease { fence: number(life, 7..15)?, holder, held }),
            started_at: Some(granted_at),
            ..Life::of_new(row)
        })
    }

    fn packed(life: &[u8]) -> Result<Self, Malformed> {
        let life: LifeFields =
            rmp_serde::from_slice(life).map_err(|_| Malformed("the life of a job"))?;
        let some = |number: u64| (number > 0).then_some(number);
        let lease = life.lease.0.filter(|_| life.state.0 == JobState::Running);
        Ok(Life {
            run_at: life.run_at,
            expires_at: some(life.expires_at),
            started_at: some(life.started_at),
            finished_at: some(life.finished_at),
            lease: lease.map(|lease| lease.read(life.fence)),
            ended: life.ended,
            lost: life.lost,
            cancel: life.cancel,
            error: life.error.0,
            kin: life.kin.0,
        })
    }

    /// That of a job which was pushed and is ready: its row says it all.
    pub(super) fn of_new(row: &Row<'_>) -> Self {
        Life {
            run_at: row.created_at,
            expires_at: None,
            started_at: None,
            finished_at: None,
            lease: None,
            ended: 0,
            lost: 0,
            cancel: false,
            error: None,
            kin: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(lines: &[u8]) -> Vec<u8> {
        let numbers = [0, 0, 0, 9, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4];
        [&numbers[..], lines].concat()
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let plain = row(b"a\n7\n\n0 4\nnull");
        let read = Row::read(&plain).unwrap();
        assert_eq!((read.id, read.created_at, read.body), ("a", 258, &b"0 4\nnull"[..]));
        assert!(read.unique.is_none());
        // Its third number is the byte that ends a line.
        let key = rmp_serde::to_vec(&(("k", "s", 10, "r"), false, "f")).unwrap();
        let lines = [b"a\n7\n", key.len().to_string().as_bytes(), b"\n", &key, b"body"].concat();
        let unique = row(&lines);
        let read = Row::read(&unique).unwrap();
        assert_eq!((read.unique.unwrap().key.as_str(), read.body), ("k", &b"body"[..]));
        assert_eq!(read.flow.unwrap().as_str(), "f");
    }

    /// Takes the names of a struct's fields, and reads nothing.
    struct Names(Vec<&'static str>);

    impl<'de> serde::Deserializer<'de> for &mut Names {
        type Error = serde::de::value::Error;

        fn deserialize_struct<V: serde::de::Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Self::Error> {
            self.0 = fields.to_vec();
            Err(serde::de::Error::custom("only names"))
        }
        fn deserialize_any<V: serde::de::Visitor<'de>>(
            self,
            _: V,
        ) -> Result<V::Value, Self::Error> {
            Err(serde::de::Error::custom("no struct"))
        }
        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    fn names_of<T: for<'de> Deserialize<'de>>() -> Vec<&'static str> {
        let mut names = Names(Vec::new());
        assert!(T::deserialize(&mut names).is_err());
        names.0
    }

    #[test]
    fn a_life_is_read_in_the_order_of_its_fields() {
        assert_eq!(names_of::<LifeFields>(), crate::alphabet::fields("LIFE"));
        assert_eq!(names_of::<LeaseFields>(), crate::alphabet::fields("LEASE"));
        assert_eq!(names_of::<KinFields>(), crate::alphabet::fields("KIN"));
    }

    #[test]
    fn what_is_no_row_is_not_read() {
        for lines in [&b""[..], b"a", b"a\n1\n", b"a\n1\n9\nx", b"a\n1\nx\n", b"a\n1\n1\n\xff"] {
            assert!(Row::read(&row(lines)).is_err(), "{lines:?}");
        }
        assert!(Row::read(b"short").is_err());
    }
}
