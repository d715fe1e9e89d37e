//! The signals by which this process is told to end.
//!
//! A signal that whoever started this process chose to ignore (`nohup`, `&` in a script) stays
//! ignored.

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
        let ignored = ignored();
        let mut streams = Vec::new();
        for kind in ENDING {
            if ignored & (1 << (kind as u64 - 1)) != 0 {
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

/// The signals that this process ignores, a bit each; none where the system does not say.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
