//! The pages by a real server on loopback, its engine in memory: what they show, what their buttons do, whom they let in, and
//! that nothing in a job's name or content becomes a part of a page.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod acts;
mod browser;
mod door;
mod hostile;
mod served;
mod shows;
