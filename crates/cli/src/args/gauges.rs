//! The gauge of a limit on the command line. It is set whole: an address that is shown has no password to keep.

use clap::{ArgGroup, Args};

/// Where work outside is counted.
#[derive(Args, Debug, Default)]
#[command(group(ArgGroup::new("gauge-address").args(["gauge", "gauge_scrapyd"])))]
pub struct GaugeArgs {
    /// Count work outside of Tenure: an address that answers numbers as JSON. @FILE reads it from a file, which
    /// hides a password from other users. Replaces the whole gauge; needs a concurrency.
    #[arg(long, value_name = "URL|@FILE|none")]
    pub gauge: Option<String>,
    /// JSON pointer to the number; several are added up.
    #[arg(long, value_name = "POINTER", requires = "gauge")]
    pub gauge_count: Vec<String>,
    /// Count the pending and running jobs of the scrapyd at this address.
    #[arg(long, value_name = "URL|@FILE")]
    pub gauge_scrapyd: Option<String>,
    /// Count this project only; a scrapyd before 1.5 needs it.
    #[arg(long, value_name = "NAME", requires = "gauge_scrapyd")]
    pub gauge_project: Option<String>,
    /// How often to read it while the limit is in use (2s).
    #[arg(long, value_name = "D", requires = "gauge-address")]
    pub gauge_every: Option<String>,
    /// How long the address may take to show a start (10s).
    #[arg(long, value_name = "D", requires = "gauge-address")]
    pub gauge_lag: Option<String>,
    /// Age from which the last reading is stale (30s).
    #[arg(long, value_name = "D", requires = "gauge-address")]
    pub gauge_stale: Option<String>,
    /// While it cannot be read: keep the last value, or hold all grants (keep).
    #[arg(long, value_name = "keep|hold", requires = "gauge-address")]
    pub gauge_on_stale: Option<String>,
}
