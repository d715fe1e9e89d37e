//! Tenure's vocabulary: names, time, jobs, leases, settings, requests and refusals, with their readers and writers.
//!
//! Nothing in this crate does I/O, reads a clock, draws a random number or awaits. [`requests`] is the whole surface
//! that an engine answers; the rules by which it answers are in `tenure-machine`.

pub mod access;
mod at;
pub mod attention;
pub mod bounded;
pub mod bounds;
pub mod count;
pub mod decode;
pub mod events;
pub mod flow;
pub mod gauge;
pub mod job;
pub mod json;
pub mod lease;
pub mod leased;
pub mod moments;
pub mod names;
pub mod need_template;
mod number;
#[cfg(any(feature = "chrono", feature = "jiff"))]
mod other_times;
mod parents;
pub mod percent;
pub mod progress;
pub mod redact;
pub mod redis_address;
pub mod refusal;
pub mod requests;
pub mod schedule;
pub mod secret;
pub mod sentences;
pub mod settings;
pub mod shell;
pub mod spread;
pub mod time;
pub mod trace;
pub mod trail;
pub mod view;
#[doc(hidden)]
pub mod words;
