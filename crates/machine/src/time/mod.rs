//! Time: the tick, schedules and their occurrences, timers, and recovery.

pub(crate) mod agenda;
pub(crate) mod firing;
pub(crate) mod moments;
pub(crate) mod recovery;
pub(crate) mod tick;
pub(crate) mod timers;
