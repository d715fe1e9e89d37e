//! Log of a client of the crash check: notes, one per line, in a file of its own, each written
//! before the client acts on it.
//!
//! Times are microseconds of the system's monotonic clock, which all processes of a machine share.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tenure_core::job::JobState;
use tenure_core::lease::Fence;

/// One fact that a client knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// A push of this job was answered.
    Pushed {
        /// The id that the push gave it.
        job: String,
    },
    /// The start of a run.
    Started {
        job: String,
        /// The fence of its lease.
        fence: Fence,
        at_us: u64,
    },
    /// A run ended, before its settle was sent.
    Ended {
        job: String,
        /// The fence of its lease.
        fence: Fence,
        at_us: u64,
    },
    /// A settle was accepted.
    Settled {
        job: String,
        /// The fence of the run.
        fence: Fence,
        /// The state of the job after the settle.
        state: JobState,
    },
}

impl Note {
    fn line(&self) -> String {
        match self {
            Note::Pushed { job } => format!("pushed {job}\n"),
            Note::Started { job, fence, at_us } => format!("started {job} {fence} {at_us}\n"),
            Note::Ended { job, fence, at_us } => format!("ended {job} {fence} {at_us}\n"),
            Note::Settled { job, fence, state } => format!("settled {job} {fence} {state}\n"),
        }
    }
    /// Reads such a line.
    pub fn read(line: &str) -> Option<Note> {
        let words: Vec<&str> = line.split(' ').collect();
        let job = |text: &str| text.to_owned();
        match words.as_slice() {
            ["pushed", id] => Some(Note::Pushed { job: job(id) }),
            ["started", id, fence, at] => Some(Note::Started {
                job: job(id),
                fence: fence.parse().ok()?,
                at_us: at.parse().ok()?,
            }),
            ["ended", id, fence, at] => Some(Note::Ended {
                job: job(id),
                fence: fence.parse().ok()?,
                at_us: at.parse().ok()?,
            }),
            ["settled", id, fence, state] => Some(Note::Settled {
                job: job(id),
                fence: fence.parse().ok()?,
                state: state.parse().ok()?,
            }),
            _ => None,
        }
    }
}

/// The file of one client.
#[derive(Debug)]
pub struct Log(Mutex<File>);

impl Log {
    /// Creates the file, or empties it.
    pub fn create(path: &Path) -> io::Result<Self> {
        File::create(path).map(|file| Log(Mutex::new(file)))
    }
    /// Writes notes in one piece. A check without its notes would check nothing, so a disk that
    /// rejects them ends the process.
    pub fn write(&self, notes: &[Note]) {
        let text: String = notes.iter().map(Note::line).collect();
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if file.write_all(text.as_bytes()).is_err() {
            std::process::exit(i32::from(tenure_console::exit::DISK));
        }
    }
}

/// Reads the notes of a file.
///
/// # Errors
/// It cannot be read, or has a line that is not a note.
pub fn read(path: &Path) -> io::Result<Vec<Note>> {
    let text = std::fs::read_to_string(path)?;
    let broken =
        |line: &str| io::Error::new(io::ErrorKind::InvalidData, format!("no note: {line}"));
    text.lines().map(|line| Note::read(line).ok_or_else(|| broken(line))).collect()
}

/// The present time, on the clock that all processes of this machine share.
pub fn now_us() -> u64 {
    // The clock is always there on the systems that have one; otherwise every run would seem to
    // overlap, which fails loudly.
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        let seconds = u64::try_from(now.tv_sec()).unwrap_or(0);
        seconds * 1_000_000 + u64::try_from(now.tv_nsec()).unwrap_or(0) / 1_000
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let job = "j".to_owned();
        let notes = vec![
            Note::Pushed { job: job.clone() },
            Note::Started { job: job.clone(), fence: Fence::new(7), at_us: 1 },
            Note::Ended { job: job.clone(), fence: Fence::new(7), at_us: 2 },
            Note::Settled { job, fence: Fence::new(7), state: JobState::Succeeded },
        ];
        Log::create(&path).unwrap().write(&notes);
        assert_eq!(read(&path).unwrap(), notes);
        assert!(Note::read("settled j 7 done").is_none());
    }
}
