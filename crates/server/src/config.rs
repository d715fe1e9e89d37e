//! The bounds of one server: times, sizes and counts.

use std::time::Duration;

/// Bounds of one server. The contract's own bounds are in `tenure_core::bounds`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// From the first byte of a request's head to its last; 408 after that.
    pub head_max: Duration,
    /// Between two parts of a body; 408 after that.
    pub body_pause_max: Duration,
    /// From the head to the last byte of a body that is not NDJSON; 408 after that.
    pub body_max: Duration,
    /// A connection without a request is closed after this. Longer than clients keep an idle connection, so that mostly
    /// the clients close.
    pub idle_max: Duration,
    /// A caller that does not read its answer for this long is gone.
    pub write_pause_max: Duration,
    /// The body of a refused request is read for this long, so that its sender sees the answer.
    pub linger: Duration,
    /// Connections at once; more wait in the listener's backlog.
    pub connections_max: usize,
    /// Connections at once from one address that have shown no token yet; more are closed at once.
    pub strangers_per_address_max: usize,
    /// Bytes of all bodies and of all answers that have not left. Beyond it calls are refused with 503 `overloaded`. A
    /// single call may need 16 MiB.
    pub in_flight_bytes_max: usize,
    /// The longest head of a request, since its caller is unknown until its end; 431 above that.
    pub head_bytes_max: usize,
    /// A drain ends when no heartbeat and no settle has come for this long.
    pub quiet: Duration,
    /// A call of a shared store is refused if no leader answers for this long. Above the pause of a takeover, and
    /// below the 10 s for which our clients wait, so that they see the refusal.
    pub pass_on_max: Duration,
    /// A drain ends after this, even if requests are still unanswered.
    pub drain_max: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            head_max: Duration::from_secs(10),
            body_pause_max: Duration::from_secs(15),
            body_max: Duration::from_secs(120),
            idle_max: Duration::from_secs(75),
            write_pause_max: Duration::from_secs(30),
            linger: Duration::from_secs(1),
            // All waiting calls of one wait queue, and as many beside them.
            connections_max: 2 * tenure_core::bounds::LINE_MAX,
            strangers_per_address_max: 1_000,
            in_flight_bytes_max: 512 * 1024 * 1024,
            head_bytes_max: 32 * 1024,
            quiet: Duration::from_millis(500),
            pass_on_max: Duration::from_secs(8),
            drain_max: Duration::from_secs(25),
        }
    }
}

impl Config {
    /// The same bounds for a port that a few programs poll, so that it cannot take memory that the server itself needs.
    pub(crate) fn for_metrics(self) -> Self {
        Config { connections_max: 32, in_flight_bytes_max: 32 * 1024 * 1024, ..self }
    }
}
