//! Arguments of the calls by which gauges are claimed and read.

use serde::Serialize;
use tenure_core::bounds::GAUGE_SUM_MAX;
use tenure_core::gauge::{GaugeResult, Reading};

use super::items::moment;

/// Of `claim_gauges`: for whom, and all feeds of the process, which read as well.
#[derive(Serialize)]
pub(crate) struct ClaimGaugesArgs<'a> {
    pub reader: &'a str,
    pub readers: &'a [&'a str],
}

/// Of `take_reading`: one of `sum`, `ids` and `why`.
#[derive(Serialize)]
pub(crate) struct ReadingArgs<'a> {
    name: &'a str,
    number: u64,
    asked_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ids: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

impl<'a> ReadingArgs<'a> {
    pub(crate) fn of(reading: &'a Reading) -> Self {
        let Reading { limit, number, asked_at, result } = reading;
        let (mut sum, mut ids, mut why) = (None, None, None);
        match result {
            // The server's numbers are exact up to this.
            GaugeResult::Sum(read) => sum = Some((*read).min(GAUGE_SUM_MAX)),
            GaugeResult::Ids(read) => ids = Some(read.as_slice()),
            GaugeResult::Failed(text) => why = Some(text.as_str()),
        }
        ReadingArgs {
            name: limit.as_str(),
            number: *number,
            asked_at: moment(*asked_at),
            sum,
            ids,
            why,
        }
    }
}
