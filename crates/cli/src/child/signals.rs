//! The signals that ask this process to end.
//!
//! A signal that this process was started to ignore (`nohup`, `&` in a script) stays ignored, except for a server's
//! SIGHUP, which ends nothing: see [`Signals::of_a_server`].

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use nix::sys::signal::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use crate::exit::{BUG, Failure};

/// The signals that are listened to.
pub const ENDING: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// [`ENDING`], as they come.
pub struct Signals {
    streams: Vec<(Signal, Stream)>,
}

impl Signals {
    /// Listens from now on.
    pub fn listen() -> Result<Self, Failure> {
        Signals::all_except(is_ignored)
    }

    /// The same, and to SIGHUP also where it is ignored: under `nohup` too it has a server read its files.
    pub fn of_a_server() -> Result<Self, Failure> {
        Signals::all_except(|kind| kind != Signal::SIGHUP && is_ignored(kind))
    }

    fn all_except(left_out: impl Fn(Signal) -> bool) -> Result<Self, Failure> {
        let mut streams = Vec::new();
        for kind in ENDING {
            if left_out(kind) {
                continue;
            }
            let stream: io::Result<Stream> = signal(SignalKind::from_raw(kind as i32));
            let stream = stream
                .map_err(|error| Failure::new(BUG, format!("cannot listen to signals: {error}")))?;
            streams.push((kind, stream));
        }
        Ok(Signals { streams })
    }

    /// The next one. May be dropped and called again.
    pub async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (kind, stream) in &mut self.streams {
                if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                    return Poll::Ready(*kind);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Whether this process ignores it; not where the system does not say.
pub fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal as u64 - 1)) != 0
}
