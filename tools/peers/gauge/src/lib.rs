//! Parts that every measured Rust program shares: its arguments, the payload of a job, the counting
//! and the output. It must not favour any system: it does the same for all, and little.
//!
//! A program is called as `PROGRAM ROLE PORT [--name value]…` and prints one line of JSON at its
//! end. A role that listens first prints `ready`, when it can be given work. `PEERS_STORE` is a folder for the jobs of a
//! program that has no server; it need not be there yet.

mod call;
mod drive;
mod report;
mod tally;

pub use call::{Call, Role};
pub use drive::{in_bulk, one_by_one, steadily};
pub use report::{cpu_seconds, peak_rss_bytes, report};
pub use tally::Tally;

use serde::{Deserialize, Serialize};

/// One allocator for all: good for programs with many threads; the server of Tenure uses it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The failure of a program.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The payload of every job: about 100 bytes as JSON.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Payload {
    /// The number of the job.
    pub n: u64,
    /// The time from which its handler's start is measured, in microseconds of [`now_us`].
    pub t: u64,
    /// The kind of work: `free`, `slow`, or a key.
    pub k: String,
    /// Padding to the usual size.
    pub pad: String,
}

impl Payload {
    /// The payload of the job `n`, measured from `t`.
    pub fn new(n: u64, t: u64, k: &str) -> Self {
        Payload { n, t, k: k.to_owned(), pad: "x".repeat(48) }
    }
}

/// Microseconds on a monotonic clock that all processes of this machine share.
pub fn now_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

/// Reports that the program can be given work.
pub fn ready() {
    println!("ready");
}
