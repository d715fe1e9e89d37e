//! What a server counts of its own calls, and what its store holds, as the text that Prometheus reads.
//!
//! [`CountingEngine`] stands around an engine and counts grants and ends in `counts`; `minutes` keeps the same for pictures of the
//! last day, and [`Past`] counts there what the store's events say of the time before. `state` asks the engine for what it holds, once a second at most. `page` is the list of all metrics: it names
//! each once, with its help; `text` writes it, and another [`SampleSink`] may take the same.
//!
//! Nothing here decides anything. A label has at most [`NAMES_MAX`] names, the rest are summed up in `other`, so that a
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
pub use tenure_seam::histogram::Seen;
pub use text::{Family, SampleSink};

/// So many names has a label at most; the rest are summed up in `other`.
pub const NAMES_MAX: usize = 200;

/// The name of the rest.
pub const OTHER: &str = "other";
