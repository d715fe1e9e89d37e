//! The arguments of `store`.

use clap::{Args, Subcommand, ValueEnum};
use tenure_core::time::Span;

use crate::args::serve::size;
use crate::args::value::span;

/// Calls on the settings of a store: `tenure store …`.
#[derive(Subcommand, Debug)]
pub enum StoreAction {
    /// Show the settings, who owns the store, and how far its other servers are.
    Show(StoreAddress),
    /// Change settings; what is not named stays. The owner goes by a change within two seconds.
    Set(StoreSetArgs),
    /// Have the owner make a snapshot now, so that the log in Redis becomes short.
    Compact {
        /// The store to compact.
        #[command(flatten)]
        address: StoreAddress,
        /// How long to wait until the snapshot is there.
        #[arg(long, value_name = "D", default_value = "5m", value_parser = span)]
        timeout: Span,
    },
}

/// Which store is meant.
#[derive(Args, Debug)]
pub struct StoreAddress {
    /// The address of the Redis, as the servers of the store have it. Put an address with a password into the variable, where
    /// other users of this machine cannot see it.
    #[arg(long, env = "TENURE_STORE", hide_env_values = true, value_name = "STORE")]
    pub store: Option<String>,
}

/// The arguments of `tenure store set`.
#[derive(Args, Debug)]
pub struct StoreSetArgs {
    /// The store to change.
    #[command(flatten)]
    pub address: StoreAddress,
    /// After being blocked this long, a job reserves what it needs.
    #[arg(long, value_name = "D", value_parser = span)]
    pub patience: Option<Span>,
    /// How much room finished jobs may take: a number of bytes, or with KiB, MiB, GiB, TiB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub retain_bytes: Option<u64>,
    /// How much room the events of each namespace may take, the oldest dropped first; 0 keeps none.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub events_bytes: Option<u64>,
    /// Whether Redis may forget what was answered: never only if it syncs each write and no replica ever takes the place of
    /// the primary. A server that takes over after Redis was started anew then need not wait.
    #[arg(long, value_enum)]
    pub forgets: Option<ForgetsArg>,
    /// How many replicas must have what is written before it is answered: nothing is lost if these are all replicas that may
    /// become the primary. 0: the primary alone.
    #[arg(long, value_name = "N")]
    pub replicas: Option<u32>,
}

/// The values of [`StoreSetArgs::forgets`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ForgetsArg {
    /// It never does.
    Never,
    /// It may, as any Redis.
    Perhaps,
}
