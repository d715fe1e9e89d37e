//! `tenure redis …`: what an operator of a Redis needs of Tenure, without speaking to any Redis.

use serde::Serialize;
use tenure_engine_redis::library::Library;

use crate::args::redis::RedisCommand;
use crate::exit::Failure;
use crate::output::Output;

#[derive(Serialize)]
struct Printed<'a> {
    name: &'a str,
    fingerprint: &'a str,
    text: &'a str,
}

/// Does what was said.
pub fn run(out: Output, command: RedisCommand) -> Result<(), Failure> {
    let RedisCommand::PrintLibrary = command;
    let library = Library::release();
    let (name, fingerprint, text) = (library.name(), library.fingerprint(), library.text());
    out.answer(&Printed { name, fingerprint, text }, |printed| printed.text.to_owned())
}
