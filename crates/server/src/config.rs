//! The bounds of one server: times, sizes and counts.

use std::time::Duration;

/// Bounds of one server. The contract's own bounds are not here: they are `tenure_core::bounds`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The head of a request must have come so long after its first byte; else 408.
    pub head_max: Duration,
    /// The next bytes of a body must have come so long after those before; else 408.
    pub body_pause_max: Duration,
    /// A body that is not NDJSON must have come whole within this; else 408.
    pub body_max: Duration,
    /// A connection without a request is closed after so long. Above what clients keep theirs, so
    /// that it is mostly they who close.
    pub idle_max: Duration,
    /// A caller who does not read its answer for so long is gone.
    pub write_pause_max: Duration,
    /// A refused request's body is read on for so long, so that its sender sees the answer.
    pub linger: Duration,
    /// Connections at once; more wait in the listener's own line.
    pub connections_max: usize,
    /// Connections at once from one address that have shown no token yet; more are closed at once.
    pub strangers_per_address_max: usize,
    /// Bytes of bodies and of answers that have not left, of all connections together; beyond it
    /// calls are refused with 503 `overloaded`. A single call may need 16 MiB.
    pub in_flight_bytes_max: usize,
    /// The longest head of a request, before whose end nothing is known of its caller; else 431.
    pub head_bytes_max: usize,
    /// While it drains, the server ends when no heartbeat and no settle came for this long.
    pub quiet: Duration,
    /// A call of a store that several servers share is refused if no owner answers for this long. Above the pause of a takeover, and
    /// below the 10 s for which our clients wait: they hear the refusal.
    pub pass_on_max: Duration,
    /// A drain ends after so long, whatever is still asked.
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
            // All who may stand at one door, and as many beside them.
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
    /// The same for a port that a few programs ask now and then, so that it cannot take what the server itself needs.
    pub(crate) fn for_metrics(self) -> Self {
        Config { connections_max: 32, in_flight_bytes_max: 32 * 1024 * 1024, ..self }
    }
}
