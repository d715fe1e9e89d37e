//! Reads of rows: pages of lists, finished jobs, payloads, and the questions of the machine.

pub(crate) mod ahead;
pub(crate) mod event_jobs;
pub(crate) mod event_pages;
pub(crate) mod failures;
pub(crate) mod finished;
pub(crate) mod kin;
pub(crate) mod lists;
pub(crate) mod overlay;
pub(crate) mod readers;
