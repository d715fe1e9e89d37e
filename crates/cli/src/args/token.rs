//! The arguments of `token`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::value::{End, end};

/// Calls about tokens: `tenure token …`.
#[derive(Subcommand, Debug)]
pub enum TokenAction {
    /// Make a token, and print it with its block for the file of --tokens.
    New(TokenNewArgs),
    /// Check a file of tokens, and list them.
    Check {
        /// The file, as given to `tenure serve --tokens`.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Show the name and the grants of the token in TENURE_TOKEN.
    Who,
}

/// The arguments of `tenure token new`.
#[derive(Args, Debug)]
pub struct TokenNewArgs {
    /// The name of the token, which logs and refusals show: a-z, 0-9 and "-".
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What it may do: metrics, view, read, push, work, operate, admin; several are separated by commas.
    #[arg(long, alias = "scope", value_name = "SCOPE,…", required = true, value_delimiter = ',')]
    pub scopes: Vec<String>,
    /// The namespaces that it may use: names, or beginnings such as "web-*"; "*" is all. If not given, the one of
    /// --namespace.
    #[arg(long, value_name = "PATTERN,…", value_delimiter = ',')]
    pub namespaces: Option<Vec<String>>,
    /// The queues for push and work; all if not given.
    #[arg(long, value_name = "PATTERN,…", value_delimiter = ',')]
    pub queues: Option<Vec<String>>,
    /// The limits and pools that it may hold, such as "limit:site:*" or pool:proxies; all if not given.
    #[arg(long, value_name = "PATTERN,…", value_delimiter = ',')]
    pub needs: Option<Vec<String>>,
    /// When it ceases to be valid: a moment, or a duration from now; never if not given.
    #[arg(long, value_name = "WHEN", value_parser = end)]
    pub expires: Option<End>,
    /// How many calls it may make in a time, such as 200/1s; as many may come at once. Any number if not given.
    #[arg(long, value_name = "N/D")]
    pub calls: Option<String>,
    /// How many calls, streams and waits of it may be under way at once; any number if not given.
    #[arg(long, value_name = "N")]
    pub in_flight: Option<u32>,
}
