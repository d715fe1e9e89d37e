//! CMD: what it finds when it starts, how it is run and stopped, and what its end means.
//!
//! Nothing here speaks to a store.

pub mod environment;
pub mod guard;
pub mod outcome;
pub mod run;
pub mod run_folder;
pub mod signals;
pub mod stderr;
pub mod terminal;
