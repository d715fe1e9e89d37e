//! What every measured Rust program shares: how it is called, what a job carries, how it counts and
//! what it prints. It must never favour anybody: it does the same for all, and little.
//!
//! A program is called as `PROGRAM ROLE PORT [--name value]…` and prints one line of JSON at its
//! end. A role that listens prints `ready` before, when it may be given work.

mod call;
mod drive;
mod report;
mod tally;

pub use call::{Call, Role};
pub use drive::{in_bulk, one_by_one, steadily};
pub use report::{cpu_seconds, peak_rss_bytes, report};
pub use tally::Tally;

use serde::{Deserialize, Serialize};

/// The same for all: what serves well in programs with many threads, as the server of Tenure has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What a program may fail with.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What every job carries: about 100 bytes as JSON.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Payload {
    /// Its number.
    pub n: u64,
    /// The moment from which its handler's start is measured, in microseconds of [`now_us`].
    pub t: u64,
    /// Which kind of work it is: `free`, `slow`, or a key.
    pub k: String,
    /// Nothing.
    pub pad: String,
}

impl Payload {
    /// The job `n`, to be measured from `t`.
    pub fn new(n: u64, t: u64, k: &str) -> Self {
        Payload { n, t, k: k.to_owned(), pad: "x".repeat(48) }
    }
}

/// Microseconds on a clock that all processes of this machine share and nobody sets.
pub fn now_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

/// Says that work may come.
pub fn ready() {
    println!("ready");
}
