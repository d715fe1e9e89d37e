//! `tenure top`: the live screen.

use tenure::Client;

use crate::args::TopArgs;
use crate::exit::Failure;

/// Shows the screen until the user leaves it.
pub async fn run(client: &Client, args: TopArgs, address: &str) -> Result<(), Failure> {
    let address: tenure::url::StoreUrl =
        address.parse().map_err(|why| Failure::usage(format!("{why}")))?;
    let settings = crate::top::TopSettings {
        address: address.to_string(),
        every: args.every.std(),
        told: crate::cmd::explain::told,
        colours: crate::output::colour::is_wanted(&std::io::stdout()),
    };
    crate::top::run(client, settings).await
}
