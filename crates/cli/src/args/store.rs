//! The arguments of `store`.

use clap::{Args, Subcommand, ValueEnum};
use tenure_core::time::Span;

use crate::args::serve::size;
use crate::args::value::span;

/// Calls on the settings of a store: `tenure store …`.
#[derive(Subcommand, Debug)]
pub enum StoreAction {
    /// Show the settings, the server that leads the store, and the progress of its standbys.
    Show(StoreAddress),
    /// Change settings; settings that are not named stay. A change takes effect within two seconds.
    Set(StoreSetArgs),
    /// Make a snapshot of the store now, which shortens its log in Redis.
    Compact {
        /// The store to compact.
        #[command(flatten)]
        address: StoreAddress,
        /// How long to wait for the snapshot.
        #[arg(long, value_name = "D", default_value = "5m", value_parser = span)]
        timeout: Span,
    },
}

/// Which store is meant.
#[derive(Args, Debug)]
pub struct StoreAddress {
    /// The address of the Redis, as given to the servers of the store. Put an address with a password into the
    /// variable, where other users of this machine cannot see it.
    #[arg(long, env = "TENURE_STORE", hide_env_values = true, value_name = "STORE")]
    pub store: Option<String>,
}

/// The arguments of `tenure store set`.
#[derive(Args, Debug)]
pub struct StoreSetArgs {
    /// The store to change.
    #[command(flatten)]
    pub address: StoreAddress,
    /// A job that has been blocked for this long reserves its needs.
    #[arg(long, value_name = "D", value_parser = span)]
    pub patience: Option<Span>,
    /// Space for finished jobs: a number of bytes, or with KiB, MiB, GiB, TiB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub retain_bytes: Option<u64>,
    /// Space for the events of each namespace, where the oldest are dropped first; 0 keeps none.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub events_bytes: Option<u64>,
    /// Set `never` only if Redis cannot lose an answered write: it syncs each write, and no replica is ever
    /// promoted. A server that takes over after a restart of Redis then does not wait.
    #[arg(long, value_enum)]
    pub forgets: Option<ForgetsArg>,
    /// How many replicas must have a write before it is answered. Nothing is lost if these are all replicas that
    /// may become the primary. 0: only the primary.
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
