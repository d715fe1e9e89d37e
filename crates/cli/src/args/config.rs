//! The settings file, which `serve` and `work` take.

use std::path::PathBuf;

use clap::Args;

/// Where the settings of a command are.
#[derive(Args, Debug, Clone)]
pub struct ConfigArg {
    /// The settings file, in TOML. Without it, a server reads /etc/tenure/tenure.toml if that file exists.
    #[arg(id = "config", long = "config", value_name = "FILE")]
    #[arg(env = "TENURE_CONFIG", hide_env_values = true)]
    pub file: Option<PathBuf>,
}
