//! All metrics: each is named once, with its help, in the order of the page.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_core::job::JobState;
use tenure_core::names::Namespace;
use tenure_core::time::Moment;
use tenure_engine_api::{Clock, Engine, StoreWork, SystemClock};
use tokio::sync::Mutex;

use crate::metrics::counts::{CallCounts, RunEnd};
use crate::metrics::http::{CLASSES, HttpCounts};
use crate::metrics::state::{self, NamespaceState};
use crate::metrics::text::{Family, SampleSink, Text};
use crate::metrics::{NAMES_MAX, OTHER, process};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Two readings of the store's state are at least this far apart, however many programs scrape.
const FRESH: Duration = Duration::from_secs(1);
/// Namespaces whose state is read in one scrape.
const NAMESPACES_MAX: usize = 20;

macro_rules! families {
    ($($const:ident $name:literal $kind:ident $adds:ident $help:literal;)*) => {
        $(const $const: Family = Family {
            name: $name,
            kind: stringify!($kind),
            help: families!($adds $help),
        };)*
        /// In the order of the page.
        pub(crate) const FAMILIES: &[Family] = &[$($const),*];
    };
    (server $help:literal) => { concat!($help, " (counted by this process: adds up over servers)") };
    (store $help:literal) => { concat!($help, " (state of the store: the same at each server)") };
    (process $help:literal) => { concat!($help, " (of this process)") };
}

families! {
    JOBS "tenure_jobs" gauge store "Jobs by queue and state; ended ones as long as they are kept";
    OLDEST "tenure_oldest_ready_seconds" gauge store "Since when the oldest ready job of a queue is ready; 0 if none is";
    QUEUE_WORKERS "tenure_queue_workers" gauge store "Workers that asked for jobs of a queue within the last minute";
    MISSED "tenure_schedule_missed_total" counter store "Moments of schedules into a queue that were skipped since the queue is there";
    PUSHED "tenure_jobs_pushed_total" counter server "Jobs that were pushed, by queue; not those that were there already, nor those of schedules";
    ENDED "tenure_jobs_total" counter server "Finished runs, by outcome. failed: the job failed for good. retried: the job runs again. lost: the holder died; counted at the next grant of the job. Runs granted by another server have the queue other";
    WAIT "tenure_wait_seconds" histogram server "From the moment a job was due to its grant";
    RUN "tenure_run_seconds" histogram server "From a grant to its settle, both at this server";
    LATENESS "tenure_lateness_seconds" histogram server "From the moment of a schedule to the first grant of its job";
    IN_USE "tenure_limit_in_use" gauge store "Permits of a limit that are taken: by leases, by permits that rest, and by work outside";
    CAPACITY "tenure_limit_capacity" gauge store "Permits that a limit has; absent for one that is only a rate";
    WAITING "tenure_limit_waiting" gauge store "Who stands in the line of a limit";
    POOL "tenure_pool_resources" gauge store "Resources of a pool by state";
    LOST "tenure_leases_lost_total" counter server "Leases, of locks too, that were over when their holder sent a heartbeat or an outcome for them";
    LEASES "tenure_leases" gauge store "Leases that live";
    SCHEDULES "tenure_schedules" gauge store "Schedules by state; due ones have a moment that is not decided yet";
    SCHEDULE_DUE "tenure_schedule_oldest_due_seconds" gauge store "Since when the oldest moment of a schedule is due; 0 if none is";
    EVENT_BYTES "tenure_events_bytes" gauge store "Bytes that the kept events take";
    EVENTS "tenure_events_last_number" gauge store "The number of the newest event; it grows by one with each";
    UP "tenure_store_up" gauge process "1 if the store is well as this server sees it, else 0";
    STORE_BYTES "tenure_store_bytes" gauge store "Bytes of the store: on disk, or of its log and snapshots in Redis";
    COMMITS "tenure_store_commit_seconds" histogram server "Transactions of the rows of a store, without their syncs";
    SYNCS "tenure_store_sync_seconds" histogram server "Appends to the journal, with the sync of the disk that they wait for; the calls that come meanwhile share the next one";
    OPENED "tenure_store_open_seconds" gauge process "How long it took to read the store when the server opened it";
    RECOVERS "tenure_store_recovering_seconds" gauge process "For how long nothing exclusive is granted yet, since the store may have forgotten its last writes; 0 if it is well";
    READ "tenure_metrics_store_read" gauge process "1 if the state of a namespace could be read whole for this page, else 0";
    REQUESTS "tenure_http_requests_total" counter server "Requests of the API by operation and class of status";
    HTTP_NOW "tenure_http_in_flight" gauge server "Requests that are being answered, those that wait for a job too";
    HTTP_TOOK "tenure_http_request_seconds" histogram server "From the head of a request to its answer, its wait for a job included";
    CPU "process_cpu_seconds_total" counter process "Processor time";
    RESIDENT "process_resident_memory_bytes" gauge process "Memory";
    FILES "process_open_fds" gauge process "Open files and sockets";
    START "process_start_time_seconds" gauge process "When it began, in seconds since 1970";
}

/// The page that a Prometheus reads.
pub struct Metrics {
    engine: Arc<dyn Engine>,
    counts: Arc<CallCounts>,
    /// Counts of the server's requests, by route.
    pub http: HttpCounts,
    state: Mutex<Option<(Instant, Arc<StoreState>)>>,
}

/// The last state of the store.
#[derive(Debug)]
struct StoreState {
    namespaces: Vec<(Namespace, Option<NamespaceState>)>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// For this engine and the counts around it. `routes`: the names of the server's routes.
    pub fn new(
        engine: Arc<dyn Engine>,
        counts: Arc<CallCounts>,
        routes: impl Iterator<Item = &'static str>,
    ) -> Self {
        let http = HttpCounts::of(routes);
        Metrics { engine, counts, http, state: Mutex::new(None) }
    }

    /// Name, kind and help of each metric.
    pub fn families() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        FAMILIES.iter().map(|family| (family.name, family.kind, family.help))
    }

    /// The text now. The state of the store may be a second old.
    pub async fn text(&self) -> String {
        let mut text = Text::default();
        self.write(&mut text).await;
        text.end()
    }

    /// Sends all samples to `text`, which may have another form.
    pub async fn write(&self, text: &mut dyn SampleSink) {
        let held = self.held().await;
        self.of_store(text, &held);
        self.of_queues(text);
        self.of_http(text);
        of_process(text);
    }

    async fn held(&self) -> Arc<StoreState> {
        // Held while the store is read: callers that come meanwhile get the same answer.
        let mut state = self.state.lock().await;
        if let Some((at, held)) = &*state
            && at.elapsed() < FRESH
        {
            return held.clone();
        }
        let mut namespaces = Vec::new();
        let mut away = false;
        for namespace in self.namespaces() {
            // After one call without an answer, the other namespaces are not asked.
            let found = if away { None } else { state::of(&self.engine, namespace.clone()).await };
            away = found.is_none();
            namespaces.push((namespace, found));
        }
        let held = Arc::new(StoreState { namespaces });
        *state = Some((Instant::now(), held.clone()));
        held
    }

    /// The default namespace, and those in which this server granted or ended something: the API
    /// has no list.
    fn namespaces(&self) -> Vec<Namespace> {
        let main = Namespace::main();
        let mut all = vec![main.clone()];
        let others = self.counts.minutes.namespaces().into_iter().filter(|name| *name != main);
        all.extend(others.take(NAMESPACES_MAX - 1));
        all
    }

    fn of_store(&self, text: &mut dyn SampleSink, held: &StoreState) {
        let now = SystemClock.now();
        let all: Vec<&NamespaceState> =
            held.namespaces.iter().filter_map(|(_, state)| state.as_ref()).collect();
        let queues = rows(&all, |state| {
            state.stats.queues.iter().map(|(queue, jobs)| (queue.as_str(), jobs))
        });
        for state in JobState::ALL {
            let of = |jobs: &std::collections::BTreeMap<JobState, u64>| jobs.get(&state).copied();
            gauge(text, &JOBS, "queue", Some(state.as_str()), &queues, of, Sum::Added);
        }
        let queues =
            rows(&all, |state| state.queues.items.iter().map(|queue| (queue.name.as_str(), queue)));
        let age = |queue: &tenure_core::settings::QueueView| Some(age(now, queue.oldest_ready_at));
        gauge(text, &OLDEST, "queue", None, &queues, age, Sum::Highest);
        gauge(
            text,
            &QUEUE_WORKERS,
            "queue",
            None,
            &queues,
            |queue| Some(queue.workers),
            Sum::Highest,
        );
        gauge(text, &MISSED, "queue", None, &queues, |queue| Some(queue.skipped), Sum::Added);
        let limits = rows(&all, |state| {
            let counted = state.limits.items.iter().filter(|limit| !limit.name.is_template());
            counted.map(|limit| (limit.name.as_str(), limit))
        });
        gauge(
            text,
            &IN_USE,
            "limit",
            None,
            &limits,
            |limit| Some(limit.in_use + limit.external),
            Sum::Added,
        );
        gauge(
            text,
            &CAPACITY,
            "limit",
            None,
            &limits,
            |limit| limit.settings.concurrency.map(u64::from),
            Sum::Added,
        );
        gauge(text, &WAITING, "limit", None, &limits, |limit| Some(limit.waiting), Sum::Added);
        let pools =
            rows(&all, |state| state.pools.items.iter().map(|pool| (pool.name.as_str(), pool)));
        type Of = fn(&tenure_core::settings::PoolView) -> u64;
        let states: [(&str, Of); 4] = [
            ("available", |pool| pool.available),
            ("leased", |pool| pool.leased),
            ("cooling", |pool| pool.cooling),
            ("banned", |pool| pool.banned),
        ];
        for (state, of) in states {
            gauge(text, &POOL, "pool", Some(state), &pools, |pool| Some(of(pool)), Sum::Added);
        }
        self.of_namespaces(text, held, &all, now);
    }

    fn of_namespaces(
        &self,
        text: &mut dyn SampleSink,
        held: &StoreState,
        all: &[&NamespaceState],
        now: Moment,
    ) {
        let mut each =
            |family: &Family, state: Option<&str>, of: &dyn Fn(&NamespaceState) -> u64| {
                for found in all {
                    let mut labels = vec![("namespace", found.namespace.as_str())];
                    labels.extend(state.map(|state| ("state", state)));
                    text.sample(family, &labels, of(found) as f64);
                }
            };
        each(&LEASES, None, &|found| found.stats.leases);
        each(&SCHEDULES, Some("all"), &|found| found.stats.schedules.count);
        each(&SCHEDULES, Some("paused"), &|found| found.stats.schedules.paused);
        each(&SCHEDULES, Some("due"), &|found| found.stats.schedules.due);
        each(&SCHEDULE_DUE, None, &|found| age(now, found.stats.schedules.oldest_due_at));
        each(&EVENT_BYTES, None, &|found| found.stats.events.bytes);
        each(&EVENTS, None, &|found| found.stats.events.last.map_or(0, |last| last.number));
        let well = self.engine.health().degraded.is_none();
        text.sample(&UP, &[], f64::from(u8::from(well)));
        if let Some(found) = all.first() {
            text.sample(&STORE_BYTES, &[], found.stats.store.bytes as f64);
        }
        of_store_work(text, &self.engine.store_work());
        for (namespace, found) in &held.namespaces {
            let whole = found
                .as_ref()
                .is_some_and(|found| !(found.queues.cut || found.limits.cut || found.pools.cut));
            text.sample(&READ, &[("namespace", namespace.as_str())], f64::from(u8::from(whole)));
        }
    }

    fn of_queues(&self, text: &mut dyn SampleSink) {
        let queues = self.counts.seen();
        for queue in queues.iter().filter(|queue| queue.pushed > 0) {
            let labels = [("namespace", queue.namespace.as_str()), ("queue", queue.queue.as_str())];
            text.sample(&PUSHED, &labels, queue.pushed as f64);
        }
        for queue in &queues {
            for (end, times) in RunEnd::ALL.iter().zip(queue.ends) {
                let labels = [
                    ("namespace", queue.namespace.as_str()),
                    ("queue", queue.queue.as_str()),
                    ("outcome", end.as_str()),
                ];
                text.sample(&ENDED, &labels, times as f64);
            }
        }
        for queue in &queues {
            let labels = [("namespace", queue.namespace.as_str()), ("queue", queue.queue.as_str())];
            text.histogram(&WAIT, &labels, &queue.wait);
        }
        for queue in &queues {
            let labels = [("namespace", queue.namespace.as_str()), ("queue", queue.queue.as_str())];
            text.histogram(&RUN, &labels, &queue.run);
        }
        text.histogram(&LATENESS, &[], &self.counts.lateness.seen());
        text.sample(&LOST, &[], self.counts.lost_ever() as f64);
    }

    fn of_http(&self, text: &mut dyn SampleSink) {
        let routes = self.http.seen();
        for (route, classes, _) in &routes {
            for (class, times) in CLASSES.iter().zip(classes).filter(|(_, times)| **times > 0) {
                text.sample(&REQUESTS, &[("route", *route), ("status", *class)], *times as f64);
            }
        }
        text.sample(&HTTP_NOW, &[], self.http.now() as f64);
        for (route, _, took) in &routes {
            text.histogram(&HTTP_TOOK, &[("route", *route)], took);
        }
    }
}

/// The engine's work on its store.
fn of_store_work(text: &mut dyn SampleSink, work: &StoreWork) {
    if let Some(commits) = &work.commits {
        text.histogram(&COMMITS, &[], commits);
    }
    if let Some(syncs) = &work.syncs {
        text.histogram(&SYNCS, &[], syncs);
    }
    if let Some(took) = work.opened_in {
        text.sample(&OPENED, &[], took.as_secs_f64());
    }
    if let Some(left) = work.recovers_for {
        text.sample(&RECOVERS, &[], left.as_secs_f64());
    }
}

fn of_process(text: &mut dyn SampleSink) {
    let Some(process) = process::read() else { return };
    text.sample(&CPU, &[], process.cpu_seconds);
    text.sample(&RESIDENT, &[], process.resident_bytes as f64);
    text.sample(&FILES, &[], process.open_files as f64);
    text.sample(&START, &[], process.start);
}

/// Whole seconds since a moment.
fn age(now: Moment, since: Option<Moment>) -> u64 {
    since.map_or(0, |since| now.since(since).us() / 1_000_000)
}

/// A thing, with its namespace and its name.
struct LabelledRow<'s, T> {
    namespace: &'s str,
    name: &'s str,
    thing: &'s T,
}

fn rows<'s, T: 's, I: Iterator<Item = (&'s str, &'s T)>>(
    all: &[&'s NamespaceState],
    of: impl Fn(&'s NamespaceState) -> I,
) -> Vec<LabelledRow<'s, T>> {
    let of_each = all.iter().flat_map(|state| {
        of(state).map(|(name, thing)| LabelledRow {
            namespace: state.namespace.as_str(),
            name,
            thing,
        })
    });
    of_each.collect()
}

/// The value that stands for the rest.
#[derive(Clone, Copy)]
enum Sum {
    Added,
    Highest,
}

/// A sample for each of the first names, and one for the rest.
fn gauge<T>(
    text: &mut dyn SampleSink,
    family: &Family,
    label: &str,
    state: Option<&str>,
    rows: &[LabelledRow<'_, T>],
    of: impl Fn(&T) -> Option<u64>,
    sum: Sum,
) {
    let mut write = |namespace: &str, name: &str, value: u64| {
        let mut labels = vec![("namespace", namespace), (label, name)];
        labels.extend(state.map(|state| ("state", state)));
        text.sample(family, &labels, value as f64);
    };
    let (named, rest) = rows.split_at(rows.len().min(NAMES_MAX));
    for row in named {
        if let Some(value) = of(row.thing) {
            write(row.namespace, row.name, value);
        }
    }
    let rest = rest.iter().filter_map(|row| of(row.thing));
    let rest = match sum {
        Sum::Added => rest.reduce(u64::saturating_add),
        Sum::Highest => rest.reduce(u64::max),
    };
    if let Some(value) = rest {
        write(OTHER, OTHER, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../../../docs/guides/monitoring.md");
    const ALERTS: &str = include_str!("../../../../packaging/prometheus/alerts.yml");
    const BOARD: &str = include_str!("../../../../packaging/grafana/tenure.json");

    #[test]
    fn the_guide_has_a_row_for_each_metric() {
        for Family { name, kind, help } in FAMILIES {
            let row = format!("| `{name}` | {kind} | {help} |");
            assert!(GUIDE.lines().any(|line| line == row), "monitoring.md has no row\n{row}");
        }
        let rows = GUIDE.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, FAMILIES.len(), "monitoring.md has rows of metrics that are not there");
    }

    #[test]
    fn alerts_and_board_ask_for_metrics_that_are_there() {
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        for text in [ALERTS, BOARD] {
            let asked = text.split(|c| !part(c)).filter(|word| word.starts_with("tenure_"));
            let asked: Vec<_> = asked.collect();
            assert!(asked.len() >= 10, "{asked:?}");
            for name in asked {
                let known = |family: &Family| {
                    let bucket = family.kind == "histogram"
                        && name.strip_suffix("_bucket") == Some(family.name);
                    bucket || name == family.name
                };
                assert!(FAMILIES.iter().any(known), "{name}");
            }
        }
    }

    #[test]
    fn the_guide_says_what_to_do_at_each_alert() {
        let alerts = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
        let alerts: Vec<_> = alerts.collect();
        assert_eq!(alerts.len(), 7);
        for alert in alerts {
            assert!(GUIDE.contains(&format!("### {alert}\n")), "{alert}");
        }
    }
}
