//! `tenure version`.

use serde::Serialize;

use crate::exit::Failure;
use crate::output::Output;

/// The contract that this command speaks.
pub const CONTRACT: u32 = 1;

#[derive(Serialize)]
struct Version {
    version: &'static str,
    commit: Option<&'static str>,
    contract: u32,
}

/// Prints version, commit and contract.
pub fn version(out: Output) -> Result<(), Failure> {
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("TENURE_COMMIT"),
        contract: CONTRACT,
    };
    out.answer(&version, |version| match version.commit {
        Some(commit) => format!("tenure {} ({commit})\n", version.version),
        None => format!("tenure {}\n", version.version),
    })
}
