//! `backup` and `restore`: a whole store in one file.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const BACKUP_AFTER: &str = "\
Calls go on while the backup is made. It has all namespaces, with payloads, results and the data of
resources (passwords, keys): the file is readable for its owner alone. Events are not in it.

Examples:
  tenure backup /var/backups/tenure.backup
  tenure backup - | age -r KEY > tenure.backup.age     encrypted on its way
  tenure backup verify /var/backups/tenure.backup
  tenure --url file:./tenure-data backup saved.backup  a folder without a server";

/// The arguments of `tenure backup`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = BACKUP_AFTER)]
pub struct BackupArgs {
    /// The action; without one a backup is made.
    #[command(subcommand)]
    pub action: Option<BackupAction>,
    /// The file to write, or `-` for stdout. It appears once it is whole.
    #[arg(value_name = "FILE|-", required = true)]
    pub file: Option<PathBuf>,
    /// Replace the file if it exists.
    #[arg(long)]
    pub force: bool,
}

/// Actions on backups.
#[derive(Subcommand, Debug)]
pub enum BackupAction {
    /// Check that a file is a whole backup, which this release can restore.
    #[command(after_help = "Every byte is read and every checksum is compared. No store is opened.

Example:
  tenure backup verify /var/backups/tenure.backup")]
    Verify(VerifyArgs),
}

/// The arguments of `tenure backup verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The file.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

const RESTORE_AFTER: &str = "\
The target must be empty. Every lease of the old store ends: the job runs again, and no holder can
settle it. The target serves no calls until the last of these leases has expired. Fences go on rising.
If the restore breaks off, repeat the command to start it again, or discard it:
tenure copy --thaw --to STORE.

Stop the servers of the old store first: if both are used, every job runs twice.

Examples:
  tenure restore tenure.backup --to file:./tenure-data
  tenure restore tenure.backup --to redis://HOST:6379?name=restored

Put an address with a password into TENURE_RESTORE_TO, where other users of this machine cannot see
it.";

/// The arguments of `tenure restore`.
#[derive(Args, Debug)]
#[command(after_help = RESTORE_AFTER)]
pub struct RestoreArgs {
    /// The backup.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The target: file:PATH (created if it does not exist), or redis:// and the like.
    // The value is not shown in the help: an address may carry a password.
    #[arg(long, value_name = "STORE", env = "TENURE_RESTORE_TO", hide_env_values = true)]
    pub to: String,
    /// Open contents with the keys of this file, and seal those of the target with its first key. A backup of a sealed store
    /// needs it.
    #[arg(long, value_name = "FILE", env = "TENURE_SEAL_KEY_FILE", hide_env_values = true)]
    pub seal_key_file: Option<PathBuf>,
    /// Do not wait for the leases of the old store: all of its workers have stopped, or it has been down for longer
    /// than its longest ttl.
    #[arg(long)]
    pub no_wait: bool,
}
