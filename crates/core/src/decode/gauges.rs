//! Gauges of limits: the address at which work outside is counted, and its settings.

use serde::ser::{SerializeMap, Serializer};

use super::fields::{Fields, Value};
use super::forms::{Alias, Duration, Form, List, Name, Text, ValueKind, Words};
use super::object::{Call, Part, Variant, object};
use crate::at::At;
use crate::bounded::Spans;
use crate::bounds::{
    GAUGE_EVERY_US_DEFAULT, GAUGE_LAG_US_DEFAULT, GAUGE_POINTER_BYTES_MAX, GAUGE_POINTERS_MAX,
    NAME_BYTES_MAX,
};
use crate::gauge::{
    BadAddress, Gauge, GaugeAddress, GaugeSource, GaugeView, OnStale, default_stale, fresh,
};
use crate::refusal::Refusal;
use crate::sentences::LimitRefusal;
use crate::time::Span;
use crate::words::Worded as _;

object! {
    GaugeFields "a gauge" "Gauge"
    answered GaugeView;
    whole Gauge;
    rule stale_long_enough;
    variants &[
        Variant { name: "CountGauge", own: &["url", "count"], required: &["url", "count"], says: None },
        Variant { name: "ScrapydGauge", own: &["scrapyd", "project"], required: &["scrapyd"], says: None },
    ];
    fields {
        every: Span = Duration(Spans::GAUGE_EVERY), or Span::from_us(GAUGE_EVERY_US_DEFAULT),
            "How often it is read, 500ms to 1h; 2s if absent.";
        lag: Span = Duration(Spans::GAUGE_LAG), or Span::from_us(GAUGE_LAG_US_DEFAULT),
            "How long a run of ours may take to appear in the count, at most 1h; 10s if absent.";
        on_stale: OnStale = Alias("OnStale", Words("what holds on a stale reading", OnStale::WORDS)), default,
            "What holds once the reading is stale: keep (the default) goes on with the last value, hold grants nothing more.";
    }
    part stale: StalePart {
        stale: Span = Duration(Spans::GAUGE_STALE), optional,
            "How old the last reading may become, at most 1d and at least what is fresh; 30s if absent, or longer for a slow gauge.";
    }
    part source: SourcePart {
        url: GaugeAddress = ADDRESS, optional,
            "The address that a GET asks for JSON, at most 2 KiB; shown without its login and query. Excludes scrapyd.";
        count: Vec<String> = List(1..=GAUGE_POINTERS_MAX, Pointer), optional,
            "JSON pointers (RFC 6901) to the whole numbers that are added, 1 to 16, each of at most 256 bytes.";
        scrapyd: GaugeAddress = ADDRESS, optional,
            "The address of a scrapyd, whose listjobs.json is read; shown without its login. Excludes url and count.";
        project: String = Text(NAME_BYTES_MAX), nullable, "The one scrapyd project that counts; all if absent.";
    }
}
const ADDRESS: Name<GaugeAddress> = Name(address, None);

/// The `stale` of a gauge; without it, the one that fits its `every`.
struct StalePart;

impl Part<Span> for StalePart {
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<Span, Refusal> {
        if let Some(stale) = fields.read(&GaugeFields::stale())? {
            return Ok(stale);
        }
        let every = fields.read(&GaugeFields::every())?;
        Ok(default_stale(every.unwrap_or(Span::from_us(GAUGE_EVERY_US_DEFAULT))))
    }
    fn check(&self, value: &Span, of: &At<'_>) -> Result<(), Refusal> {
        GaugeFields::stale().check(value, of)
    }
    fn write<M: SerializeMap>(&self, value: &Span, map: &mut M) -> Result<(), M::Error> {
        GaugeFields::stale().put(value, map)
    }
}

/// The source of a gauge's count: `url` and `count`, or `scrapyd` and `project`.
struct SourcePart;

impl Part<GaugeSource> for SourcePart {
    fn read<const N: usize>(&self, fields: &Fields<'_, '_, N>) -> Result<GaugeSource, Refusal> {
        fields.not_both("url", "scrapyd")?;
        if let Some(scrapyd) = fields.read(&GaugeFields::scrapyd())? {
            fields.none_of(&["count"], "\"scrapyd\"")?;
            let project = fields.read(&GaugeFields::project())?;
            return Ok(GaugeSource::Scrapyd { scrapyd, project });
        }
        let url = fields.read_required(&GaugeFields::url(), "\"url\": \"http://HOST/load\"")?;
        fields.none_of(&["project"], "\"url\"")?;
        let count = fields.read_required(&GaugeFields::count(), "\"count\": [\"/running\"]")?;
        Ok(GaugeSource::Count { url, count })
    }
    fn check(&self, value: &GaugeSource, of: &At<'_>) -> Result<(), Refusal> {
        match value {
            GaugeSource::Scrapyd { project, scrapyd: _ } => {
                GaugeFields::project().check_given(project, of)
            }
            GaugeSource::Count { count, url: _ } => GaugeFields::count().check(count, of),
        }
    }
    /// The address is sent whole: the server must reach it.
    fn write<M: SerializeMap>(&self, value: &GaugeSource, map: &mut M) -> Result<(), M::Error> {
        match value {
            GaugeSource::Scrapyd { scrapyd, project } => {
                GaugeFields::scrapyd().put(scrapyd, map)?;
                GaugeFields::project().put_given(project, map)
            }
            GaugeSource::Count { url, count } => {
                GaugeFields::url().put(url, map)?;
                GaugeFields::count().put(count, map)
            }
        }
    }
}

/// Reads a gauge in JSON, as the command line takes it.
pub fn gauge(text: &str) -> Result<Gauge, Refusal> {
    Gauge::of_body((), text.as_bytes())
}

/// A fresh reading must never be stale.
fn stale_long_enough(gauge: &Gauge, at: &At<'_>) -> Result<(), Refusal> {
    let least = fresh(gauge.every);
    if gauge.stale < least {
        return Err(At::Member(at, "stale").refuse(LimitRefusal::GaugeStaleTooShort { least }));
    }
    Ok(())
}

/// Reads the address of a gauge. A refusal shows nothing of it.
fn address(text: &str) -> Result<GaugeAddress, Refusal> {
    GaugeAddress::parse(text)
        .map_err(|BadAddress(why)| LimitRefusal::GaugeAddressUnusable { why: why.into() }.into())
}

fn well_formed(pointer: &str) -> Result<(), Refusal> {
    let escapes = pointer.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    if (pointer.is_empty() || pointer.starts_with('/')) && escapes {
        return Ok(());
    }
    Err(LimitRefusal::GaugePointerMalformed.into())
}

/// A pointer of RFC 6901; the empty one is the whole document.
struct Pointer;

impl Form<String> for Pointer {
    fn read(&self, value: Value<'_, '_>) -> Result<String, Refusal> {
        let text = value.short(GAUGE_POINTER_BYTES_MAX)?;
        value.at.here(well_formed(&text)).map(|()| text)
    }
    fn check(&self, value: &String, at: &At<'_>) -> Result<(), Refusal> {
        at.text(value, GAUGE_POINTER_BYTES_MAX)?;
        at.here(well_formed(value))
    }
    fn write<S: Serializer>(&self, value: &String, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value)
    }
    fn kind(&self) -> ValueKind {
        ValueKind::Text(Some(GAUGE_POINTER_BYTES_MAX))
    }
}
