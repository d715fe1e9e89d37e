//! Jobs that are spiders of a scrapyd (`tenure work --scrapyd`): the calls to it, the run of a job among its runs, and
//! the end of a run.
//!
//! A scrapyd keeps no promises: it runs one id twice if it is asked twice, forgets what it ran, and answers errors with
//! 200. The job's progress holds all that is certain of a run; the end of its log says how it ended.

pub mod api;
pub mod follow;
pub mod log_end;
pub mod spider;
pub mod stopping;
pub mod trail;
