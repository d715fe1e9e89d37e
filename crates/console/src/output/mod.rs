//! Output: data goes to stdout, every other message to stderr.
//!
//! With `--json` stdout is exactly one document, the answer of the matching call; otherwise a table or a page for
//! people. Nothing here decides anything.

pub mod clock;
pub mod colour;
mod escape;
mod failure;
pub mod page;
pub mod prose;
pub mod table;
pub mod width;

use std::io::{IsTerminal, Write};

use serde::Serialize;
use tenure_core::refusal::Problem;

use crate::exit::Failure;
use crate::stderr;

/// Writes a message to stderr. An unread message must stop nothing.
pub fn tell(sentence: &str) {
    stderr::say(format!("tenure: {}\n", printable(sentence)).as_bytes());
}

/// Writes a hint to stderr: what to do next.
pub fn hint(hint: &str) {
    stderr::say(format!("hint: {}\n", printable(hint)).as_bytes());
}

/// Makes every character of a text for people visible. All output is made so; callers that count columns call this
/// first.
pub fn printable(text: &str) -> String {
    escape::text(text).into_owned()
}

/// A number of bytes, roughly.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes / 1_024),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes / 1_048_576),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// How answers are written.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// One JSON document instead of a table.
    pub json: bool,
}

impl Output {
    /// Writes an answer: as JSON, or as `people` puts it.
    pub fn answer<T: Serialize + ?Sized>(
        self,
        answer: &T,
        people: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        if self.json { self.document(answer) } else { self.text(&people(answer)) }
    }

    /// Writes one JSON document.
    pub fn document<T: Serialize + ?Sized>(self, answer: &T) -> Result<(), Failure> {
        let pretty = std::io::stdout().is_terminal();
        let text = if pretty {
            serde_json::to_string_pretty(answer)
        } else {
            serde_json::to_string(answer)
        };
        write(&escape::json(&(text.map_err(Failure::bug)? + "\n")))
    }

    /// Writes one of many answers, each on a line of its own.
    pub fn line<T: Serialize + ?Sized>(
        self,
        answer: &T,
        people: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        if !self.json {
            return self.text(&people(answer));
        }
        let text = serde_json::to_string(answer).map_err(Failure::bug)? + "\n";
        write(&escape::json(&text))
    }

    /// Writes text for people, or with `--json` a part of the document.
    pub fn text(self, text: &str) -> Result<(), Failure> {
        write(&if self.json { escape::json(text) } else { escape::text(text) })
    }

    /// A call that answers nothing: `done` for people, `null` for programs.
    pub fn done(self, done: &str) -> Result<(), Failure> {
        self.answer(&(), |()| format!("{done}\n"))
    }

    /// Reports a failure: with `--json` a refusal is the answer, and is written to stdout too.
    pub fn failure(self, failure: &Failure) -> u8 {
        if let (true, Some(no)) = (self.json, &failure.refusal) {
            // If that cannot be written, stderr still says it, and the exit code stands.
            let _ = self.document(&Problem::of(no));
        }
        failure.tell()
    }
}

fn write(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::stdout(&error))
}
