//! How a program is called.

use std::str::FromStr;

use crate::Failed;

/// What a program is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Push so many jobs, in bulk.
    Push,
    /// Handle so many jobs that are there, `concurrency` at once.
    Drain,
    /// Push so many jobs, each by a call of its own, `flight` calls at once.
    Single,
    /// Push so many jobs, `rate` per second, each by itself.
    Steady,
    /// Push so many jobs that are due evenly spread over `spread` seconds, from 1 s from now on.
    Later,
    /// Handle so many jobs that will come; measure how long after their moment they start.
    Listen,
    /// Push so many jobs over `keys` keys of which each allows one at a time.
    PushKeyed,
    /// The same, each of which needs a permit that all share and a resource too.
    PushThree,
    /// Handle so many such jobs; count those that overlapped with another of their key.
    DrainKeyed,
    /// Push so many jobs that all need the same key, which allows one at a time.
    PushBlocked,
    /// Push so many jobs without a key, to where those of [`Role::PushBlocked`] are.
    PushFree,
    /// Handle what is there until so many free jobs are done; a blocked one takes a second.
    DrainFree,
    /// Push, lease and settle in batches, so many calls in flight, for so many seconds.
    Lifecycle,
}

impl FromStr for Role {
    type Err = Failed;

    fn from_str(text: &str) -> Result<Self, Failed> {
        Ok(match text {
            "push" => Role::Push,
            "drain" => Role::Drain,
            "push-single" => Role::Single,
            "steady" => Role::Steady,
            "later" => Role::Later,
            "listen" => Role::Listen,
            "push-keyed" => Role::PushKeyed,
            "drain-keyed" => Role::DrainKeyed,
            "push-three" => Role::PushThree,
            "push-blocked" => Role::PushBlocked,
            "push-free" => Role::PushFree,
            "drain-free" => Role::DrainFree,
            "lifecycle" => Role::Lifecycle,
            _ => return Err(format!("no role is called {text}").into()),
        })
    }
}

/// A program's arguments.
#[derive(Clone, Debug)]
pub struct Call {
    /// What it is to do.
    pub role: Role,
    /// Where the server listens, on 127.0.0.1.
    pub port: u16,
    /// So many jobs.
    pub jobs: u64,
    /// So many at once.
    pub concurrency: usize,
    /// So many per second.
    pub rate: u64,
    /// Over so many seconds.
    pub spread: u64,
    /// Over so many keys.
    pub keys: u64,
    /// For so many seconds.
    pub seconds: u64,
    /// So many items a call.
    pub batch: usize,
    /// So many calls in flight.
    pub flight: usize,
    /// A way of doing it, if the program has several.
    pub way: String,
}

impl Call {
    /// From the command line.
    pub fn read() -> Result<Self, Failed> {
        let mut arguments = std::env::args().skip(1);
        let role = arguments.next().ok_or("which role?")?.parse()?;
        let port = arguments.next().ok_or("which port?")?.parse()?;
        let mut call = Call {
            role,
            port,
            jobs: 1_000,
            concurrency: 100,
            rate: 500,
            spread: 10,
            keys: 1_000,
            seconds: 5,
            batch: 100,
            flight: 16,
            way: String::new(),
        };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} wants a value"))?;
            match name.as_str() {
                "--jobs" => call.jobs = value.parse()?,
                "--concurrency" => call.concurrency = value.parse()?,
                "--rate" => call.rate = value.parse()?,
                "--spread" => call.spread = value.parse()?,
                "--keys" => call.keys = value.parse()?,
                "--seconds" => call.seconds = value.parse()?,
                "--batch" => call.batch = value.parse()?,
                "--flight" => call.flight = value.parse()?,
                "--way" => call.way = value,
                _ => return Err(format!("no option is called {name}").into()),
            }
        }
        Ok(call)
    }

    /// The server's URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// In how many microseconds the job `n` of [`Role::Later`] is due.
    pub fn due_in_us(&self, n: u64) -> u64 {
        1_000_000 + n * self.spread * 1_000_000 / self.jobs.max(1)
    }
}
