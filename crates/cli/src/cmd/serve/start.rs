//! The first line of a server's log: its version, its store, its address and its bounds.
//!
//! It shows the source of the token, and no letter of it.

use std::net::SocketAddr;

use tenure_engine::{Config, Location, Options};
use tenure_server::TrailPlace;

use super::memory;
use crate::args::serve::{DurabilityArg, ServeArgs, size_text};
use crate::settings::layers::Origin;

/// The value of a setting that is the store's, where servers share the store.
const SHARED: &str = "as its store says";

/// Logs it. `store` is shown as it is.
pub fn tell(
    args: &ServeArgs,
    store: &str,
    at: SocketAddr,
    token: Option<&Origin>,
    trail: Option<&TrailPlace>,
) {
    let own = store.starts_with("file:") || store.starts_with("memory:");
    let (config, options) = (Config::default(), Options::new(Location::Memory));
    let size = |given: Option<u64>, usual: u64| match given {
        Some(bytes) => size_text(bytes),
        None if own => size_text(usual),
        None => SHARED.to_owned(),
    };
    let durability = match args.durability {
        _ if store == "memory:" => "gone with this process",
        _ if !own => "as its redis says",
        DurabilityArg::Always => "always",
        DurabilityArg::Everysec => "everysec",
    };
    let patience = match args.patience {
        Some(patience) => patience.to_string(),
        None if own => config.patience.to_string(),
        None => SHARED.to_owned(),
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        store,
        address = %at,
        token = token.map_or("none".to_owned(), |origin| format!("from {origin}")),
        tokens = args.tokens.as_ref().map(|file| file.display().to_string()),
        tls = args.tls_cert.as_ref().map(|file| format!("by {}", file.display())),
        client_ca = args.tls_client_ca.as_ref().map(|file| file.display().to_string()),
        durability,
        retain_bytes = size(args.retain_bytes, config.retain_bytes),
        events_bytes = size(args.events_bytes, options.events_bytes),
        max_bytes = args.max_bytes.map(size_text),
        max_in_flight_bytes = format!("{}MiB", memory::of(args) >> 20),
        drain_timeout = %args.drain_timeout,
        patience,
        trail = trail.map(|place| match place {
            TrailPlace::Folder(folder) => folder.display().to_string(),
            TrailPlace::Stderr => "-".to_owned(),
        }),
        config = args.settings.file.as_ref().map(|file| file.display().to_string()),
        "tenure serves"
    );
}
