//! Options of the command.

use std::path::PathBuf;

use crate::Failed;

/// The text of `--help`.
pub const HELP: &str = "\
tools/peers/run [--only NAME,…] [--workloads NAME,…] [--quick] [--rounds N] [--aof]
                [--table text|docs] [--json] [--from FILE] [--list]

Measures Tenure beside other queues on this machine, on Redis and in a folder, each measurement on a
redis-server of its own that is started for it. Everything is installed into tools/peers/.work.

needs: Linux; redis-server (or redis-check-rdb, which is the same program under another name) in
       PATH, version 7 or later; cargo; for beanstalkd that program; for BullMQ, bee-queue and
       Tenure's Node worker node >= 20 and npm; for Celery, RQ, dramatiq, arq and Tenure's Python
       worker python3 >= 3.9 with venv; a connection to crates.io, the npm registry and PyPI the first
       time. What is not there is skipped, with the reason.

  --only NAME,…       only these systems (see --list)
  --workloads NAME,…  only these of: bulk, single, latency, delayed, keyed, three, blocked, lifecycle,
                      noop, io, quiet (these three: workers in Python)
  --quick             a fifth of the jobs, one round: to see that it works, not for figures
  --rounds N          rounds of bulk, keyed, blocked and lifecycle, in turns; 3
  --aof               redis-server with appendonly yes, appendfsync everysec; it keeps nothing else
  --table docs        the table as docs/benchmarks.md has it; text is the default
  --json              all figures as one JSON document in place of the table
  --from FILE         measures nothing, and prints what an earlier run saved (.work/last.json)
  --list              the systems, and what each can do";

/// How to print the results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A table for a terminal, one figure per line.
    Text,
    /// Markdown for the documentation.
    Docs,
    /// Every figure of every round as JSON.
    Json,
}

/// The options of one call.
#[derive(Clone, Debug)]
pub struct Options {
    pub only: Vec<String>,
    pub workloads: Vec<String>,
    pub quick: bool,
    pub rounds: usize,
    pub aof: bool,
    pub form: Form,
    pub from: Option<PathBuf>,
    pub list: bool,
    pub help: bool,
}

impl Options {
    /// Reads the options from the command line.
    pub fn read() -> Result<Self, Failed> {
        let mut options = Options {
            only: Vec::new(),
            workloads: Vec::new(),
            quick: false,
            rounds: 0,
            aof: false,
            form: Form::Text,
            from: None,
            list: false,
            help: false,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{name} wants a value; see --help"));
            match name.as_str() {
                "--only" => options.only = list(&value()?),
                "--workloads" => options.workloads = list(&value()?),
                "--quick" => options.quick = true,
                "--rounds" => options.rounds = value()?.parse()?,
                "--aof" => options.aof = true,
                "--table" => {
                    options.form = match value()?.as_str() {
                        "text" => Form::Text,
                        "docs" => Form::Docs,
                        other => return Err(format!("--table is text or docs, not {other}").into()),
                    }
                }
                "--json" => options.form = Form::Json,
                "--from" => options.from = Some(value()?.into()),
                "--list" => options.list = true,
                "--help" | "-h" => options.help = true,
                other => return Err(format!("{other} is not known; see --help").into()),
            }
        }
        if options.rounds == 0 {
            options.rounds = if options.quick { 1 } else { 3 };
        }
        Ok(options)
    }

    /// Whether this system is selected.
    pub fn wants_system(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Whether this workload is selected.
    pub fn wants(&self, workload: &str) -> bool {
        self.workloads.is_empty() || self.workloads.iter().any(|only| only == workload)
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}
