//! The arguments of `queue`, `limit` and `pool`. `set` has an option per field of the API, with `-`
//! for `_`; the word `none` puts a field back to its default.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use tenure_core::lease::Later;
use tenure_core::names::{LimitName, PoolName, QueueName, ResourceId, Tag};
use tenure_core::settings::Pick;
use tenure_core::time::{Moment, Span};

use crate::args::gauges::GaugeArgs;
use crate::args::page::PageArgs;
use crate::args::value::{
    PerSpan, Setting, boolean, count, moment, parse_name, positive, rate, setting, span, timeout,
};

/// How long: for a while, or until a moment.
#[derive(Args, Debug, Clone, Copy)]
#[command(group = ArgGroup::new("later").args(["hold", "until"]))]
pub struct LaterArgs {
    /// For this long.
    #[arg(long = "for", value_name = "D", value_parser = span)]
    pub hold: Option<Span>,
    /// Until this moment (RFC 3339).
    #[arg(long, value_name = "T", value_parser = moment)]
    pub until: Option<Moment>,
}

impl LaterArgs {
    /// As the engine takes it.
    pub fn later(self) -> Option<Later> {
        match (self.hold, self.until) {
            (Some(span), _) => Some(Later::For(span)),
            (None, until) => until.map(Later::Until),
        }
    }
}

/// How long; one of the two options is required.
#[derive(Args, Debug, Clone, Copy)]
#[command(group = ArgGroup::new("must").args(["hold", "until"]).required(true))]
pub struct MustLaterArgs {
    /// For this long.
    #[arg(long = "for", value_name = "D", value_parser = span)]
    pub hold: Option<Span>,
    /// Until this moment (RFC 3339).
    #[arg(long, value_name = "T", value_parser = moment)]
    pub until: Option<Moment>,
}

impl MustLaterArgs {
    /// As the engine takes it. That one of the two is there is checked when the line is parsed.
    pub fn later(self) -> Later {
        LaterArgs { hold: self.hold, until: self.until }.later().unwrap_or(Later::For(Span::ZERO))
    }
}

/// Show queues, change their settings, pause and delete them.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  tenure queue                       all queues
  tenure queue mail                  one queue
  tenure queue set mail --needs limit:smtp --max-waiting 10000 --timeout 5m
  tenure queue set mail --shares tenant-7=3 --retry max_attempts=5,base=10s
  tenure queue pause mail --for 1h
  tenure queue -- set                the queue that is called \"set\"")]
pub struct QueueArgs {
    /// A call on a queue, instead of showing it.
    #[command(subcommand)]
    pub action: Option<QueueAction>,
    /// Show this one; without it, list all.
    #[arg(value_parser = parse_name(QueueName::parse))]
    pub name: Option<QueueName>,
    /// The page of the list.
    #[command(flatten)]
    pub page: PageArgs,
}

/// Calls on one queue.
#[derive(Subcommand, Debug)]
pub enum QueueAction {
    /// Change settings; creates the queue if it does not exist.
    Set(Box<QueueSetArgs>),
    /// Grant no jobs of a queue; running jobs go on, and pushes are accepted.
    Pause {
        /// The queue; created if it does not exist.
        #[arg(value_parser = parse_name(QueueName::parse))]
        name: QueueName,
        /// How long; without it until it is resumed.
        #[command(flatten)]
        later: LaterArgs,
    },
    /// End a pause.
    Resume {
        /// The queue.
        #[arg(value_parser = parse_name(QueueName::parse))]
        name: QueueName,
    },
    /// Delete a queue that has no unfinished jobs.
    Delete {
        /// The queue.
        #[arg(value_parser = parse_name(QueueName::parse))]
        name: QueueName,
    },
}

/// Settings of a queue.
#[derive(Args, Debug)]
#[command(after_help = "The word none resets a setting to its default: --timeout none.")]
pub struct QueueSetArgs {
    /// The queue.
    #[arg(value_parser = parse_name(QueueName::parse))]
    pub name: QueueName,
    /// Needs of jobs that state none; may be given several times.
    #[arg(long, alias = "need", value_name = "NEED|none")]
    pub needs: Vec<String>,
    /// Retry of jobs that state none: 5, max_attempts=5,base=1s,max=1h, delays=1s/10s/1m, or JSON.
    #[arg(long, value_name = "RETRY|none")]
    pub retry: Option<String>,
    /// Deadline of one run of jobs that state none.
    #[arg(long, value_name = "D|none", value_parser = setting(timeout))]
    pub timeout: Option<Setting<Span>>,
    /// How long to keep finished jobs that state no retain.
    #[arg(long, value_name = "D|none", value_parser = setting(span))]
    pub retain: Option<Setting<Span>>,
    /// Maximum number of waiting jobs; more pushes are refused.
    #[arg(long, value_name = "N|none", allow_negative_numbers = true, value_parser = setting(count))]
    pub max_waiting: Option<Setting<u32>>,
    /// How long a job waits after its worker was lost; 0s for workers that resume their work.
    #[arg(long, value_name = "D|none", value_parser = setting(span))]
    pub lost_delay: Option<Setting<Span>>,
    /// The share of a group, 1 if not named; may be given several times, or once as a JSON object. Replaces all
    /// shares.
    #[arg(long, value_name = "GROUP=N|JSON|none")]
    pub shares: Vec<String>,
    /// Show one line of each payload in the dashboard's lists; true if not set.
    #[arg(long, value_name = "BOOL|none", value_parser = setting(boolean))]
    pub show_payload: Option<Setting<bool>>,
}

/// Show limits (caps and rates), set, pause and delete them.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  tenure limit                        all limits, and their use
  tenure limit site:example.com       settings, holders, and the line
  tenure limit set 'site:*' --concurrency 2 --gap 500ms
  tenure limit set scrapy --concurrency 4 --quarantine 1m
  tenure limit set api --rate 10/1s --burst 5
  tenure limit set scrapy --gauge-scrapyd http://crawler:6800
  tenure limit set gpu --gauge http://gpu/load --gauge-count /running
  tenure limit pause site:example.com --for 10m
  tenure limit observe scrapy 3       3 are taken by work outside of Tenure")]
pub struct LimitArgs {
    /// A call on a limit, instead of showing it.
    #[command(subcommand)]
    pub action: Option<LimitAction>,
    /// Show this one; without it, list all.
    #[arg(value_parser = parse_name(LimitName::parse))]
    pub name: Option<LimitName>,
    /// The page of the list.
    #[command(flatten)]
    pub page: PageArgs,
}

/// Calls on one limit.
#[derive(Subcommand, Debug)]
pub enum LimitAction {
    /// Change settings; creates the limit if it does not exist.
    #[command(after_help = "The word none resets a setting to its default: --gap none.
Without --burst the burst of a rate is 1: evenly spaced. --burst alone changes the existing rate.")]
    Set {
        /// The limit, or the template `family:*`.
        #[arg(value_parser = parse_name(LimitName::parse))]
        name: LimitName,
        /// How many at once; 0 = closed for now.
        #[arg(long, value_name = "N|none", allow_negative_numbers = true, value_parser = setting(count))]
        concurrency: Option<Setting<u32>>,
        /// How many per period: 10/1s.
        #[arg(long, value_name = "N/D|none", value_parser = setting(rate))]
        rate: Option<Setting<PerSpan>>,
        /// How many tokens of the rate may be taken at once after a rest.
        #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = positive)]
        burst: Option<u32>,
        /// How long each permit rests after its release; needs a concurrency.
        #[arg(long, value_name = "D|none", value_parser = setting(span))]
        gap: Option<Setting<Span>>,
        /// How long each permit rests after its holder died or exceeded its time, because its work may still be
        /// running; needs a concurrency. The longer of this and the gap applies.
        #[arg(long, value_name = "D|none", value_parser = setting(span))]
        quarantine: Option<Setting<Span>>,
        /// Where work outside is counted.
        #[command(flatten)]
        gauge: Box<GaugeArgs>,
    },
    /// Stop grants of a limit for a while; of two pauses the later end holds.
    #[command(after_help = "A pause has an end. To close a limit until further notice: \
                            tenure limit set NAME --concurrency 0")]
    Pause {
        /// The limit.
        #[arg(value_parser = parse_name(LimitName::parse))]
        name: LimitName,
        /// How long the pause lasts.
        #[command(flatten)]
        later: MustLaterArgs,
    },
    /// End a pause.
    Resume {
        /// The limit.
        #[arg(value_parser = parse_name(LimitName::parse))]
        name: LimitName,
    },
    /// Report permits that work outside of Tenure takes.
    Observe {
        /// The limit.
        #[arg(value_parser = parse_name(LimitName::parse))]
        name: LimitName,
        /// How many permits.
        #[arg(allow_negative_numbers = true, value_parser = count)]
        external: u32,
        /// For this long; without it until the next observation.
        #[arg(long = "for", value_name = "D", value_parser = span)]
        hold: Option<Span>,
    },
    /// Delete a limit's settings.
    Delete {
        /// The limit.
        #[arg(value_parser = parse_name(LimitName::parse))]
        name: LimitName,
    },
}

/// Show pools of resources, fill and delete them.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  tenure pool                         all pools
  tenure pool accounts                settings and resources, without their data
  tenure pool sync accounts accounts.csv
  psql --csv -c 'select …' | tenure pool sync accounts - --format csv
  tenure pool add accounts 139 --data @account.json --tag cn
  tenure pool cool accounts 139 --for 10m
  tenure pool ban accounts 139 --reason captcha")]
pub struct PoolArgs {
    /// A call on a pool, instead of showing it.
    #[command(subcommand)]
    pub action: Option<PoolAction>,
    /// Show this one; without it, list all.
    #[arg(value_parser = parse_name(PoolName::parse))]
    pub name: Option<PoolName>,
    /// The page of the list.
    #[command(flatten)]
    pub page: PageArgs,
}

/// Calls on one pool.
#[derive(Subcommand, Debug)]
pub enum PoolAction {
    /// Change settings; creates the pool if it does not exist.
    #[command(after_help = "The word none resets a setting to its default: --max-uses none.")]
    Set {
        /// The pool.
        #[arg(value_parser = parse_name(PoolName::parse))]
        name: PoolName,
        /// How long a resource rests after its holder died.
        #[arg(long, value_name = "D|none", value_parser = setting(span))]
        quarantine: Option<Setting<Span>>,
        /// How long a resource rests after every use.
        #[arg(long, value_name = "D|none", value_parser = setting(span))]
        cooldown: Option<Setting<Span>>,
        /// Grants of each resource per period: 10/1m.
        #[arg(long, value_name = "N/D|none", value_parser = setting(rate))]
        rate: Option<Setting<PerSpan>>,
        /// How many tokens of the rate may be taken at once after a rest.
        #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = positive)]
        burst: Option<u32>,
        /// Grants after which a resource is banned.
        #[arg(long, value_name = "N|none", allow_negative_numbers = true, value_parser = setting(positive))]
        max_uses: Option<Setting<u32>>,
        /// The free resource to grant: the least recently used, or any.
        #[arg(long, value_name = "lru|random|none", value_parser = setting(pick))]
        pick: Option<Setting<Pick>>,
    },
    /// Replace the content of a pool with that of a file.
    #[command(after_help = "\
Reads a JSON array, NDJSON or CSV, by the file's suffix or --format; stdin is JSON or NDJSON unless --format says CSV.

JSON: each item is {\"id\",\"data\",\"tags\",\"slots\"}. An item without \"data\" is its own data.

CSV: the columns are id, tags (with \";\" between) and slots; all others are data.

A quote that is never closed, a row with another number of columns, and a cell of several lines (unless --multiline is given) are refused, and nothing is changed.

Resources that are not in the file are removed as soon as they are free. Leases, cooling, bans and uses of the others stay.

Example:
  tenure pool sync accounts accounts.csv")]
    Sync {
        /// The pool; created if it does not exist.
        #[arg(value_parser = parse_name(PoolName::parse))]
        name: PoolName,
        /// The file, or `-` for stdin.
        #[arg(value_name = "FILE|-")]
        file: PathBuf,
        /// The field that holds the id.
        #[arg(long, value_name = "FIELD", default_value = "id")]
        id: String,
        /// Accept an empty set, and one that retires more than half.
        #[arg(long)]
        force: bool,
        /// The format of the file.
        #[arg(long, value_name = "json|ndjson|csv")]
        format: Option<Format>,
        /// Accept CSV cells of several lines; without this a quote that is closed on a later line is refused.
        #[arg(long)]
        multiline: bool,
        /// The version of this set; a number below the last one is refused (an older list that arrives late).
        #[arg(long = "set-version", value_name = "N")]
        version: Option<u64>,
    },
    /// Add a resource, or change it.
    Add {
        /// The pool.
        #[arg(value_parser = parse_name(PoolName::parse))]
        name: PoolName,
        /// The resource.
        #[arg(value_parser = parse_name(ResourceId::parse))]
        id: ResourceId,
        /// Its data as JSON; `-` reads stdin, `@FILE` a file. Use one of these for secret data: other users can see
        /// arguments.
        #[arg(long, value_name = "JSON|-|@FILE")]
        data: Option<String>,
        /// A tag.
        #[arg(long = "tag", value_name = "T", value_parser = parse_name(Tag::parse))]
        tags: Vec<Tag>,
        /// Holders at once.
        #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = positive)]
        slots: u32,
    },
    /// List the resources of a pool, without their data.
    Resources {
        /// The pool.
        #[arg(value_parser = parse_name(PoolName::parse))]
        name: PoolName,
        /// The page of the list.
        #[command(flatten)]
        page: PageArgs,
    },
    /// Remove resources, each as soon as it is free.
    Remove(ResourceArgs),
    /// Let resources rest for a while.
    Cool {
        /// The resources to cool.
        #[command(flatten)]
        which: ResourceArgs,
        /// How long they rest.
        #[command(flatten)]
        later: MustLaterArgs,
    },
    /// Stop handing resources out.
    Ban {
        /// The resources to ban.
        #[command(flatten)]
        which: ResourceArgs,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Make cooling or banned resources available again.
    Restore(ResourceArgs),
    /// Delete a pool that has no leased resources.
    Delete {
        /// The pool.
        #[arg(value_parser = parse_name(PoolName::parse))]
        name: PoolName,
    },
}

fn pick(text: &str) -> Result<Pick, String> {
    match text {
        "lru" => Ok(Pick::Lru),
        "random" => Ok(Pick::Random),
        _ => Err("must be lru or random".to_owned()),
    }
}

/// Resources of a pool.
#[derive(Args, Debug)]
pub struct ResourceArgs {
    /// The pool.
    #[arg(value_parser = parse_name(PoolName::parse))]
    pub name: PoolName,
    /// The resources.
    #[arg(required = true, value_name = "ID", value_parser = parse_name(ResourceId::known))]
    pub ids: Vec<ResourceId>,
}

/// How a file of resources is written.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An array of objects.
    Json,
    /// An object per line.
    Ndjson,
    /// A header, then a row per resource.
    Csv,
}
