//! Tenure's words and its pure rules.
//!
//! Nothing in this crate does I/O, reads a clock, draws a random number or awaits. The engines obey
//! what is decided here; [`requests`] is the whole surface that they answer.

pub mod bounds;
pub mod copy;
pub mod count;
pub mod decode;
pub mod job;
pub mod json;
pub mod lease;
pub mod machine;
pub mod names;
mod ops;
pub mod refusal;
pub mod requests;
pub mod secret;
pub mod settings;
pub mod time;
