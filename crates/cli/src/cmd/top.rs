//! `tenure top`: the live screen, in builds that have it.

use tenure::Client;

use crate::args::TopArgs;
use crate::exit::Failure;

/// Shows it until the user leaves it.
#[cfg(feature = "top")]
pub async fn run(client: &Client, args: TopArgs, address: &str) -> Result<(), Failure> {
    let address: tenure::url::StoreUrl =
        address.parse().map_err(|why| Failure::usage(format!("{why}")))?;
    let settings = tenure_top::TopSettings {
        address: address.to_string(),
        every: args.every.std(),
        told: crate::cmd::explain::told,
        colours: crate::output::colour::is_wanted(&std::io::stdout()),
    };
    tenure_top::run(client, settings).await
}

/// Says how to get it.
#[cfg(not(feature = "top"))]
pub async fn run(_: &Client, _: TopArgs, _: &str) -> Result<(), Failure> {
    Err(Failure::usage("this build of tenure has no `top`").hint(
        "packages have it; from a clone: cargo build --release --features top. `tenure status` says \
         the same in ten lines",
    ))
}
