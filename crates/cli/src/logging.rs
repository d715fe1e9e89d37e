//! Log of a server on stderr, one line for each event: as text for people, as JSON for programs.
//!
//! Only lines of Tenure's own crates are written, at any level: they show no payload, no data of a resource and no token,
//! and no other crate has promised that.

use std::fmt::Display;
use std::io::{self, IsTerminal};

use clap::ValueEnum;
use serde::Serialize;
use tenure_console::stderr::{self, Stderr};
use tenure_core::time::Moment;
use tenure_engine_api::{Clock, SystemClock};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::exit::Failure;

/// The targets of all of our lines begin with it: `tenure_server::service`, `tenure_redis::line`.
const OURS: &str = "tenure";
const FORM: &str = "write error, warn, info, debug or trace, and TARGET=LEVEL for parts: \"info,tenure_server=debug\"";

/// Which lines are written.
#[derive(Clone, PartialEq, Debug)]
pub struct LogLevel(Targets);

impl LogLevel {
    /// Parses `info` or `warn,tenure_server=debug`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut targets = Targets::new();
        for part in text.split(',').map(str::trim) {
            let (target, level) = part.split_once('=').unwrap_or((OURS, part));
            let level: LevelFilter = match level.trim().to_ascii_lowercase().as_str() {
                "off" => LevelFilter::OFF,
                "error" => LevelFilter::ERROR,
                "warn" => LevelFilter::WARN,
                "info" => LevelFilter::INFO,
                "debug" => LevelFilter::DEBUG,
                "trace" => LevelFilter::TRACE,
                _ => return Err(FORM.to_owned()),
            };
            let target = target.trim();
            if !target.starts_with(OURS) {
                return Err(format!("a target begins with \"{OURS}\"; {FORM}"));
            }
            targets = targets.with_target(target, level);
        }
        Ok(LogLevel(targets))
    }
}

/// How a line is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// An object on each line.
    Json,
}

impl LogFormat {
    /// Text on a terminal, since a person reads it; otherwise JSON.
    pub fn usual() -> Self {
        if io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Json }
    }
}

/// From now on lines are written, and no caller waits until they are. A process that already writes lines goes on as
/// before.
pub fn start(level: LogLevel, format: LogFormat) {
    stderr::never_wait();
    let lines = tracing_subscriber::fmt::layer().with_writer(|| Stderr).with_ansi(false);
    let lines = match format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true);
            lines.with_current_span(false).with_span_list(false).boxed()
        }
    };
    let LogLevel(targets) = level;
    let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
}

/// Where the server listens, whatever the level: programs that start one wait for this line.
pub fn listening(scheme: &str, at: impl Display, format: LogFormat) {
    let message = format!("listening on {scheme}://{at}");
    let line = match format {
        LogFormat::Text => message,
        LogFormat::Json => {
            // In the order of all other lines.
            #[derive(Serialize)]
            struct ListeningJson<'a> {
                timestamp: Moment,
                level: &'static str,
                message: &'a str,
                target: &'static str,
            }
            let (timestamp, level, target) = (SystemClock.now(), "INFO", module_path!());
            let line = ListeningJson { timestamp, level, message: &message, target };
            serde_json::to_string(&line).unwrap_or(message)
        }
    };
    stderr::say(format!("{line}\n").as_bytes());
}

/// The error that ends the server, as its last line. As text it is written where every command writes it.
pub fn ended(failure: Failure, format: LogFormat) -> Failure {
    match (format, &failure.sentence) {
        (LogFormat::Json, Some(sentence)) => {
            tracing::error!(hint = failure.hint, exit_code = failure.code, "{sentence}");
            Failure::silent(failure.code)
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_is_for_all_of_tenure_and_for_parts_of_it() {
        let enabled = |text: &str, target: &str, level: &Level| {
            let LogLevel(targets) = LogLevel::parse(text).unwrap();
            targets.would_enable(target, level)
        };
        for (text, target, level, is) in [
            ("info", "tenure_server::service", Level::INFO, true),
            ("info", "tenure_server::service", Level::DEBUG, false),
            ("WARN", "tenure::cmd::serve", Level::INFO, false),
            ("off", "tenure::cmd::serve", Level::ERROR, false),
            ("trace", "hyper::proto", Level::ERROR, false),
            ("warn, tenure_server=debug", "tenure_server::service", Level::DEBUG, true),
            ("warn,tenure_server=debug", "tenure_redis", Level::INFO, false),
            ("tenure_server=debug", "tenure_redis", Level::ERROR, false),
        ] {
            assert_eq!(enabled(text, target, &level), is, "{text} {target} {level}");
        }
        for text in ["", "loud", "info,", "tenure_server=loud", "hyper=trace", "=info"] {
            assert!(LogLevel::parse(text).is_err(), "{text}");
        }
    }
}
