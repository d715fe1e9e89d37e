//! The link against real servers: what a caller sees when a server is slow, gone, elsewhere or does
//! not let us in. All waits have a deadline; nothing sleeps for a time that somebody guessed.

mod calls;
mod cluster;
mod dead;
mod foreign;
#[expect(dead_code, reason = "the tests of failures hold back one connection of many")]
mod proxy;
mod secrets;
mod sentinel;
mod sharded;
mod single;
mod subscription;
