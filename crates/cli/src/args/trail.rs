//! The arguments of `trail`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tenure_core::names::Namespace;
use tenure_core::time::{Moment, Span, TimeError};

use crate::args::page::PageArgs;
use crate::args::value::{past_moment, span};

const TRAIL_AFTER: &str = "\
Lines are those of the server that answers, newest first. Each server of a store has a trail of its
own. It needs a token with admin. With --namespace, only calls in that namespace are shown.

Examples:
  tenure trail --since 24h
  tenure trail --caller ann --op 'put_*'
  tenure trail --target limit:site:example.com
  tenure --json trail --max 1000 | jq '.items[] | select(.status == 403)'
  tenure trail verify ./tenure-data/trail";

/// The arguments of `tenure trail`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, after_help = TRAIL_AFTER)]
pub struct TrailArgs {
    /// The action; without one, lines are shown.
    #[command(subcommand)]
    pub action: Option<TrailAction>,
    /// Only lines from this long ago or later, such as 24h, or from a moment.
    #[arg(long, value_name = "WHEN", value_parser = beginning)]
    pub since: Option<Beginning>,
    /// Only lines of this caller: the name of a token.
    #[arg(long, value_name = "NAME")]
    pub caller: Option<String>,
    /// Only lines of this operation; 'put_*' stands for all that begin so.
    #[arg(long, value_name = "OP")]
    pub op: Option<String>,
    /// Only lines that name this target, such as 'limit:site:*' or pool:accounts.
    #[arg(long, value_name = "KIND:NAME")]
    pub target: Option<String>,
    /// The page of the list.
    #[command(flatten)]
    pub page: PageArgs,
    /// The namespace, if one was named: then only its lines are shown.
    #[arg(skip)]
    pub namespace: Option<Namespace>,
}

/// Actions on the files of a trail.
#[derive(Subcommand, Debug)]
pub enum TrailAction {
    /// Check that no line of the files in a folder was changed, cut or moved.
    #[command(
        after_help = "It reads the files without a server. Whether lines are missing at the end, only a hash from elsewhere
can tell: a server writes that of its last line into its log, each hour.

Examples:
  tenure trail verify /var/lib/tenure/trail
  tenure trail verify /var/lib/tenure/trail --anchor 9f2c…"
    )]
    Verify(TrailVerifyArgs),
}

/// The arguments of `tenure trail verify`.
#[derive(Args, Debug)]
pub struct TrailVerifyArgs {
    /// The folder with the files.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The hash of a line that must be there, as the log of the server has it.
    #[arg(long, value_name = "HASH")]
    pub anchor: Option<String>,
}

/// The moment of the oldest line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beginning {
    At(Moment),
    /// Counted back from when the command runs.
    Ago(Span),
}

impl Beginning {
    /// As a moment; `now` is the time of the command.
    pub fn moment(self, now: Moment) -> Moment {
        match self {
            Beginning::At(moment) => moment,
            Beginning::Ago(span) => now.minus(span),
        }
    }
}

fn beginning(text: &str) -> Result<Beginning, String> {
    match text.parse::<Span>() {
        Err(TimeError::Form) => past_moment(text).map(Beginning::At),
        _ => span(text).map(Beginning::Ago),
    }
}
