//! The gauge of a limit: made from the options, and shown with its last reading. Its address may hold a password, which
//! no message shows.

use serde_json::{Map, Value, json};
use tenure_core::decode;
use tenure_core::gauge::{Gauge, GaugeSource, GaugeView, OnStale};
use tenure_core::requests::Patch;
use tenure_core::time::Moment;

use crate::args::gauges::GaugeArgs;
use crate::exit::Failure;
use crate::json_args::{address, usage};
use crate::output::page::Page;
use crate::output::table::when;

/// The setting. Its errors are in the words of the API.
pub fn setting(args: &GaugeArgs) -> Result<Patch<Box<Gauge>>, Failure> {
    let mut gauge = Map::new();
    match (args.gauge.as_deref(), args.gauge_scrapyd.as_deref()) {
        (None, None) => return Ok(Patch::Keep),
        (Some("none"), _) => return Ok(Patch::Reset),
        (Some(text), _) => {
            gauge.insert("url".to_owned(), json!(address(text)?));
            gauge.insert("count".to_owned(), json!(args.gauge_count));
        }
        (None, Some(text)) => drop(gauge.insert("scrapyd".to_owned(), json!(address(text)?))),
    }
    for (name, text) in [
        ("project", &args.gauge_project),
        ("every", &args.gauge_every),
        ("lag", &args.gauge_lag),
        ("stale", &args.gauge_stale),
        ("on_stale", &args.gauge_on_stale),
    ] {
        if let Some(text) = text {
            gauge.insert(name.to_owned(), json!(text));
        }
    }
    decode::gauge(&Value::Object(gauge).to_string())
        .map(|gauge| Patch::Set(Box::new(gauge)))
        .map_err(|no| usage("--gauge", &no))
}

/// Where work outside is counted, and how reading it goes.
pub fn show(page: &mut Page, view: &GaugeView, now: Moment) {
    let Gauge { source, every, lag, stale, on_stale } = &view.gauge;
    let place = match source {
        GaugeSource::Count { url, count } => format!("{url} at {}", count.join(" + ")),
        GaugeSource::Scrapyd { scrapyd, project: None } => format!("scrapyd {scrapyd}"),
        GaugeSource::Scrapyd { scrapyd, project: Some(project) } => {
            format!("scrapyd {scrapyd}, project {project}")
        }
    };
    let then = match on_stale {
        OnStale::Keep => "kept",
        OnStale::Hold => "held",
    };
    page.field("gauge", place)
        .field("", format!("every {every}, lag {lag}, {then} when stale after {stale}"));
    let reading = view.reading.clone().unwrap_or_default();
    let read = match (reading.asked_at, reading.sum) {
        (Some(at), Some(sum)) => format!("{sum}, {}", when(at, now)),
        _ => "not yet".to_owned(),
    };
    page.field("last reading", read);
    if let (Some(at), Some(error)) = (reading.failed_at, reading.error) {
        page.field("failed", format!("{}: {error}", when(at, now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(gauge: &str) -> GaugeArgs {
        GaugeArgs { gauge: Some(gauge.to_owned()), ..GaugeArgs::default() }
    }

    #[test]
    fn a_gauge_is_kept_taken_away_or_set_whole() {
        assert_eq!(setting(&GaugeArgs::default()).unwrap(), Patch::Keep);
        assert_eq!(setting(&said("none")).unwrap(), Patch::Reset);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "http://me:geheim@host/load\n").unwrap();
        let of_file = format!("@{}", file.path().display());
        let args = GaugeArgs { gauge_count: vec!["/n".to_owned()], ..said(&of_file) };
        let Patch::Set(gauge) = setting(&args).unwrap() else { panic!("it is set") };
        assert_eq!(format!("{gauge:?}").matches("geheim").count(), 0);
        let no = setting(&said("http://me:geheim@host")).unwrap_err();
        assert_eq!(no.code, 2);
        assert!(!format!("{no:?}").contains("geheim"), "{no:?}");
    }
}
