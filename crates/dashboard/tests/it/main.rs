//! The pages by a real server on loopback: what they show, what their buttons do, whom they let in, and that nothing in a job's
//! name or content becomes a part of a page. `browser` and `walks` do so with a real browser, over each kind of store.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod acts;
mod browser;
mod chromium;
mod door;
mod hostile;
mod scene;
mod served;
mod shows;
mod story;
mod walks;
