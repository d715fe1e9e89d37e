//! `copy`: from which store to which.

use std::path::PathBuf;

use clap::Args;

const AFTER: &str = "\
The source is paused first and stays paused. The target must be empty. If the copy breaks off,
repeat the command to start it again. Live leases of the source end as `released`; the target serves
no calls until the last of them has expired.

Example:
  tenure copy --from file:./tenure-data --to redis://HOST:6379

To undo it:
  tenure copy --thaw --to TO        discards an unfinished copy: TO is empty again
  tenure copy --thaw --from FROM    serves FROM again

Put an address with a password into TENURE_COPY_FROM or TENURE_COPY_TO, where other users of this
machine cannot see it.";

/// The arguments of `tenure copy`.
#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub struct CopyArgs {
    /// The store to copy: file:PATH (no server may run on it), or redis:// and the like.
    // The values are not shown in the help: an address may carry a password.
    #[arg(long, value_name = "STORE", env = "TENURE_COPY_FROM", hide_env_values = true)]
    pub from: Option<String>,
    /// The target: file:PATH (created if it does not exist), or redis:// and the like.
    #[arg(long, value_name = "STORE", env = "TENURE_COPY_TO", hide_env_values = true)]
    pub to: Option<String>,
    /// Open contents with the keys of this file, and seal those of the target with its first key. A source that is sealed
    /// needs it.
    #[arg(long, value_name = "FILE", env = "TENURE_SEAL_KEY_FILE", hide_env_values = true)]
    pub seal_key_file: Option<PathBuf>,
    /// Copy nothing. With --to, discard an unfinished copy; with --from, serve the source again.
    #[arg(long)]
    pub thaw: bool,
    /// With --thaw --from: serve the source even if its copy is complete. If both stores are used, every job runs
    /// twice.
    #[arg(long, requires = "thaw")]
    pub force: bool,
}
