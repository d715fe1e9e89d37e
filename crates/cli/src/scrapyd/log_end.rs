//! Reads the end of a spider's log: why it closed, and what it counted.
//!
//! Pure. A log is text that anyone may have written; a missing part is not made up.

use serde_json::{Map, Number, Value, json};
use tenure::SettleOutcome;
use tenure_core::secret::Json;

/// The line that a spider writes last.
const CLOSED: &str = "Spider closed (";
const STATS: &str = "Dumping Scrapy stats:";
/// The reasons of a spider that ended as it was set up to: by itself, or at a bound of the amount of work that the user
/// gave it.
const DONE: [&str; 4] =
    ["finished", "closespider_itemcount", "closespider_pagecount", "closespider_timeout"];
/// Somebody asked the spider to stop.
const SHUTDOWN: &str = "shutdown";
/// Characters of the last line that are shown.
const SHOWN_CHARS: usize = 300;
/// Most numbers of a summary.
const STATS_MAX: usize = 200;

/// The end of a log, understood.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LogEnd {
    /// Why the spider closed; `None`: the log does not say it.
    pub reason: Option<String>,
    /// Numbers that it counted.
    stats: Map<String, Value>,
    last_line: String,
}

impl LogEnd {
    /// Reads the last bytes of a log; the first line may be cut.
    pub fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let stats = text.rfind(STATS).map(|at| &text[at..]).unwrap_or_default();
        let mut reason = None;
        for line in text.lines() {
            if let Some((_, after)) = line.rsplit_once(CLOSED)
                && let Some(word) = after.trim_end().strip_suffix(')')
            {
                reason = Some(word.to_owned());
            }
        }
        let last_line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        LogEnd {
            reason: reason.or_else(|| named(stats, "finish_reason")),
            stats: numbers(stats),
            last_line: last_line.trim().chars().take(SHOWN_CHARS).collect(),
        }
    }

    /// Whether it was asked to stop before it was done.
    pub fn was_shut_down(&self) -> bool {
        self.reason.as_deref() == Some(SHUTDOWN)
    }

    /// The outcome of a spider whose log has this end.
    pub fn outcome(&self) -> SettleOutcome {
        let Some(reason) = &self.reason else {
            return SettleOutcome::failed(self.silent());
        };
        if !DONE.contains(&reason.as_str()) {
            let shown: String = reason.chars().take(SHOWN_CHARS).collect();
            return SettleOutcome::failed(format!(
                "the spider closed with finish_reason {shown:?}"
            ));
        }
        let mut result = Map::new();
        result.insert("finish_reason".to_owned(), json!(reason));
        if !self.stats.is_empty() {
            let items = self.stats.get("item_scraped_count").cloned().unwrap_or(json!(0));
            result.insert("items".to_owned(), items);
            result.insert("stats".to_owned(), Value::Object(self.stats.clone()));
        }
        SettleOutcome::from(tenure_core::lease::Ending::Succeeded {
            result: Json::of(&Value::Object(result)).ok(),
        })
    }

    /// Why a log without a reason is a failure.
    fn silent(&self) -> String {
        let head = "the spider ended, but its log does not say how: it was killed, or its LOG_LEVEL is above INFO";
        match self.last_line.as_str() {
            "" => head.to_owned(),
            line => format!("{head}; its last line: {line}"),
        }
    }
}

/// The lines of Scrapy's statistics, as pairs of a name and a value in Python's letters.
fn pairs(stats: &str) -> impl Iterator<Item = (&str, &str)> {
    stats.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches('{');
        let (name, value) = line.strip_prefix('\'')?.split_once("': ")?;
        Some((name, value.trim_end_matches(['}', ','])))
    })
}

fn named(stats: &str, wanted: &str) -> Option<String> {
    let (_, value) = pairs(stats).find(|(name, _)| *name == wanted)?;
    Some(value.strip_prefix('\'')?.strip_suffix('\'')?.to_owned())
}

fn numbers(stats: &str) -> Map<String, Value> {
    let number = |(name, value): (&str, &str)| {
        let number = match value.parse::<i64>() {
            Ok(whole) => Number::from(whole),
            Err(_) => Number::from_f64(value.parse().ok()?)?,
        };
        Some((name.to_owned(), Value::Number(number)))
    };
    pairs(stats).filter_map(number).take(STATS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::lease::Ending;

    const FINISHED: &str = "\
2026-12-01 08:00:00 [scrapy.core.engine] INFO: Closing spider (finished)
2026-12-01 08:00:00 [scrapy.statscollectors] INFO: Dumping Scrapy stats:
{'downloader/request_bytes': 226,
 'elapsed_time_seconds': 0.25,
 'finish_reason': 'finished',
 'finish_time': datetime.datetime(2026, 12, 1, 8, 0, 0, 5, tzinfo=datetime.timezone.utc),
 'item_scraped_count': 12,
 'start_time': datetime.datetime(2026, 12, 1, 8, 0, 0, 1)}
2026-12-01 08:00:00 [scrapy.core.engine] INFO: Spider closed (finished)
";

    fn result(log: &str) -> Value {
        match LogEnd::read(log.as_bytes()).outcome().ending {
            Ending::Succeeded { result } => serde_json::from_str(result.unwrap().text()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn error(log: &str) -> String {
        match LogEnd::read(log.as_bytes()).outcome().ending {
            Ending::Failed { error, last: false, .. } => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_finished_spider_succeeded_with_what_it_counted() {
        let stats = json!({"downloader/request_bytes":226,"elapsed_time_seconds":0.25,"item_scraped_count":12});
        assert_eq!(result(FINISHED), json!({"finish_reason":"finished","items":12,"stats":stats}));
        let bare = "x INFO: Spider closed (closespider_itemcount)\n";
        assert_eq!(result(bare), json!({"finish_reason":"closespider_itemcount"}));
        let quiet =
            "INFO: Dumping Scrapy stats:\n{'finish_reason': 'finished',\n 'response_count': 3}\n";
        let stats = json!({"response_count":3});
        assert_eq!(result(quiet), json!({"finish_reason":"finished","items":0,"stats":stats}));
    }

    #[test]
    fn every_other_reason_is_a_failure_that_names_it() {
        for reason in
            ["shutdown", "cancelled", "closespider_errorcount", "memusage_exceeded", "mine"]
        {
            let log = FINISHED.replace("closed (finished)", &format!("closed ({reason})"));
            assert_eq!(error(&log), format!("the spider closed with finish_reason {reason:?}"));
        }
        assert!(LogEnd::read(b"INFO: Spider closed (shutdown)").was_shut_down());
        assert!(!LogEnd::read(FINISHED.as_bytes()).was_shut_down());
    }

    #[test]
    fn a_log_without_an_end_is_a_failure_with_its_last_line() {
        let head = "the spider ended, but its log does not say how: it was killed, or its LOG_LEVEL is above INFO";
        assert_eq!(error(""), head);
        assert_eq!(error("a\nKeyError: 'x'\n\n"), format!("{head}; its last line: KeyError: 'x'"));
        assert_eq!(
            error("Spider closed (fini"),
            format!("{head}; its last line: Spider closed (fini")
        );
        assert!(LogEnd::read(b"\xff\xfe").reason.is_none());
    }

    #[test]
    fn the_last_end_counts() {
        let twice = format!("{FINISHED}x INFO: Spider closed (shutdown)\n");
        assert!(LogEnd::read(twice.as_bytes()).was_shut_down());
    }
}
