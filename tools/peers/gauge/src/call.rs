//! Command-line arguments of a measured program.

use std::str::FromStr;

use crate::Failed;

/// The work of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Push `jobs` jobs, in bulk.
    Push,
    /// Handle `jobs` jobs that are there already, `concurrency` at once.
    Drain,
    /// Push `jobs` jobs, each by a call of its own, `flight` calls at once.
    Single,
    /// Push `jobs` jobs, `rate` per second, each by itself.
    Steady,
    /// Push `jobs` jobs that are due evenly spread over `spread` seconds, starting in 1 s.
    Later,
    /// Handle `jobs` jobs that will come; measure how long after their moment they start.
    Listen,
    /// Push `jobs` jobs over `keys` keys; a key allows one job at a time.
    PushKeyed,
    /// The same, but each job also needs a shared permit and a resource.
    PushThree,
    /// Handle `jobs` such jobs; count those that overlapped with another of their key.
    DrainKeyed,
    /// Push `jobs` jobs that all need the same key, which allows one at a time.
    PushBlocked,
    /// Push `jobs` jobs without a key, to the queue of [`Role::PushBlocked`].
    PushFree,
    /// Handle jobs until `jobs` free ones are done; a blocked one takes a second.
    DrainFree,
    /// Push, lease and settle in batches of `batch`, `flight` calls at once, for `seconds` seconds.
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

/// The arguments of one run of a program.
#[derive(Clone, Debug)]
pub struct Call {
    pub role: Role,
    /// The port of the server, on 127.0.0.1.
    pub port: u16,
    /// The number of jobs to push or handle.
    pub jobs: u64,
    /// Jobs handled at once.
    pub concurrency: usize,
    /// Pushes per second of a steady load.
    pub rate: u64,
    /// Seconds over which delayed jobs are due.
    pub spread: u64,
    /// Number of keys that jobs are spread over.
    pub keys: u64,
    /// Seconds that a lifecycle runs.
    pub seconds: u64,
    /// Items of one call.
    pub batch: usize,
    /// Calls that may be in flight.
    pub flight: usize,
    /// Whether a program that listens also pushes: its server is in it.
    pub one_program: bool,
    /// The variant to run, if the program has several.
    pub way: String,
}

impl Call {
    /// Reads the arguments from the command line.
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
            one_program: false,
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
                "--one-program" => call.one_program = value == "1",
                "--way" => call.way = value,
                _ => return Err(format!("no option is called {name}").into()),
            }
        }
        Ok(call)
    }

    /// The URL of the Redis server.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The URL of a store in the folder of this measurement.
    pub fn folder_url(&self) -> Result<String, Failed> {
        let store = std::env::var("PEERS_STORE").map_err(|_| "which folder? (PEERS_STORE)")?;
        Ok(format!("file:{store}"))
    }

    /// The time until the job `n` of [`Role::Later`] is due, in microseconds.
    pub fn due_in_us(&self, n: u64) -> u64 {
        1_000_000 + n * self.spread * 1_000_000 / self.jobs.max(1)
    }
}
