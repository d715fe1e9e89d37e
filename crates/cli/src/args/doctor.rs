//! The arguments of `doctor`.

use clap::Args;

/// The arguments of `tenure doctor`.
#[derive(Args, Debug)]
#[command(
    after_help = "Each check is ok, look (it has a cost, or may become a problem) or wrong. If a check is wrong,
the exit code is 1.

Examples:
  tenure doctor                        the server at TENURE_URL, or on this machine
  tenure doctor file:./tenure-data     a folder: free space, syncs, its process
  tenure doctor redis://HOST:6379"
)]
pub struct DoctorArgs {
    /// A server (http://…), a folder (file:PATH) or a Redis (redis://… and the like). Without it, TENURE_URL (where
    /// other users of this machine cannot see a password), or http://127.0.0.1:7171.
    #[arg(value_name = "URL")]
    pub address: Option<String>,
}
