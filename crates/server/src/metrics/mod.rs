//! Counts the calls of a server, and shows them with the state of its store as the text that Prometheus reads.
//!
//! [`CountingEngine`] wraps an engine and counts grants and ends in `counts`; `minutes` keeps the same for pictures of
//! the last day, and [`Past`] adds the store's events from before. `state` asks the engine for the state of the store,
//! at most once a second. `page` is the list of all metrics: it names each once, with its help; `text` writes it, and
//! another [`SampleSink`] may receive the same.
//!
//! Nothing here decides anything. A label has at most [`NAMES_MAX`] names, and `other` sums up the rest, so that a
//! program with a queue for each customer does not fill a Prometheus.

mod counted;
mod counts;
mod held;
mod http;
mod minute;
mod minutes;
mod page;
mod past;
mod process;
mod state;
mod text;

pub use counted::CountingEngine;
pub use counts::CallCounts;
pub use held::OpenRuns;
pub use http::{HttpCounts, InFlight};
pub use minute::{Minute, Times};
pub use minutes::Minutes;
pub use page::{CONTENT_TYPE, Metrics};
pub use past::Past;
pub use tenure_engine_api::histogram::Seen;
pub use text::{Family, SampleSink};

/// Most names of a label; `other` sums up the rest.
pub const NAMES_MAX: usize = 200;

/// Label of the rest, in place of a name.
pub const OTHER: &str = "other";
