//! The pages by a real server on loopback: their content, their buttons and their access control; and nothing in a
//! job's name or content becomes a part of a page. `browser` and `walks` do the same with a real browser, over each
//! kind of store.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod acts;
mod browser;
mod chromium;
mod door;
mod hostile;
mod last_changes;
mod scene;
mod scopes;
mod served;
mod shows;
mod story;
mod walks;
