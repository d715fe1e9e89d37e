//! Servers and workers as processes: started, stopped, killed and cut off, on each kind of store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod chaos;
mod crash_loop;
mod demo;
mod ending;
mod full_disk;
mod gauge;
mod killed;
mod leap;
mod linear;
mod operating;
mod over_http;
mod owner;
mod redis;
mod serve;
mod unread_stderr;
