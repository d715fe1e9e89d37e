//! The request to a gauge's address, and the count in its answer.

use hyper::http::uri::{PathAndQuery, Uri};
use serde_json::Value;
use tenure_core::bounds::GAUGE_SUM_MAX;
use tenure_core::gauge::{GaugeAddress, GaugeResult, GaugeSource};
use tenure_core::percent;

use super::get::ReadFailed;

/// The address, and the path to request there.
pub(super) fn question(source: &GaugeSource) -> Result<(&GaugeAddress, PathAndQuery), ReadFailed> {
    let (address, list) = match source {
        GaugeSource::Count { url, .. } => (url, None),
        GaugeSource::Scrapyd { scrapyd, project } => (scrapyd, Some(project)),
    };
    let uri: Uri = address.without_login().parse().map_err(|_| ReadFailed::Address)?;
    let mut path = uri.path().to_owned();
    let mut query: Vec<String> = uri.query().map(str::to_owned).into_iter().collect();
    if let Some(project) = list {
        path = format!("{}/listjobs.json", path.trim_end_matches('/'));
        query.extend(project.as_ref().map(|name| format!("project={}", percent::encoded(name))));
    }
    let text = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
    Ok((address, text.parse().map_err(|_| ReadFailed::Address)?))
}

/// The count in an answer.
pub(super) fn counted(source: &GaugeSource, body: &[u8]) -> Result<GaugeResult, ReadFailed> {
    let answer: Value = serde_json::from_slice(body).map_err(|_| ReadFailed::NotJson)?;
    match source {
        GaugeSource::Count { count, .. } => {
            let numbers = count.iter().map(|pointer| {
                // `3.0` and `1e2` do not count as whole numbers.
                let number = answer.pointer(pointer).and_then(Value::as_u64);
                number.ok_or_else(|| ReadFailed::NoNumber(pointer.clone()))
            });
            let numbers = numbers.collect::<Result<Vec<u64>, ReadFailed>>()?;
            let sum = numbers.into_iter().fold(0, u64::saturating_add);
            Ok(GaugeResult::Sum(sum.min(GAUGE_SUM_MAX)))
        }
        GaugeSource::Scrapyd { .. } => {
            let status = answer.get("status").and_then(Value::as_str).unwrap_or_default();
            if status != "ok" {
                return Err(ReadFailed::NotOk(status.chars().take(20).collect()));
            }
            let mut ids = listed(&answer, "pending")?;
            ids.append(&mut listed(&answer, "running")?);
            Ok(GaugeResult::Ids(ids))
        }
    }
}

fn listed(answer: &Value, list: &'static str) -> Result<Vec<String>, ReadFailed> {
    let runs = answer.get(list).and_then(Value::as_array).ok_or(ReadFailed::NoIds(list))?;
    let id = |run: &Value| run.get("id").and_then(Value::as_str).map(str::to_owned);
    runs.iter().map(id).collect::<Option<_>>().ok_or(ReadFailed::NoIds(list))
}
