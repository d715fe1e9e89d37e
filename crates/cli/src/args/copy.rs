//! `copy`: from which store to which.

use clap::Args;

const AFTER: &str = "\
The source is paused first, and stays paused: nothing is served from it any more. The target must be
empty. A copy that was broken off is taken up by the same command. Leases that live at the source end
as `released`; the copy waits until the last of them has run out before it serves anybody.

To undo it:
  tenure copy --thaw --to TO        gives up a copy that is unfinished: TO is empty again
  tenure copy --thaw --from FROM    serves FROM again, whose copy is unfinished or was given up

An address with a password belongs into TENURE_COPY_FROM and TENURE_COPY_TO, where others of this
machine cannot see it.";

/// `tenure copy`.
#[derive(Args, Debug)]
#[command(after_help = AFTER)]
pub struct CopyArgs {
    /// The store to copy: file:PATH (no server may run on it), or redis:// and its kin.
    // The values are not shown in the help: an address may carry a password.
    #[arg(long, value_name = "STORE", env = "TENURE_COPY_FROM", hide_env_values = true)]
    pub from: Option<String>,
    /// Where to: file:PATH (made if it is not there), or redis:// and its kin.
    #[arg(long, value_name = "STORE", env = "TENURE_COPY_TO", hide_env_values = true)]
    pub to: Option<String>,
    /// Copy nothing: with --to give up an unfinished copy, else serve the source again.
    #[arg(long)]
    pub thaw: bool,
    /// With --thaw --from: though its copy is whole. If both are used, every job runs in both.
    #[arg(long, requires = "thaw")]
    pub force: bool,
}
