//! The arguments of `events`.

use clap::Args;
use tenure_core::events::{EventFilter, EventType};
use tenure_core::names::{FlowName, JobId, LimitName, PoolName, QueueName, ScheduleId};
use tenure_core::requests::EventsSince;

use crate::args::value::{parse_name, whole};

/// Show past events, and follow new ones.
#[derive(Args, Debug)]
#[command(
    after_help = "Shows the events that are kept; with --follow, those from now on. If events in between were
dropped, a line on stderr says so. --json writes one document per event.

Examples:
  tenure events --since first --queue crawl
  tenure events --follow --type 'job.failed' --type 'schedule.*'
  tenure --json events --follow --type job.failed | ./alert"
)]
pub struct EventsArgs {
    /// Follow new events until Ctrl-C; a broken connection is opened again.
    #[arg(long)]
    pub follow: bool,
    /// Only events after this one, by its id; `first`: from the oldest that is kept.
    #[arg(long, value_name = "ID|first", value_parser = parse_name(tenure_core::decode::events_since))]
    pub since: Option<EventsSince>,
    /// End after this many events.
    #[arg(long, value_name = "N", value_parser = whole(1, u64::MAX))]
    pub max: Option<u64>,
    /// Only of this type (job.failed) or family of types ('schedule.*'); may be given several times.
    #[arg(long = "type", value_name = "T", value_parser = parse_name(tenure_core::decode::event_types))]
    pub types: Vec<EventTypes>,
    /// Only about this queue.
    #[arg(long, value_parser = parse_name(QueueName::parse))]
    pub queue: Option<QueueName>,
    /// Only about this job, by its id.
    #[arg(long, value_name = "ID", value_parser = parse_name(JobId::known))]
    pub job: Option<JobId>,
    /// Only about this flow and its jobs.
    #[arg(long, value_parser = parse_name(FlowName::known))]
    pub flow: Option<FlowName>,
    /// Only about this schedule and its jobs.
    #[arg(long, value_name = "ID", value_parser = parse_name(ScheduleId::known))]
    pub schedule: Option<ScheduleId>,
    /// Only about this limit.
    #[arg(long, value_parser = parse_name(LimitName::parse))]
    pub limit: Option<LimitName>,
    /// Only about this pool and its resources.
    #[arg(long, value_parser = parse_name(PoolName::parse))]
    pub pool: Option<PoolName>,
}

/// Types that one `--type` names.
pub type EventTypes = std::sync::Arc<[EventType]>;

impl EventsArgs {
    /// The filter of the events to show.
    pub fn filter(&self) -> EventFilter {
        let EventsArgs { types, queue, job, flow, schedule, limit, pool, .. } = self;
        EventFilter {
            types: types.iter().flat_map(|types| types.iter().copied()).collect(),
            queue: queue.clone(),
            job: job.clone(),
            flow: flow.clone(),
            schedule: schedule.clone(),
            limit: limit.clone(),
            pool: pool.clone(),
        }
    }
}
