//! What may be said to the commands that are about Redis itself.

use clap::{Args, Subcommand};

/// `tenure doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// The Redis or Valkey (redis://, rediss://, valkey://, redis-sentinel://, redis-cluster://);
    /// without it TENURE_URL, where others of this machine cannot see a password.
    #[arg(value_name = "URL")]
    pub address: Option<String>,
}

/// `tenure redis …`.
#[derive(Subcommand, Debug)]
pub enum RedisCommand {
    /// Print the function library, for an operator to load where Tenure itself may not:
    /// `tenure redis print-library | redis-cli -x FUNCTION LOAD REPLACE`, on every primary.
    PrintLibrary,
}
