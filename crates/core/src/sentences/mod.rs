//! Sentences: every text in Tenure's answers that people read, such as refusals, reasons to wait and notes on an end.
//!
//! A sentence is written here once. The code that decides (the state machine, a decoder, the server) names a case and
//! its parameters; this module makes the text.
//!
//! A new refusal is a new row here, and a page in `docs/errors` if its code is new. Texts have one form: lower case,
//! names in double quotes, no full stop at the end; a hint gives the next step. No parameter is a secret.

mod access;
mod bodies;
mod copies;
mod ends;
mod flows;
mod jobs;
mod leases;
mod limits;
mod names;
mod needs;
mod phrases;
mod pools;
mod queues;
mod reasons;
mod schedules;
mod server;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod timings;
mod values;

pub use access::AccessRefusal;
pub use bodies::{BodyRefusal, SetPlace};
pub use copies::{CopyRefusal, PausedStore};
pub use ends::{StoredNote, snoozed_too_often};
pub use flows::FlowRefusal;
pub use jobs::JobRefusal;
pub use leases::LeaseRefusal;
pub use limits::LimitRefusal;
pub use names::NameRefusal;
pub use needs::NeedRefusal;
pub(crate) use phrases::{cut, did_you_mean, listed};
pub use pools::PoolRefusal;
pub use queues::QueueRefusal;
pub(crate) use reasons::summary;
pub use reasons::{UNREADABLE_SUMMARY, WaitCause, Wanted};
pub use schedules::{Coming, ScheduleRefusal};
pub use server::ServerRefusal;
pub use store::{STORE_FORGOT, StoreRefusal, clock_behind, clock_leapt, deaf, recovers};
pub use timings::TimingRefusal;
pub use values::ValueRefusal;

/// A word or phrase of the program, or one that was read from another process.
pub type Phrase = std::borrow::Cow<'static, str>;
