//! `tenure work --http` and `--scrapyd`, against servers of the test's own that misbehave: no job is lost, and no job
//! runs twice at once, by the servers' own count.

mod ours;
mod real_scrapyd;
mod scrapyd;
mod server;
mod service;
mod service_trouble;
mod spiders;
mod spiders_trouble;
