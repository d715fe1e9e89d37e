//! How a command ends when it does not end well: one exit code, one sentence, one hint.
//!
//! The only place where an answer becomes an exit code. No sentence made here may carry a token, a
//! payload or a resource's data.

use std::fmt::Display;
use std::io;

use tenure_core::refusal::{Code, Refusal};
use tenure_core::sentences::ServerRefusal;
use tenure_engine_api::{CallError, Fault};

/// The answer is no.
pub const NO: u8 = 1;
/// Wrong usage, or a named file that does not exist.
pub const USAGE: u8 = 2;
/// A job that failed for good, as CMD says it.
pub const FINAL: u8 = 65;
/// No server or store.
pub const UNAVAILABLE: u8 = 69;
/// A bug of Tenure, or a refusal that no user can cause.
pub const BUG: u8 = 70;
/// An I/O error on a file or on stdout, such as a full disk.
pub const DISK: u8 = 74;
/// The lease was lost; from CMD of `work`: not yet.
pub const LEASE_LOST: u8 = 75;
/// The token is missing or wrong, or this user lacks a right.
pub const DENIED: u8 = 77;
/// CMD could not be started.
pub const NOT_STARTED: u8 = 125;
/// CMD cannot be run.
pub const NOT_RUNNABLE: u8 = 126;
/// CMD was not found.
pub const NOT_FOUND: u8 = 127;

/// The exit code of a process that signal `n` ended.
pub fn by_signal(signal: i32) -> u8 {
    128u8.saturating_add(u8::try_from(signal).unwrap_or(0))
}

/// Why a command did not end well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Exit code of the process.
    pub code: u8,
    /// The message for stderr; `None` if it is written already, or if CMD's own code is returned.
    pub sentence: Option<String>,
    /// What to do next.
    pub hint: Option<String>,
    /// The refusal; with `--json` it is the answer.
    pub refusal: Option<Box<Refusal>>,
}

impl Failure {
    /// A code and a sentence.
    pub fn new(code: u8, sentence: impl Into<String>) -> Self {
        Failure { code, sentence: Some(sentence.into()), hint: None, refusal: None }
    }
    /// Wrong usage, which the command line can see itself.
    pub fn usage(sentence: impl Into<String>) -> Self {
        Failure::new(USAGE, sentence)
    }
    /// Ends with a sentence that says behind a semicolon what to do next.
    pub fn told(code: u8, text: &str) -> Self {
        match text.split_once("; ") {
            Some((sentence, hint)) => Failure::new(code, sentence).hint(hint),
            None => Failure::new(code, text),
        }
    }
    /// Ends with this code and says nothing.
    pub fn silent(code: u8) -> Self {
        Failure { code, sentence: None, hint: None, refusal: None }
    }
    /// Adds a hint: what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// A state that only a bug can cause.
    pub fn bug(what: impl Display) -> Self {
        Failure::new(BUG, format!("this is a bug: {what}"))
            .hint("please report it with the command that you ran")
    }
    /// A file could not be read or written. A file that does not exist is wrong usage.
    pub fn file(what: impl Display, error: &io::Error) -> Self {
        let code = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => USAGE,
            _ => DISK,
        };
        Failure::new(code, format!("{what}: {}", plain(error)))
    }
    /// stdout could not be written. A reader that stopped (`| head`) is no failure: it has what it wanted.
    pub fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::silent(0),
            _ => Failure::new(DISK, format!("cannot write to stdout: {}", plain(error))),
        }
    }
}

/// An I/O error without the number that the standard library adds.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

/// The exit code of a refusal.
fn refused(code: Code) -> u8 {
    match code.status() {
        404 | 409 | 413 | 422 | 429 => NO,
        401 | 403 => DENIED,
        408 | 503 => UNAVAILABLE,
        // The rest (400, 405, 415, 500) is not the user's doing.
        _ => BUG,
    }
}

/// Whether a server refused the address and not the request: no request of our own programs gets that code.
fn is_in_clear(no: &Refusal) -> bool {
    no.code == Code::BadRequest && no.detail == Refusal::from(ServerRefusal::InClear).detail
}

/// Whether a fault itself says what to do: how to start a server, as for a Redis that no server uses, or what is wrong
/// with the certificate of a running one.
fn says_what_to_do(why: &str) -> bool {
    let said = ["; start one: tenure serve ", "the certificate of ", " does not speak TLS"];
    said.iter().any(|said| why.contains(said))
}

impl From<Refusal> for Failure {
    fn from(no: Refusal) -> Self {
        let mut sentence = no.detail.clone();
        if let Some(line) = no.line {
            sentence = format!("line {line}: {sentence}");
        }
        if let Some(job) = no.job.as_ref().filter(|job| !no.detail.contains(job.as_str())) {
            sentence = format!("{sentence} (job '{job}')");
        }
        Failure {
            code: if is_in_clear(&no) { UNAVAILABLE } else { refused(no.code) },
            sentence: Some(sentence),
            hint: Some(no.hint.clone()).filter(|hint| !hint.is_empty()),
            refusal: Some(Box::new(no)),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unavailable(why) if says_what_to_do(&why) => Failure::new(UNAVAILABLE, why),
            Fault::Unavailable(why) => Failure::new(UNAVAILABLE, why).hint(
                "is it running? `tenure serve` starts a server; --url or TENURE_URL names another \
                 server or store",
            ),
            Fault::StoreAway(why) => Failure::new(UNAVAILABLE, why).hint(
                "the server runs, but its store does not answer; `tenure doctor` shows the cause. \
                 Nothing was changed: repeat the command later",
            ),
            Fault::Unknown(why) => {
                Failure::new(UNAVAILABLE, format!("the outcome is unknown: {why}"))
                    .hint("repeat the command when the store can be reached")
            }
            Fault::Denied(no) => Failure {
                code: DENIED,
                refusal: Some(Box::new(no.clone())),
                hint: Some(no.hint).filter(|hint| !hint.is_empty()),
                sentence: Some(no.detail),
            },
            Fault::Broken(why) => Failure::bug(why),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(no) => no.into(),
            CallError::Fault(fault) => fault.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_the_exit_code_of_its_status() {
        for code in Code::ALL {
            let failure = Failure::from(CallError::Refused(Refusal::heard(*code, "no", "try")));
            let want = match code.status() {
                404 | 409 | 413 | 422 | 429 => 1,
                401 | 403 => 77,
                503 | 408 => 69,
                _ => 70,
            };
            assert_eq!(failure.code, want, "{code}");
            assert_eq!(failure.hint.as_deref(), Some("try"));
        }
    }

    #[test]
    fn every_fault_has_an_exit_code() {
        let denied = Refusal::heard(Code::Unauthorized, "no", "");
        for (fault, code) in [
            (Fault::Unavailable("x".into()), 69),
            (Fault::StoreAway("x".into()), 69),
            (Fault::Unknown("x".into()), 69),
            (Fault::Denied(denied), 77),
            (Fault::Broken("x".into()), 70),
        ] {
            assert_eq!(Failure::from(fault.clone()).code, code, "{fault:?}");
        }
    }

    #[test]
    fn a_broken_pipe_is_success_and_a_full_disk_is_not() {
        let broken = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::stdout(&broken), Failure::silent(0));
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Failure::stdout(&full).code, DISK);
    }

    #[test]
    fn a_file_that_is_not_there_is_wrong_usage() {
        let gone = io::Error::from_raw_os_error(2);
        let failure = Failure::file("cannot read 'x'", &gone);
        assert_eq!(failure.code, USAGE);
        assert_eq!(failure.sentence.as_deref(), Some("cannot read 'x': no such file or directory"));
        assert_eq!(Failure::file("x", &io::Error::from_raw_os_error(5)).code, DISK);
    }

    #[test]
    fn a_signal_is_128_and_its_number() {
        assert_eq!((by_signal(15), by_signal(9), by_signal(2)), (143, 137, 130));
    }
}
