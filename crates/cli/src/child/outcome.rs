//! The outcome of a job after the end of CMD: from the outcome file, otherwise from the exit code.
//!
//! Pure, except that it reads the files that CMD wrote. Whatever is in them, there is always an outcome.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use nix::sys::signal::Signal;
use tenure::SettleOutcome;
use tenure_core::bounds::{BODY_BYTES_MAX, ERROR_BYTES_MAX, PAYLOAD_BYTES_MAX, PROGRESS_BYTES_MAX};
use tenure_core::decode;
use tenure_core::lease::{Ending, Later};
use tenure_core::secret::Json;
use tenure_core::time::Span;

use crate::child::environment::JobFiles;
use crate::exit::{FINAL, LEASE_LOST, by_signal};

/// How long a job is snoozed after the exit code that means "not yet".
const SNOOZE: Span = Span::from_s(30);

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl How {
    /// The exit code with which `tenure` reports it.
    pub fn exit_code(self) -> u8 {
        match self {
            How::Code(code) => u8::try_from(code).unwrap_or(1),
            How::Signal(signal) => by_signal(signal),
        }
    }

    /// The signal that ended the process, or its command: a shell reports that as 128 and its number.
    pub fn signal(self) -> Option<i32> {
        match self {
            How::Signal(signal) => Some(signal),
            How::Code(code) => Some(code - 128).filter(|signal| Signal::try_from(*signal).is_ok()),
        }
    }
}

/// The verdict that CMD of `lock` and `lease` wrote about what it held; `None` if it wrote none. There is no job whose
/// outcome it could be, so that only the verdicts and the follow-up jobs count.
///
/// # Errors
/// Why its file cannot be used.
pub fn verdict(path: &Path) -> Result<Option<SettleOutcome>, String> {
    let Some(text) = read(path, BODY_BYTES_MAX)? else { return Ok(None) };
    let item =
        decode::settle_item_without_lease(&text).map_err(|no| format!("{no}; {}", no.hint))?;
    let SettleOutcome { resources, limits, push, .. } = item.into();
    let mut outcome = SettleOutcome::released();
    (outcome.resources, outcome.limits, outcome.push) = (resources, limits, push);
    Ok(Some(outcome))
}

/// The outcome of a lease whose CMD ended like this, with the end of its stderr.
pub fn of_end(how: How, stderr: &[u8], files: &JobFiles) -> SettleOutcome {
    reporting(said(how, stderr, files), files)
}

/// Adds the last progress that CMD wrote, since no heartbeat comes after it. The outcome file takes precedence.
pub fn reporting(mut outcome: SettleOutcome, files: &JobFiles) -> SettleOutcome {
    outcome.progress = outcome.progress.or_else(|| progress(&files.progress));
    outcome
}

/// Sets when the schedule is next due, for a success whose outcome file does not state it.
pub fn next_in(mut outcome: SettleOutcome, wait: Option<Span>) -> SettleOutcome {
    if matches!(outcome.ending, Ending::Succeeded { .. }) {
        outcome.next_in = outcome.next_in.or(wait);
    }
    outcome
}

fn said(how: How, stderr: &[u8], files: &JobFiles) -> SettleOutcome {
    match read(&files.outcome, BODY_BYTES_MAX) {
        Ok(None) => by_code(how, stderr, files),
        Ok(Some(text)) => match decode::settle_item_without_lease(&text) {
            Ok(item) => filled(item.into(), how, stderr, files),
            Err(no) => {
                SettleOutcome::failed(format!("the outcome file cannot be used: {no}; {}", no.hint))
            }
        },
        Err(why) => SettleOutcome::failed(format!("the outcome file cannot be read: {why}")),
    }
}

fn by_code(how: How, stderr: &[u8], files: &JobFiles) -> SettleOutcome {
    match how {
        How::Code(0) => match result(&files.result) {
            Ok(result) => Ending::Succeeded { result }.into(),
            Err(why) => SettleOutcome::failed(why),
        },
        How::Code(code) if code == i32::from(LEASE_LOST) => {
            Ending::Snoozed { later: Later::For(SNOOZE), reset: false }.into()
        }
        how => {
            let last = how == How::Code(i32::from(FINAL));
            Ending::Failed { error: error(how, stderr), retry_in: None, last }.into()
        }
    }
}

/// Fills the gaps of the outcome file from CMD's other files, its exit code and its stderr.
fn filled(mut outcome: SettleOutcome, how: How, stderr: &[u8], files: &JobFiles) -> SettleOutcome {
    match &mut outcome.ending {
        Ending::Succeeded { result: field @ None } => match result(&files.result) {
            Ok(result) => *field = result,
            Err(why) => return SettleOutcome::failed(why),
        },
        Ending::Failed { error: field, .. } if field.is_empty() => *field = error(how, stderr),
        _ => {}
    }
    outcome
}

/// The end of stderr; if that is empty, how it ended.
fn error(how: How, stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = end_of(text.trim_end());
    match (text.trim().is_empty(), how) {
        (false, _) => text.to_owned(),
        (true, How::Code(code)) => format!("exit {code}"),
        (true, How::Signal(signal)) => format!("signal {signal}"),
    }
}

/// The last 8 KiB, from a whole character on.
fn end_of(text: &str) -> &str {
    let mut from = text.len().saturating_sub(ERROR_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// The result file: JSON if it is JSON, otherwise a string without the line end that `echo` adds. An absent or empty
/// file is no result.
fn result(path: &Path) -> Result<Option<Json>, String> {
    let bytes = match read(path, PAYLOAD_BYTES_MAX) {
        Ok(Some(bytes)) if !bytes.trim_ascii().is_empty() => bytes,
        Ok(_) => return Ok(None),
        Err(why) => return Err(format!("the result file cannot be used: {why}")),
    };
    let json = json_or_string(&bytes);
    match json.text().len() {
        len if len > PAYLOAD_BYTES_MAX => Err(format!(
            "the result file cannot be used: as JSON it has {len} bytes, and {PAYLOAD_BYTES_MAX} \
             is the most"
        )),
        _ => Ok(Some(json)),
    }
}

/// JSON if it is JSON, otherwise a string without the line end that `echo` adds.
pub fn json_or_string(bytes: &[u8]) -> Json {
    if let (Ok(_), Ok(text)) =
        (tenure_core::json::Document::parse(bytes), std::str::from_utf8(bytes))
        && let Some(json) = Json::parse(text)
    {
        return json;
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Json::from(text.strip_suffix('\r').unwrap_or(text))
}

/// The progress that CMD wrote; `None` if there is nothing to report.
pub fn progress(path: &Path) -> Option<Json> {
    let bytes = read(path, PROGRESS_BYTES_MAX).ok().flatten()?;
    if bytes.trim_ascii().is_empty() {
        return None;
    }
    Some(json_or_string(&bytes)).filter(|json| json.text().len() <= PROGRESS_BYTES_MAX)
}

/// A file that CMD may have written, of at most `most` bytes; `None` if it is not there.
fn read(path: &Path, most: usize) -> Result<Option<Vec<u8>>, String> {
    let in_words = |error: io::Error| error.to_string();
    // CMD may have put anything there; reading a pipe would never end.
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => return Err("it is not a file".to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(in_words(error)),
    }
    let mut bytes = Vec::new();
    File::open(path)
        .map_err(in_words)?
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(in_words)?;
    if bytes.len() > most {
        return Err(format!("it is longer than {most} bytes"));
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    struct Left {
        files: JobFiles,
        _folder: TempDir,
    }

    fn left(written: &[(&str, &str)]) -> Left {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in written {
            std::fs::write(at(name), text).unwrap();
        }
        let files = JobFiles {
            payload: at("payload"),
            result: at("result"),
            outcome: at("outcome"),
            progress: at("progress"),
        };
        Left { files, _folder: folder }
    }

    fn error_of(said: &SettleOutcome) -> &str {
        match &said.ending {
            Ending::Failed { error, .. } => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_exit_code_says_how_the_run_ended() {
        let failed =
            |error: &str, last| Ending::Failed { error: error.into(), retry_in: None, last };
        for (how, stderr, ending) in [
            (How::Code(0), "noise", Ending::Succeeded { result: None }),
            (
                How::Code(75),
                "x",
                Ending::Snoozed { later: Later::For(Span::from_s(30)), reset: false },
            ),
            (How::Code(65), "no such page\n", failed("no such page", true)),
            (How::Code(65), "", failed("exit 65", true)),
            (How::Code(1), "a\nb\n\n", failed("a\nb", false)),
            (How::Code(3), " \n", failed("exit 3", false)),
            (How::Signal(9), "", failed("signal 9", false)),
            (How::Signal(15), "bye", failed("bye", false)),
        ] {
            let item = of_end(how, stderr.as_bytes(), &left(&[]).files);
            assert_eq!(item, ending.into(), "{how:?}");
        }
    }

    #[test]
    fn the_end_of_stderr_is_kept_from_a_whole_character_on() {
        let long = format!("begin {}é end", "é".repeat(ERROR_BYTES_MAX));
        let error = error(How::Code(1), long.as_bytes());
        assert!(error.len() <= ERROR_BYTES_MAX && error.ends_with("é end"));
        assert!(error.starts_with('é'));
        assert_eq!(super::error(How::Code(1), b"\xff\xfex"), "\u{fffd}\u{fffd}x");
    }

    #[test]
    fn a_result_is_json_or_a_string() {
        for (text, want) in [
            ("{\"n\": 1}\n", Some("{\"n\": 1}")),
            ("12", Some("12")),
            ("done\n", Some("\"done\"")),
            ("two\nlines\n", Some("\"two\\nlines\"")),
            ("{\"a\":1,\"a\":2}", Some("\"{\\\"a\\\":1,\\\"a\\\":2}\"")),
            ("", None),
            (" \n", None),
        ] {
            let item = of_end(How::Code(0), b"", &left(&[("result", text)]).files);
            let want = Ending::Succeeded { result: want.map(|text| Json::parse(text).unwrap()) };
            assert_eq!(item.ending, want, "{text}");
        }
        let long = "x".repeat(PAYLOAD_BYTES_MAX + 1);
        let item = of_end(How::Code(0), b"", &left(&[("result", &long)]).files);
        assert!(error_of(&item).contains("the result file cannot be used"));
    }

    #[test]
    fn the_outcome_file_goes_before_the_code() {
        let files = left(&[("outcome", "{\"outcome\":\"snoozed\",\"for\":\"5s\"}")]);
        for how in [How::Code(0), How::Code(1), How::Signal(15)] {
            let item = of_end(how, b"noise", &files.files);
            assert_eq!(
                item.ending,
                Ending::Snoozed { later: Later::For(Span::from_s(5)), reset: false }
            );
        }
        let both = [("outcome", "{\"outcome\":\"succeeded\"}"), ("result", "7")];
        let item = of_end(How::Code(1), b"", &left(&both).files);
        assert_eq!(item.ending, Ending::Succeeded { result: Json::parse("7") });
        let open = left(&[("outcome", "{\"outcome\":\"failed\",\"final\":true}")]);
        assert_eq!(error_of(&of_end(How::Code(1), b"why", &open.files)), "why");
    }

    #[test]
    fn an_unusable_outcome_file_is_a_failure_that_says_so() {
        for text in ["", "{", "{\"outcome\":\"done\"}", "[]", "{\"outcome\":\"failed\",\"x\":1}"] {
            let item = of_end(How::Code(0), b"", &left(&[("outcome", text)]).files);
            assert!(error_of(&item).starts_with("the outcome file cannot be used: "), "{text}");
        }
        let folder = left(&[]);
        std::fs::create_dir(&folder.files.outcome).unwrap();
        let item = of_end(How::Code(0), b"", &folder.files);
        assert!(error_of(&item).starts_with("the outcome file cannot be read: "));
    }

    #[test]
    fn progress_is_what_fits() {
        let read = |text: &str| progress(&left(&[("progress", text)]).files.progress);
        assert_eq!(read("{\"n\":1}").unwrap().text(), "{\"n\":1}");
        assert_eq!(read("half\n").unwrap().text(), "\"half\"");
        assert_eq!(read(""), None);
        assert_eq!(read(&"x".repeat(PROGRESS_BYTES_MAX)), None);
    }

    #[test]
    fn the_last_progress_goes_with_the_outcome() {
        let reported = |written: &[(&str, &str)]| {
            let progress = of_end(How::Code(1), b"", &left(written).files).progress;
            progress.map(|progress| progress.text().to_owned())
        };
        let says = ("outcome", r#"{"outcome":"released","progress":{"page":7}}"#);
        assert_eq!(reported(&[says, ("progress", "6")]).as_deref(), Some(r#"{"page":7}"#));
        let silent = ("outcome", r#"{"outcome":"snoozed","for":"1m","reset":true}"#);
        assert_eq!(reported(&[silent, ("progress", "6")]).as_deref(), Some("6"));
        assert_eq!(reported(&[("progress", "6\n")]).as_deref(), Some("6"));
        assert_eq!(reported(&[]), None);
    }

    #[test]
    fn an_outcome_file_may_start_the_attempts_again() {
        let text = r#"{"outcome":"snoozed","for":"1m","reset":true}"#;
        let said = of_end(How::Code(0), b"", &left(&[("outcome", text)]).files);
        let later = Later::For(Span::from_s(60));
        assert_eq!(said.ending, Ending::Snoozed { later, reset: true });
    }

    #[test]
    fn the_next_in_option_applies_to_successes_without_their_own() {
        let (hour, day) = (Span::from_s(3_600), Span::from_s(86_400));
        let with = r#"{"outcome":"succeeded","next_in":"1h"}"#;
        let failed = r#"{"outcome":"failed","next_in":"1h"}"#;
        for (how, text, option, want) in [
            (How::Code(0), None, None, None),
            (How::Code(0), None, Some(day), Some(day)),
            (How::Code(0), Some(r#"{"outcome":"succeeded"}"#), Some(day), Some(day)),
            (How::Code(1), Some(with), Some(day), Some(hour)),
            (How::Code(0), Some(with), None, Some(hour)),
            (How::Code(0), Some(failed), Some(day), Some(hour)),
            (How::Code(0), Some(r#"{"outcome":"released"}"#), Some(day), None),
            (How::Code(1), None, Some(day), None),
            (How::Code(75), None, Some(day), None),
        ] {
            let written: Vec<_> = text.map(|text| ("outcome", text)).into_iter().collect();
            let said = next_in(of_end(how, b"", &left(&written).files), option);
            assert_eq!(said.next_in, want, "{how:?} {text:?} {option:?}");
        }
        let wrong = left(&[("outcome", r#"{"outcome":"succeeded","next_in":"1500ms"}"#)]);
        let said = next_in(of_end(How::Code(0), b"", &wrong.files), Some(day));
        assert!(error_of(&said).contains("next_in") && said.next_in.is_none());
    }

    #[test]
    fn a_verdict_is_what_an_outcome_says_of_what_was_held() {
        let ban = r#""resources":[{"pool":"a","id":"ann","verdict":"ban"}]"#;
        let read = |text: &str| verdict(&left(&[("outcome", text)]).files.outcome);
        for outcome in [r#""released""#, r#""succeeded""#, r#""failed","error":"captcha""#] {
            let said = read(&format!("{{\"outcome\":{outcome},{ban}}}")).unwrap().unwrap();
            assert_eq!((said.ending, said.resources.len()), (Ending::Released, 1), "{outcome}");
        }
        assert_eq!(verdict(&left(&[]).files.outcome), Ok(None));
        for text in ["", "ban", "{}", r#"{"outcome":"released","resources":[{"pool":"a"}]}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_signal_is_also_seen_behind_a_shell() {
        for (how, signal) in [
            (How::Signal(9), Some(9)),
            (How::Code(137), Some(9)),
            (How::Code(143), Some(15)),
            (How::Code(128), None),
            (How::Code(255), None),
            (How::Code(1), None),
            (How::Code(0), None),
        ] {
            assert_eq!(how.signal(), signal, "{how:?}");
        }
    }

    #[test]
    fn a_signal_is_passed_on_as_128_and_its_number() {
        assert_eq!(How::Signal(9).exit_code(), 137);
        assert_eq!(How::Code(3).exit_code(), 3);
    }
}
