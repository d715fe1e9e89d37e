//! Gauges of limits: the address at which work outside is counted, and its settings.

use super::fields::{Fields, ObjectShape, Value, document};
use crate::bounded::{Spans, stale_long_enough};
use crate::bounds::{
    GAUGE_EVERY_US_DEFAULT, GAUGE_LAG_US_DEFAULT, GAUGE_POINTER_BYTES_MAX, GAUGE_POINTERS_MAX,
    NAME_BYTES_MAX,
};
use crate::gauge::{BadAddress, Gauge, GaugeAddress, GaugeSource, OnStale, default_stale};
use crate::refusal::Refusal;
use crate::sentences::LimitRefusal;
use crate::time::Span;

static GAUGE: ObjectShape<8> = ObjectShape {
    what: "a gauge",
    fields: ["url", "count", "scrapyd", "project", "every", "lag", "stale", "on_stale"],
    answered: &["reading"],
};

/// Reads a gauge in JSON, as the command line takes it.
pub fn gauge(text: &str) -> Result<Gauge, Refusal> {
    let document = document(text.as_bytes())?;
    gauge_of(Value::body(&document))
}

pub(super) fn gauge_of(value: Value<'_, '_>) -> Result<Gauge, Refusal> {
    let fields = value.fields(&GAUGE)?;
    let source = source(&fields)?;
    let every = fields.take("every", |v| v.span(Spans::GAUGE_EVERY))?;
    let every = every.unwrap_or(Span::from_us(GAUGE_EVERY_US_DEFAULT));
    let lag = fields.take("lag", |v| v.span(Spans::GAUGE_LAG))?;
    let stale = fields.take("stale", |v| v.span(Spans::GAUGE_STALE))?;
    let words = [("keep", OnStale::Keep), ("hold", OnStale::Hold)];
    let on_stale =
        fields.take("on_stale", |v| v.one_of("what holds on a stale reading", &words))?;
    let gauge = Gauge {
        source,
        every,
        lag: lag.unwrap_or(Span::from_us(GAUGE_LAG_US_DEFAULT)),
        stale: stale.unwrap_or(default_stale(every)),
        on_stale: on_stale.unwrap_or_default(),
    };
    stale_long_enough(&gauge, &fields.at)?;
    Ok(gauge)
}

fn source<const N: usize>(fields: &Fields<'_, '_, N>) -> Result<GaugeSource, Refusal> {
    fields.not_both("url", "scrapyd")?;
    if let Some(scrapyd) = fields.take("scrapyd", |v| v.parsed(address))? {
        fields.none_of(&["count"], "\"scrapyd\"")?;
        let project = fields.take("project", |v| v.short(NAME_BYTES_MAX))?;
        return Ok(GaugeSource::Scrapyd { scrapyd, project });
    }
    let url = fields.required("url", "\"url\": \"http://HOST/load\"")?.parsed(address)?;
    fields.none_of(&["project"], "\"url\"")?;
    let count = fields.required("count", "\"count\": [\"/running\"]")?;
    let count = count.each(1..=GAUGE_POINTERS_MAX, |pointer| {
        pointer.short(GAUGE_POINTER_BYTES_MAX)?;
        pointer.parsed(json_pointer)
    })?;
    Ok(GaugeSource::Count { url, count })
}

/// Reads the address of a gauge. A refusal shows nothing of it.
fn address(text: &str) -> Result<GaugeAddress, Refusal> {
    GaugeAddress::parse(text)
        .map_err(|BadAddress(why)| LimitRefusal::GaugeAddressUnusable { why: why.into() }.into())
}

/// Reads a pointer of RFC 6901; the empty one is the whole document.
fn json_pointer(text: &str) -> Result<String, Refusal> {
    let escapes = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    if (text.is_empty() || text.starts_with('/')) && escapes {
        Ok(text.to_owned())
    } else {
        Err(LimitRefusal::GaugePointerMalformed.into())
    }
}
