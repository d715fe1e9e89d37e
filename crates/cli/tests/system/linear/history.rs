//! Calls and their answers, as the processes write them down: one line for each call, when it ended or was given up.
//!
//! Moments are those of the machine's steady clock, which is the same in all processes.

use std::fmt;
use std::path::Path;

use nix::time::{ClockId, clock_gettime};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenure_core::job::{JobState, Outcome};
use tenure_engine_api::{Clock, SystemClock};

use crate::linear::takeovers::{self, Takeover};

/// The end of a call without one: nobody knows whether it happened.
pub const NEVER: u64 = u64::MAX;

/// Now, in µs since the machine started.
pub fn now_us() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("this system has a steady clock");
    now.tv_sec() as u64 * 1_000_000 + now.tv_nsec() as u64 / 1_000
}

/// How far the wall clock is ahead of [`now_us`], in µs. The difference changes when the wall clock is stepped.
pub fn wall_ahead_us() -> i64 {
    SystemClock.now().us() as i64 - now_us() as i64
}

/// A call. It names a lease by its fence.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Call {
    /// For the object's own lock, or a job of its own queue.
    Lease {
        request: String,
        wait_ms: u64,
    },
    Extend {
        fence: u64,
    },
    Settle {
        fence: u64,
        outcome: Outcome,
        /// How long a failed or snoozed job waits.
        wait_ms: u64,
        last: bool,
    },
    Push {
        id: String,
    },
    Cancel {
        id: String,
    },
    Retry {
        id: String,
    },
    Get {
        id: String,
    },
}

/// The answer to a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// A lease; of a job, its id and attempt.
    Granted {
        fence: u64,
        job: Option<(String, u32)>,
    },
    /// No lease was granted.
    Nothing,
    Extended {
        cancel: bool,
    },
    Settled {
        state: Option<JobState>,
    },
    AlreadySettled,
    /// Refused, with the code `lease_lost`.
    Lost,
    Pushed {
        id: String,
        duplicate: bool,
    },
    Shown {
        state: JobState,
        attempt: u32,
    },
    /// It did something; the state that it showed is a read of its own.
    Acted,
    NotFound,
    WrongState,
    Conflict,
    /// It certainly did nothing.
    Unavailable,
}

/// One call with its answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// The process and the thread.
    pub who: String,
    /// The lock or job.
    pub object: String,
    pub call: Call,
    /// When it was about to be sent.
    pub begin: u64,
    /// When its answer was here; without one, until when it may have happened, mostly [`NEVER`].
    pub end: u64,
    /// Without one the call may have happened, at any moment between its begin and its end, or not.
    pub answer: Option<Answer>,
    /// Its caller went away: a grant after that is undone at some time.
    pub dropped: bool,
}

impl Event {
    pub fn is_open(&self) -> bool {
        self.answer.is_none()
    }

    /// The form that the models take. The job in the answer to a cancel or a retry is read after the change, and other
    /// calls may come between: these are two calls.
    pub fn parts(self) -> Vec<Event> {
        let (Call::Cancel { id } | Call::Retry { id }, Some(Answer::Shown { .. })) =
            (&self.call, &self.answer)
        else {
            return vec![self];
        };
        let read = Event { call: Call::Get { id: id.clone() }, ..self.clone() };
        vec![Event { answer: Some(Answer::Acted), ..self }, read]
    }

    /// A call for jobs that waited and lost the store: it is known there for some seconds more, and its process gives
    /// back every grant that still comes for it.
    pub fn waited_in_vain(&self) -> bool {
        self.is_open() && matches!(self.call, Call::Lease { wait_ms, .. } if wait_ms > 0)
    }

    /// Whether a call with this answer changed nothing, whenever it happened.
    pub fn changed_nothing(&self) -> bool {
        use Answer::*;
        match &self.answer {
            Some(
                Nothing
                | Lost
                | AlreadySettled
                | NotFound
                | WrongState
                | Conflict
                | Unavailable
                | Pushed { duplicate: true, .. },
            ) => true,
            Some(Shown { .. }) => matches!(self.call, Call::Get { .. }),
            _ => false,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { who, object, call, begin, end, answer, dropped } = self;
        write!(f, "{begin} .. ")?;
        match answer {
            Some(answer) => write!(f, "{end} {who} {object} {call:?} -> {answer:?}"),
            None if *dropped => write!(f, "open, dropped, {who} {object} {call:?}"),
            None => write!(f, "open {who} {object} {call:?}"),
        }
    }
}

/// All lines of a folder.
#[derive(Default)]
pub struct History {
    pub events: Vec<Event>,
    /// All takeovers of its time.
    pub takeovers: Vec<Takeover>,
}

impl History {
    pub fn read(folder: &Path) -> Self {
        let mut history = History::default();
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let entry = entry.expect("it can be read");
            let text = std::fs::read_to_string(entry.path()).expect("it is text");
            if entry.file_name() == takeovers::FILE {
                history.takeovers.extend(lines::<Takeover>(&text));
            } else {
                history.events.extend(lines::<Event>(&text));
            }
        }
        history
    }
}

fn lines<T: DeserializeOwned>(text: &str) -> impl Iterator<Item = T> {
    let read = |line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
    text.lines().map(read)
}
