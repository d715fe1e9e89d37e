//! CMD: its environment, how it is run and stopped, and the meaning of its end.
//!
//! Nothing here calls a store.

pub mod environment;
pub mod grace;
pub mod guard;
pub mod outcome;
pub mod run;
pub mod run_folder;
pub mod signals;
pub mod stderr;
pub mod terminal;
