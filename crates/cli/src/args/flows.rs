//! The arguments of jobs that wait for others, and of flows: those of `push`, `parents`, `children` and `flow`.

use clap::{Args, Subcommand, ValueEnum};
use tenure_core::flow::OnParentFailure;
use tenure_core::names::{FlowName, JobRef};
use tenure_core::time::Span;

use crate::args::page::PageArgs;
use crate::args::value::{parse_name, span};

/// The jobs and flows that a pushed job names; for --lines only with --payloads.
#[derive(Args, Debug, Default)]
pub struct KinArgs {
    /// Run it after this job: an id, or `key:KEY`. Other cases are JSON: '{"flow":"import-7"}' is a whole flow,
    /// '{"job":"a","gone":"done"}' a job that may be gone by now.
    #[arg(long, value_name = "ID")]
    pub after: Vec<String>,
    /// If a job that it waits for fails or is cancelled: cancel this job too, or run it anyway.
    #[arg(long, requires = "after", value_name = "cancel|run")]
    pub on_parent_failure: Option<ParentFailureWord>,
    /// The job's flow; without it, the flow of the first job that it waits for.
    #[arg(long, value_name = "FLOW", value_parser = parse_name(FlowName::parse))]
    pub flow: Option<FlowName>,
}

impl KinArgs {
    /// Whether none of these options is given; then each line of --lines may name its own.
    pub fn is_silent(&self) -> bool {
        self.after.is_empty() && self.flow.is_none()
    }
}

/// The end of a job whose parent failed.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentFailureWord {
    /// It is cancelled, with the error `parent_failed`.
    Cancel,
    /// It runs after any end of its parents.
    Run,
}

impl From<ParentFailureWord> for OnParentFailure {
    fn from(word: ParentFailureWord) -> OnParentFailure {
        match word {
            ParentFailureWord::Cancel => OnParentFailure::Cancel,
            ParentFailureWord::Run => OnParentFailure::Run,
        }
    }
}

/// List the jobs and flows that a job waits for.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure parents report-7
  tenure --json parents report-7 --full | jq '.items[].result'")]
pub struct ParentsArgs {
    /// Its id, or `key:KEY` for the job that holds a unique key.
    #[arg(value_name = "ID", value_parser = parse_name(JobRef::parse))]
    pub job: JobRef,
    /// Include the results of the jobs (shown with --json).
    #[arg(long)]
    pub full: bool,
    /// The page of the list.
    #[command(flatten)]
    pub page: PageArgs,
}

/// List the jobs that wait for a job.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  tenure children fetch-41")]
pub struct ChildrenArgs {
    /// Its id, or `key:KEY` for the job that holds a unique key.
    #[arg(value_name = "ID", value_parser = parse_name(JobRef::parse))]
    pub job: JobRef,
    /// The page of the list.
    #[command(flatten)]
    pub page: PageArgs,
}

/// Show flows (jobs under one name), wait for them, cancel, retry.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  tenure flow                        all flows
  tenure flow import-7               one flow, with counts of its jobs
  tenure jobs --flow import-7 --state failed
  tenure flow wait import-7 10m
  tenure flow retry import-7         run its failed and cancelled jobs again
  tenure flow cancel import-7
  tenure flow -- wait                the flow that is called \"wait\"

A flow consists of the jobs that carry its name: `tenure push … --flow NAME`.")]
pub struct FlowArgs {
    /// A call on a flow, instead of showing it.
    #[command(subcommand)]
    pub action: Option<FlowAction>,
    /// Show this one; without it, list all.
    #[arg(value_parser = parse_name(FlowName::known))]
    pub flow: Option<FlowName>,
    /// The page of the list.
    #[command(flatten)]
    pub page: PageArgs,
}

/// Calls on a whole flow.
#[derive(Subcommand, Debug)]
pub enum FlowAction {
    /// Cancel all unfinished jobs of a flow, and jobs that these push into it.
    Cancel {
        /// The name of the flow.
        #[arg(value_parser = parse_name(FlowName::known))]
        flow: FlowName,
    },
    /// Make all failed and cancelled jobs of a flow ready again, where possible.
    Retry {
        /// The name of the flow.
        #[arg(value_parser = parse_name(FlowName::known))]
        flow: FlowName,
    },
    /// Wait until all jobs of a flow have ended; exit 0 if all succeeded, otherwise 1.
    Wait {
        /// The name of the flow.
        #[arg(value_parser = parse_name(FlowName::known))]
        flow: FlowName,
        /// Wait at most this long; without it, wait as long as it takes.
        #[arg(value_name = "D", value_parser = span)]
        longest: Option<Span>,
    },
}
