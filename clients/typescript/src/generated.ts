// Made by scripts/generate-types.mjs from the /openapi.json of a server. Do not edit it.
/** Requests and replies of the HTTP API, as the server reads and writes them. */

export type After = AfterEntry[];

export type AfterEntry = string | AfterItem;

export interface AfterItem {
  /** A whole flow, however many jobs come into it. */
  flow?: string;
  /** A job or flow that is not there counts as done. Without it the push is refused. */
  gone?: GoneIsDone;
  /** The id of a job, or key:KEY for the job that held KEY before this call. */
  job?: string;
  /** The ref of another item of this call. */
  ref?: string;
}

export interface Audit {
  /** How many things were checked. */
  checked: number;
  /** What is wrong, a sentence each. */
  faults: string[];
  /** Whether nothing is wrong. */
  ok: boolean;
}

export interface Backoff {
  /** The first wait, or the only one of kind fixed; 1s if absent. */
  base?: string;
  /** The waits of kind list, 1 to 100; the last one repeats. */
  delays?: string[];
  /** Whether each wait is drawn evenly between half of it and the whole; true if absent. */
  jitter?: boolean;
  /** How the waits grow: exponential (the default), fixed, or a list. */
  kind?: "exponential" | "fixed" | "list";
  /** The longest wait of kind exponential; 1h if absent. */
  max?: string;
}

export interface Ban {
  /** Why it is banned, for people; at most 8 KiB. */
  reason?: string;
}

export interface BlockedOn {
  /** A limit without a free permit. */
  limit?: string;
  /** A pool without a free resource. */
  pool?: string;
}

export type CatchUp = "none" | "last" | "all";

export interface Child {
  /** The id of the child. */
  id: string;
  /** What becomes of it when this job fails or is cancelled. */
  on_parent_failure: OnParentFailure;
  /** Where it stands. */
  state: JobState;
}

export interface Children {
  /** The items of this page. */
  items: Child[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
  /** true: only 10,000 rows were looked at; go on with next. */
  partial?: boolean;
}

export type Code = "bad_json" | "bad_request" | "unauthorized" | "forbidden" | "forbidden_origin" | "job_not_found" | "queue_not_found" | "limit_not_found" | "pool_not_found" | "resource_not_found" | "schedule_not_found" | "flow_not_found" | "lease_not_found" | "route_not_found" | "method_not_allowed" | "request_timeout" | "wrong_state" | "unique_conflict" | "not_empty" | "in_use" | "stale_sync" | "other_owner" | "too_large" | "unsupported_media_type" | "invalid_field" | "unknown_field" | "out_of_bounds" | "conflicting_fields" | "unknown_limit" | "unknown_pool" | "unknown_resource" | "never_fits" | "duplicate_need" | "empty_set" | "retires_most" | "cycle" | "unknown_parent" | "unknown_zone" | "never_fires" | "head_too_large" | "queue_full" | "line_full" | "namespaces_full" | "store_full" | "overloaded" | "draining" | "store_unavailable" | "trail_unwritable" | "not_owner" | "outcome_unknown" | "lease_lost" | "already_settled" | "internal";

export type Document = Record<string, unknown>;

export interface DoneMany {
  /** How many jobs this call changed. */
  done: number;
  /** Whether jobs may be left that match. */
  more: boolean;
  /** The cursor with which the next call goes on; null when all are done. */
  next: string | null;
}

export interface Event {
  /** When it happened, by the engine's clock. */
  at: string;
  /** Which attempt of the job this was, from 1. */
  attempt?: number | null;
  /**
   * The name of the token whose call made this event, if the call needed operate or admin; absent
   * otherwise.
   */
  by?: string;
  /** The jobs of the flow by where they stand. */
  counts?: FlowCounts | null;
  /** The last 256 bytes of the error. */
  error?: string | null;
  /** Permits of the limit that are in use outside. */
  external?: number | null;
  /** The fence of that lease. */
  fence?: number | null;
  /** The flow that the job belongs to, or that is finished. */
  flow?: string | null;
  /** The id of its worker; null if its caller named none. */
  holder?: string | null;
  /** Its place: the same for everybody, also after a restart. */
  id: EventId;
  /** The id of the job. */
  job?: string | null;
  /** The id of the lease that was granted or ended. */
  lease?: string | null;
  /** The limit that the event is about. */
  limit?: string | null;
  /** The moment of the schedule that fired, was skipped or missed, or to which it was moved. */
  moment?: string | null;
  /** How many moments. */
  n?: number | null;
  /** What the job at the head of its line lacks. */
  on?: BlockedOn | null;
  /** How the lease ended: the outcome of its settle, or lost. */
  outcome?: string | null;
  /** The pool that the event is about. */
  pool?: string | null;
  /** The queue of the job, or the queue that was changed. */
  queue?: string | null;
  /** The resource of that pool. */
  resource?: string | null;
  /** When the job may run again. */
  run_at?: string | null;
  /** The schedule that made the job, or that was changed, fired, skipped, missed or moved. */
  schedule?: string | null;
  /** What happened. Each type has the fields that the reference names. */
  type: EventType;
  /** The end of a pause or a rest; null if it has none. */
  until?: string | null;
  /**
   * job.ready: due, parents, retry or run_now. schedule.skipped: overlap, queue_full or
   * invalid_field. Of other types a sentence.
   */
  why?: string | null;
}

export type EventId = string;

export interface EventStats {
  /** What the events take in the store, by its own count. */
  bytes: number;
  /** The oldest that is kept; null if none is. */
  first: EventId | null;
  /** The newest that is kept; null if none is. */
  last: EventId | null;
}

export type EventType = "job.pushed" | "job.replaced" | "job.changed" | "job.deleted" | "job.ready" | "job.blocked" | "job.granted" | "job.succeeded" | "job.failed" | "job.cancelled" | "job.retrying" | "job.snoozed" | "job.released" | "job.lost" | "job.progress" | "job.cancel_requested" | "lease.granted" | "lease.ended" | "limit.changed" | "limit.deleted" | "limit.paused" | "limit.resumed" | "limit.observed" | "gauge.failed" | "gauge.read_again" | "queue.changed" | "queue.deleted" | "queue.paused" | "queue.resumed" | "pool.changed" | "pool.synced" | "pool.deleted" | "resource.cooling" | "resource.banned" | "resource.restored" | "resource.retired" | "schedule.changed" | "schedule.deleted" | "schedule.fired" | "schedule.skipped" | "schedule.missed" | "schedule.moved" | "schedule.ended" | "schedule.paused" | "schedule.resumed" | "flow.finished" | "clock.behind" | "engine.deaf" | "engine.learning";

export interface Events {
  /** What was missed before the first of these; null if nothing. */
  gap: Gap | null;
  /** What happened, in its order, as far as it was asked for. */
  items: Event[];
  /** Where to go on: give it as since. */
  next: EventId;
}

export interface Explained {
  /** The id of the job. */
  id: string;
  /** The lease of a running job. */
  lease?: RunningLease;
  /** All that the job waits for; empty while it runs and when it has ended. */
  reasons: Reason[];
  /** Where the job stands. */
  state: JobState;
  /** In one sentence, what the job waits for. */
  summary: string;
}

export interface ExtendCall {
  /** Leases to keep alive, at most 1,000: ids, or objects with a progress report. */
  leases: ExtendItem[];
  /**
   * A new ttl for all of them, 1s to 1h; absent, each keeps its own. An extend never shortens a
   * lease.
   */
  ttl?: string;
}

export type ExtendItem = string | LeaseReport;

export interface Extended {
  /** Ids of extended leases whose job is to be cancelled: stop its work, and settle it. */
  cancel: string[];
  /** Leases that live on. */
  extended: ExtendedLease[];
  /** Ids of leases that are not held any more: stop their work. */
  lost: string[];
}

export interface ExtendedLease {
  /** When it is taken back now unless it is extended again. */
  expires_at: string;
  /** The id of the lease. */
  lease: string;
}

export interface FailureGroup {
  /** How many jobs failed so. */
  count: number;
  /** What their last errors have in common: the first 120 characters, without numbers and ids. */
  error: string;
  /** When the first of them ended. */
  first_at: string;
  /** The id of the one that ended last. */
  job: string;
  /** The kind of these jobs. */
  kind: string;
  /** When the last of them ended. */
  last_at: string;
  /** The queue of these jobs. */
  queue: string;
}

export interface Failures {
  /**
   * Failed jobs that have queue, kind and the beginning of the error in common, the most frequent
   * first.
   */
  items: FailureGroup[];
  /** Whether only a part of the failed jobs was looked at. */
  partial: boolean;
}

export interface Flow {
  /** Its jobs are being cancelled, and what is pushed into it meanwhile is stored as cancelled. */
  cancelling: boolean;
  /** Its jobs by where they stand. */
  counts: FlowCounts;
  /** When its first job came. */
  created_at: string;
  /** When its last job ended; null while one is unfinished. */
  finished_at: string | null;
  /** The name of the flow. */
  flow: string;
  /** finished: none of its jobs is unfinished. */
  state: FlowState;
}

export interface FlowCounts {
  /** Jobs that were cancelled. */
  cancelled: number;
  /** Jobs that failed for good. */
  failed: number;
  /**
   * Jobs that succeeded; they count on when retain is over, and no longer once they are deleted.
   */
  succeeded: number;
  /** Jobs that have not ended, in any state. */
  unfinished: number;
}

export type FlowState = "open" | "finished";

export interface Flows {
  /** The items of this page. */
  items: Flow[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
  /** true: only 10,000 rows were looked at; go on with next. */
  partial?: boolean;
}

export interface Gap {
  /** The since that was asked for. */
  after: EventId;
  /** With which event it goes on. */
  first: EventId;
  /**
   * dropped: what came next is not kept any more. restarted: the store may have forgotten events.
   */
  why: GapWhy;
}

export type GapWhy = "dropped" | "restarted";

export type Gauge = {
  /**
   * JSON pointers (RFC 6901) to the whole numbers that are added, 1 to 16, each of at most 256
   * bytes.
   */
  count: string[];
  /** How often it is read, 500ms to 1h; 2s if absent. */
  every?: string;
  /** How long a run of ours may take to appear in the count, at most 1h; 10s if absent. */
  lag?: string;
  /**
   * What holds once the reading is stale: keep (the default) goes on with the last value, hold
   * grants nothing more.
   */
  on_stale?: OnStale;
  /**
   * How old the last reading may become, at most 1d and at least what is fresh; 30s if absent, or
   * longer for a slow gauge.
   */
  stale?: string;
  /**
   * The address that a GET asks for JSON, at most 2 KiB; shown without its login and query.
   * Excludes scrapyd.
   */
  url: string;
} | {
  /** How often it is read, 500ms to 1h; 2s if absent. */
  every?: string;
  /** How long a run of ours may take to appear in the count, at most 1h; 10s if absent. */
  lag?: string;
  /**
   * What holds once the reading is stale: keep (the default) goes on with the last value, hold
   * grants nothing more.
   */
  on_stale?: OnStale;
  /** The one scrapyd project that counts; all if absent. */
  project?: string | null;
  /**
   * The address of a scrapyd, whose listjobs.json is read; shown without its login. Excludes url
   * and count.
   */
  scrapyd: string;
  /**
   * How old the last reading may become, at most 1d and at least what is fresh; 30s if absent, or
   * longer for a slow gauge.
   */
  stale?: string;
};

export interface GaugeReading {
  /** When the last good reading was asked for; null if there is none yet. */
  asked_at: string | null;
  /** Why that attempt failed, at most 256 bytes, without the address. */
  error: string | null;
  /** How many of those are not our own runs; null if there is no reading. */
  external: number | null;
  /** When the last attempt failed; null if the last attempt was good. */
  failed_at: string | null;
  /** What the address counted then; null if there is no reading. */
  sum: number | null;
}

export type GoneIsDone = "done";

export type Granted = Lease | Tokens;

export interface Health {
  /** The process lives: always ok. */
  status: "ok";
}

export interface HeldResource {
  /** The id of the resource. */
  id: string;
  /** The pool of the resource. */
  pool: string;
}

export interface Holder {
  /** The id of the worker. */
  holder: string;
  /** The id of the job; null for a lease without a job. */
  job: string | null;
  /** The id of the lease that holds it. */
  lease: string;
  /** When the lease was granted. */
  since: string;
}

export interface Job {
  /** The first 100 parents: ids of jobs, and flows. */
  after: ShownParent[];
  /** Runs that ended in succeeded or failed, and the one that is running; 0 before the first. */
  attempt: number;
  /** Whether a cancel waits until its holder hears of it. */
  cancel_requested: boolean;
  /**
   * Only in the answer of a retry: how many jobs the failure of this one had cancelled. They stay
   * cancelled.
   */
  cancelled_children?: number;
  /** When the job was pushed. */
  created_at: string;
  /** The last error, at most 8 KiB; null if there was none. */
  error: string | null;
  /** The last 20 errors, oldest first. */
  errors: JobError[];
  /** The job is cancelled if it is not running by this moment; null if never. */
  expires_at: string | null;
  /** When the job ended; null until then. */
  finished_at: string | null;
  /** The flow to which the job belongs. */
  flow: string | null;
  /** The group in which the job takes turns; null if none. */
  group: string | null;
  /** The id of the job. */
  id: string;
  /** What a worker library chooses the handler by; "" if none. */
  kind: string;
  /** Words for people and filters. */
  labels: Record<string, unknown>;
  /** The id of the lease that holds the job; null unless it runs. */
  lease: string | null;
  /** How many times in a row the worker was lost; any accepted settle sets it to 0. */
  lost: number;
  /** Limits and pools that the job holds while it runs, as copied at the push. */
  needs: Need[];
  /** What becomes of it when a parent fails or is cancelled. */
  on_parent_failure: OnParentFailure;
  /** How many parents it has. */
  parents: number;
  /** What the handler gets. Lists leave it out unless full=true. */
  payload?: unknown;
  /** Jobs with a higher priority go first: -100 to 100. */
  priority: number;
  /** What its holder reported last, at most 4 KiB; null if nothing. */
  progress: unknown;
  /** The queue in which the job waits. */
  queue: string;
  /** What the job succeeded with; null until then. Lists leave it out unless full=true. */
  result?: unknown;
  /** How long the finished job is kept, as copied at the push; null decides by its end. */
  retain: string | null;
  /** What happens after a failed or lost run, as copied at the push. */
  retry: ShownRetry;
  /** The moment before which the job does not run, or at which it became due. */
  run_at: string;
  /** The schedule that made the job; null for a job that was pushed. */
  schedule: MadeBy | null;
  /** How many of its runs ended in snoozed; 0 again when it is retried or replaced. */
  snoozed: number;
  /** When its last run began; null before the first. */
  started_at: string | null;
  /** Where the job stands. */
  state: JobState;
  /** Longest time of one run, as copied at the push; null if none. */
  timeout: string | null;
  /** The W3C trace context in which the job was pushed; lists show it with full=true alone. */
  traceparent?: string;
  /** The unique key, as it was pushed; null if none. */
  unique: ShownUnique | null;
  /** How many of its parents have not ended, or have not been told to it yet. */
  waiting_on: number;
}

export interface JobError {
  /** When that run ended. */
  at: string;
  /** The attempt that ended so, from 1. */
  attempt: number;
  /** The text of the error; the end of one that was longer than 8 KiB. */
  error: string;
  /**
   * How the run ended: failed by its holder or its timeout, lost with its worker, or never
   * delivered to one.
   */
  outcome: "failed" | "lost" | "undelivered";
}

export interface JobFilter {
  /** The next of the answer before, to go on where that call stopped. */
  cursor?: string;
  /** Jobs whose last error contains this text, letter by letter; at most 8 KiB. */
  error?: string;
  /** Jobs that ended at this moment or later. */
  finished_after?: string;
  /** Jobs that ended before this moment. */
  finished_before?: string;
  /** Jobs of this flow. */
  flow?: string;
  /** Jobs of this kind; an empty text names those without one. */
  kind?: string;
  /** Jobs with this label, written KEY:VALUE and split at the last colon. */
  label?: string;
  /** How many jobs one call changes at most, 1 to 1,000; 1,000 if absent. */
  max?: number;
  /** Jobs of this queue. */
  queue?: string;
  /** Jobs that this schedule made; looked for in at most 10,000 jobs. */
  schedule?: string;
  /** Jobs in one of these states, separated by commas, such as ready,blocked. */
  state?: string;
}

export interface JobPatch {
  /** How long from now the job may run; null is now. Excludes run_at. */
  delay?: string | null;
  /** The new moment by which the job must run; null is none. */
  expires_at?: string | null;
  /** The new group; null is none. */
  group?: string | null;
  /** The new labels, which replace all of the old ones; null is none. */
  labels?: Record<string, string> | null;
  /** The new needs, at most 16; null is those of the queue. */
  needs?: Need[] | null;
  /** The new payload, at most 256 KiB; null is null. */
  payload?: unknown;
  /** The new priority, -100 to 100; null is 0. */
  priority?: number | null;
  /** The new moment before which the job does not run; null is now. Excludes delay. */
  run_at?: string | null;
  /** The new longest time of one run; null is that of the queue. */
  timeout?: string | null;
}

export type JobState = "dependent" | "scheduled" | "ready" | "blocked" | "running" | "succeeded" | "failed" | "cancelled";

export interface Jobs {
  /** The items of this page. */
  items: Job[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
  /** true: only 10,000 rows were looked at; go on with next. */
  partial?: boolean;
}

export interface LastEnded {
  /** When the job ended. */
  finished_at: string;
  /** The id of the job. */
  job: string;
  /** How the job ended. */
  state: JobState;
}

export interface LastFired {
  /** The moment that fired last. */
  at: string;
  /** The id of the job that it made. */
  job: string;
}

export interface Later {
  /** How long from now, 0s to 3650d. Excludes until. */
  for?: string;
  /** The moment at which it ends. Excludes for. */
  until?: string;
}

export interface Lease {
  /** When the run must be over; null without a timeout. */
  deadline: string | null;
  /** When the lease is taken back unless it is extended. */
  expires_at: string;
  /**
   * A number that grows with every grant in the namespace; pass it to whatever the lease protects.
   */
  fence: number;
  /** When the lease was granted. */
  granted_at: string;
  /** The id of the worker. */
  holder: string;
  /** The job to run; null if needs alone were asked for. */
  job: Job | null;
  /** The id of the lease, for extend and settle. */
  lease: string;
  /** Names of the limits that it holds. */
  limits: string[];
  /** The resources that it holds, with their data. */
  resources: LeasedResource[];
}

export type LeaseCall = {
  /** How many jobs are leased at most, 1 to 1,000; 1 if absent. Goes with queues alone. */
  max?: number;
  /** The request_id of an earlier call of the same wait, whose place in line this call keeps. */
  place?: string;
  /** Queues to take jobs from, 1 to 32, tried in this order. Excludes needs. */
  queues: string[];
  /**
   * By which the call can be repeated: the same id gets the same leases, and never a second grant,
   * for at least 60s.
   */
  request_id?: string;
  /**
   * How long a lease lives without a heartbeat, 1s to 1h; 30s if absent. 0s takes tokens of needs
   * that are only rates, and leaves no lease.
   */
  ttl?: string;
  /** How long the call waits for the first grant, 0s to 1m; 0s if absent. */
  wait?: string;
  /** Who asks, for people to read and never a right; anonymous if absent. */
  worker?: WorkerName;
} | {
  /** Limits and pools to hold without a job, 1 to 16. Excludes queues. */
  needs: Need[];
  /** The request_id of an earlier call of the same wait, whose place in line this call keeps. */
  place?: string;
  /**
   * By which the call can be repeated: the same id gets the same leases, and never a second grant,
   * for at least 60s.
   */
  request_id?: string;
  /**
   * How long a lease lives without a heartbeat, 1s to 1h; 30s if absent. 0s takes tokens of needs
   * that are only rates, and leaves no lease.
   */
  ttl?: string;
  /** How long the call waits for the first grant, 0s to 1m; 0s if absent. */
  wait?: string;
  /** Who asks, for people to read and never a right; anonymous if absent. */
  worker?: WorkerName;
};

export interface LeaseReport {
  /** The id of the lease. */
  lease: string;
  /** What its holder reports, at most 4 KiB; shown with the job until the next report. */
  progress?: unknown;
}

export interface LeaseSummary {
  /** Whether a cancel waits until its holder hears of it. */
  cancel_requested: boolean;
  /** When the run must be over; null without a timeout. */
  deadline: string | null;
  /** When the lease is taken back unless it is extended. */
  expires_at: string;
  /**
   * A number that grows with every grant in the namespace; pass it to whatever the lease protects.
   */
  fence: number;
  /** When the lease was granted. */
  granted_at: string;
  /** The id of the worker. */
  holder: string;
  /** The id of the job; null for a lease without a job. */
  job: string | null;
  /** The id of the lease, for extend and settle. */
  lease: string;
  /** Names of the limits that it holds. */
  limits: string[];
  /** The queue of the job; null for a lease without a job. */
  queue: string | null;
  /** The resources that it holds, without data. */
  resources: HeldResource[];
}

export interface Leased {
  /** What was granted; empty if nothing could be within the wait. */
  leases: Granted[];
  /** When the answer may change at the earliest; null if that is unknown. */
  next_at?: string | null;
  /** Why needs that were asked for alone were not granted. */
  reasons?: Reason[];
}

export interface LeasedResource {
  /** The data of the resource, often secret; it is shown here and nowhere else. */
  data: unknown;
  /** The id of the resource. */
  id: string;
  /** The pool of the resource. */
  pool: string;
  /** The tags of the resource. */
  tags: string[];
}

export interface Leases {
  /** The items of this page. */
  items: LeaseSummary[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
  /** true: only 10,000 rows were looked at; go on with next. */
  partial?: boolean;
}

export interface Limit {
  /**
   * How many permits there are, 0 to 1,000,000,000; 0 closes the limit for now, null bounds
   * nothing.
   */
  concurrency: number | null;
  /** Permits that work outside uses, as observed or read. */
  external: number;
  /** How long each permit rests after its release; needs a concurrency. null is no rest. */
  gap: string | null;
  /** The gauge and what it read; null without one. */
  gauge: ReadGauge | null;
  /** Who holds permits, at most 20. */
  holders: Holder[];
  /** Permits of live leases, and those that rest. */
  in_use: number;
  /** Who waits in its line, the first 20; in GET of one limit alone. */
  line?: Waiter[];
  /** The name of the limit: family or family:key. */
  name: string;
  /** How many permits are in use beyond the concurrency, as after it was lowered. */
  over_limit: number;
  /** Until when nothing is granted; null if it is not paused. */
  paused_until: string | null;
  /**
   * How long a permit rests after a lease that its holder did not settle; needs a concurrency, 0s
   * by default. The longer of it and gap counts.
   */
  quarantine: string;
  /** How many tokens there are in a period; null bounds nothing. */
  rate: ShownRate | null;
  /** How many of those permits rest. */
  resting: number;
  /** The template whose settings hold for it; null if it has its own. */
  template: string | null;
  /** How many jobs and callers stand in its line. */
  waiting: number;
}

export interface LimitPatch {
  /**
   * How many permits there are, 0 to 1,000,000,000; 0 closes the limit for now, null bounds
   * nothing.
   */
  concurrency?: number | null;
  /** How long each permit rests after its release; needs a concurrency. null is no rest. */
  gap?: string | null;
  /**
   * Where the server counts permits that are used by work that Tenure does not run; null is no
   * gauge.
   */
  gauge?: Gauge | null;
  /**
   * How long a permit rests after a lease that its holder did not settle; needs a concurrency, 0s
   * by default. The longer of it and gap counts.
   */
  quarantine?: string | null;
  /** How many tokens there are in a period; null bounds nothing. */
  rate?: Rate | null;
}

export interface LimitSettings {
  /**
   * How many permits there are, 0 to 1,000,000,000; 0 closes the limit for now, null bounds
   * nothing.
   */
  concurrency?: number | null;
  /** How long each permit rests after its release; needs a concurrency. null is no rest. */
  gap?: string | null;
  /**
   * Where the server counts permits that are used by work that Tenure does not run; null is no
   * gauge.
   */
  gauge?: Gauge | null;
  /**
   * How long a permit rests after a lease that its holder did not settle; needs a concurrency, 0s
   * by default. The longer of it and gap counts.
   */
  quarantine?: string;
  /** How many tokens there are in a period; null bounds nothing. */
  rate?: Rate | null;
}

export interface LimitVerdict {
  /** The limit that was held. */
  limit: string;
  /** Nobody is granted it for this long from now; a later pause that is there holds. */
  pause?: string;
  /**
   * How many rate tokens were spent in truth, 0 or more; it corrects the cost that the grant
   * booked.
   */
  spent?: number;
}

export interface Limits {
  /** The items of this page. */
  items: Limit[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
  /** true: only 10,000 rows were looked at; go on with next. */
  partial?: boolean;
}

export interface MadeBy {
  /** The moment of the schedule; null for a run-now. */
  at: string | null;
  /** The id of the schedule. */
  id: string;
}

export interface Me {
  /** How many calls it may make in a time, such as 200/1s; null if any number. */
  calls: string | null;
  /** When the token ceases to be valid; null if never. */
  expires: string | null;
  /** How many calls, streams and waits it may have at once; null if any number. */
  in_flight: number | null;
  /** The name of the token; anyone if the server asks for none. */
  name: string;
  /** Patterns of the namespaces that it may use; * is all. */
  namespaces: string[];
  /** Patterns of the limits and pools that it may hold, such as pool:proxies; null if all. */
  needs: string[] | null;
  /** Patterns of its queues for push and work; null if all. */
  queues: string[] | null;
  /** The scopes of the token; read contains view. */
  scopes: Scope[];
  /**
   * A hash of the file of tokens of the server: equal where files are. Absent for callers without
   * admin, and without a file.
   */
  tokens?: string;
}

export interface NamedFlow {
  /** The flow for which the job waits. */
  flow: string;
}

export type Need = {
  /** How many rate tokens are taken, 0 to 1,000,000,000; 1 if absent. */
  cost?: number;
  /** The limit that is held, never a template. Excludes pool. */
  limit: string;
  /** How many permits of the limit are held, 1 to 1,000,000,000; 1 if absent. */
  weight?: number;
} | {
  /** How many different resources are held, 1 or more; 1 if absent. */
  count?: number;
  /** The id of the only resource that will do. */
  id?: string;
  /** The pool of which resources are held. Excludes limit. */
  pool: string;
  /** The id of the resource that is taken if it is free. */
  prefer?: string;
  /** Only resources with this tag. */
  tag?: string;
};

export interface NewJob {
  /** The parents: jobs and flows that must have ended before this job may run. */
  after?: After;
  /** How long after the push the job may run, 0s to 3650d; 0s if absent. Excludes run_at. */
  delay?: string;
  /** The job is cancelled, with the error expired, if it is not running by this moment. */
  expires_at?: string;
  /**
   * The flow to which the job belongs. Without it: that of its first parent that has one; in a
   * settle otherwise that of the settled job.
   */
  flow?: string;
  /**
   * The tenant, site or user for whom the job is: groups of a queue take turns by their shares.
   * Jobs without a group are one group together.
   */
  group?: string;
  /**
   * The id of the job, chosen by the caller, 1 to 256 bytes, not beginning with "key:"; made by the
   * server if absent. A push under an id that is there is answered with that job, and nothing is
   * stored.
   */
  id?: string;
  /** What a worker library chooses the handler by, at most 128 bytes; "" if absent. */
  kind?: string;
  /**
   * Words for people and filters: at most 16 strings of up to 256 bytes, under keys of 1 to 64
   * bytes.
   */
  labels?: Record<string, string>;
  /**
   * Limits and pools that the job holds while it runs, at most 16, none twice. They replace the
   * needs of the queue; an empty list means none.
   */
  needs?: Need[];
  /**
   * cancel (the default): a parent that fails for good or is cancelled cancels this job. run: any
   * end of a parent will do.
   */
  on_parent_failure?: OnParentFailure;
  /** What the handler gets: any JSON, at most 256 KiB; null if absent. */
  payload?: unknown;
  /** Jobs with a higher priority go first: -100 to 100, 0 if absent. */
  priority?: number;
  /** The queue in which the job waits, made by its first use; "default" if absent. */
  queue?: string;
  /**
   * A name within this array, or within the push of this settle, by which other items name it in
   * after. It is not stored, and a line of NDJSON has none.
   */
  ref?: string;
  /**
   * How long the finished job is kept, 0s to 3650d. Absent, that of the queue, otherwise 1h for
   * succeeded and cancelled jobs and 7d for failed ones.
   */
  retain?: string;
  /**
   * What happens after a failed or lost run; absent, the retry of the queue, otherwise the default.
   */
  retry?: Retry;
  /** The moment before which the job does not run; a moment in the past is now. Excludes delay. */
  run_at?: string;
  /**
   * Longest time of one run, more than 0s; the run then ends as failed. Absent, that of the queue,
   * otherwise none.
   */
  timeout?: string;
  /**
   * The W3C trace context of the push, version 00, which the worker is shown; absent, that of the
   * request's header traceparent.
   */
  traceparent?: string;
  /** The key of which only one unfinished job may exist in the namespace. */
  unique?: Unique;
}

export type NewJobs = NewJob | NewJob[];

export interface NewResource {
  /** What its holder gets and nobody else is shown: any JSON, at most 64 KiB; null if absent. */
  data?: unknown;
  /** The id of the resource, 1 to 256 bytes; it must not stand twice in a whole set. */
  id: string;
  /** How many leases may hold it at once, 1 to 1,000,000,000; 1 if absent. */
  slots?: number;
  /** Words by which a need asks for it, at most 16. */
  tags?: string[];
}

export type NewResources = NewResource | NewResource[];

export interface Observation {
  /** How many permits work outside uses now, 0 to 1,000,000,000. */
  external: number;
  /** How long the number holds; absent, until the next observation. */
  for?: string;
}

export type OnParentFailure = "cancel" | "run";

export type OnStale = "keep" | "hold";

export type Overlap = "skip" | "queue" | "allow";

export type Parent = ParentJob | ParentFlow;

export interface ParentFlow {
  /** Its jobs; all zero for a flow that is gone. */
  counts: FlowCounts;
  /** The flow for which the job waits. */
  flow: string;
}

export interface ParentJob {
  /** Why it failed or was cancelled. */
  error: string | null;
  /** When it ended; null until then. */
  finished_at: string | null;
  /** The id of the parent. */
  id: string;
  /** Its result; only with full=true. */
  result?: unknown;
  /** As of any job; gone: it is not there any more. */
  state: ParentState;
}

export type ParentState = "dependent" | "scheduled" | "ready" | "blocked" | "running" | "succeeded" | "failed" | "cancelled" | "gone";

export interface Parents {
  /** The items of this page. */
  items: Parent[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
  /** true: only 10,000 rows were looked at; go on with next. */
  partial?: boolean;
}

export interface Pool {
  /** How many resources have a free slot. */
  available: number;
  /** How many resources are banned. */
  banned: number;
  /** How long a resource rests after every use; 0s by default. */
  cooldown: string;
  /** How many resources rest. */
  cooling: number;
  /** How many resources have a holder. */
  leased: number;
  /** After how many grants a resource is banned, 1 to 1,000,000,000; null is never. */
  max_uses: number | null;
  /** The name of the pool. */
  name: string;
  /**
   * Which free resource is handed out: the one whose last use is longest ago (lru, the default), or
   * any.
   */
  pick: "lru" | "random";
  /** How long a resource rests whose holder was lost; 0s by default. */
  quarantine: string;
  /** How often one resource is granted in a period; null is no bound. */
  rate: ShownRate | null;
  /** How many jobs and callers stand in its lines. */
  waiting: number;
}

export interface PoolPatch {
  /** How long a resource rests after every use; 0s by default. */
  cooldown?: string | null;
  /** After how many grants a resource is banned, 1 to 1,000,000,000; null is never. */
  max_uses?: number | null;
  /**
   * Which free resource is handed out: the one whose last use is longest ago (lru, the default), or
   * any.
   */
  pick?: "lru" | "random" | null;
  /** How long a resource rests whose holder was lost; 0s by default. */
  quarantine?: string | null;
  /** How often one resource is granted in a period; null is no bound. */
  rate?: Rate | null;
}

export interface PoolSettings {
  /** How long a resource rests after every use; 0s by default. */
  cooldown?: string;
  /** After how many grants a resource is banned, 1 to 1,000,000,000; null is never. */
  max_uses?: number | null;
  /**
   * Which free resource is handed out: the one whose last use is longest ago (lru, the default), or
   * any.
   */
  pick?: "lru" | "random";
  /** How long a resource rests whose holder was lost; 0s by default. */
  quarantine?: string;
  /** How often one resource is granted in a period; null is no bound. */
  rate?: Rate | null;
}

export interface Pools {
  /** The items of this page. */
  items: Pool[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
  /** true: only 10,000 rows were looked at; go on with next. */
  partial?: boolean;
}

export interface Preview {
  /** The next moments, without jitter. */
  next: string[];
}

export interface PreviewCall {
  /** How many moments are shown at most, 1 to 100; 5 if absent. */
  count?: number;
  /** A cron expression, as in a schedule. Excludes every. */
  cron?: string;
  /** No moment lies after it. */
  ends_at?: string;
  /** The interval, whole seconds from 1s to 3650d. Excludes cron. */
  every?: string;
  /** Shows moments after this one; now if absent. */
  from?: string;
  /** The id of the schedule, which decides the phase of an interval without starts_at. */
  id?: string;
  /** No moment lies before it. */
  starts_at?: string;
  /** The IANA zone in which cron is read; UTC if absent. */
  zone?: string;
}

export interface Problem {
  /**
   * The name of the caller's token, if that has used up its calls or in_flight: the caller waits as
   * long as Retry-After says.
   */
  caller?: string;
  /** What is wrong, for programs; it never changes its meaning. */
  code: Code;
  /** What is wrong with this very call, in a sentence. */
  detail: string;
  /** What to do next, in a sentence. */
  hint: string;
  /** The number of the item in an array, from 0. */
  index?: number;
  /** The id of the job that is in the way. */
  job?: string;
  /** The number of the line in NDJSON, from 1. */
  line?: number;
  /** Where it is wrong: a JSON pointer into the body, or /query/NAME, /header/NAME, /path/NAME. */
  pointer?: string;
  /** The HTTP status of the answer. */
  status: number;
  /** The code in a few words. */
  title: string;
  /** A name for the code: urn:tenure:error:CODE. */
  type: string;
}

/** The answer for a job with `Prefer: return=minimal`, and for each line of NDJSON. */
export interface PushedId {
  /** Whether the job was there already, and nothing was stored. */
  duplicate: boolean;
  /** The id of the job. */
  id: string;
  /** The number of its line in NDJSON, from 1; absent in JSON. */
  line?: number;
  /** Whether a job that was there got the new content. */
  replaced?: boolean;
  /** 0 if nobody asked for the queue within the last minute; absent otherwise. */
  workers?: number;
}

export interface PushedJob {
  /** The first 100 parents: ids of jobs, and flows. */
  after: ShownParent[];
  /** Runs that ended in succeeded or failed, and the one that is running; 0 before the first. */
  attempt: number;
  /** Whether a cancel waits until its holder hears of it. */
  cancel_requested: boolean;
  /**
   * Only in the answer of a retry: how many jobs the failure of this one had cancelled. They stay
   * cancelled.
   */
  cancelled_children?: number;
  /** When the job was pushed. */
  created_at: string;
  /** Whether the job was there already, and nothing was stored. */
  duplicate: boolean;
  /** The last error, at most 8 KiB; null if there was none. */
  error: string | null;
  /** The last 20 errors, oldest first. */
  errors: JobError[];
  /** The job is cancelled if it is not running by this moment; null if never. */
  expires_at: string | null;
  /** When the job ended; null until then. */
  finished_at: string | null;
  /** The flow to which the job belongs. */
  flow: string | null;
  /** The group in which the job takes turns; null if none. */
  group: string | null;
  /** The id of the job. */
  id: string;
  /** What a worker library chooses the handler by; "" if none. */
  kind: string;
  /** Words for people and filters. */
  labels: Record<string, unknown>;
  /** The id of the lease that holds the job; null unless it runs. */
  lease: string | null;
  /** How many times in a row the worker was lost; any accepted settle sets it to 0. */
  lost: number;
  /** Limits and pools that the job holds while it runs, as copied at the push. */
  needs: Need[];
  /** What becomes of it when a parent fails or is cancelled. */
  on_parent_failure: OnParentFailure;
  /** How many parents it has. */
  parents: number;
  /** What the handler gets. Lists leave it out unless full=true. */
  payload?: unknown;
  /** Jobs with a higher priority go first: -100 to 100. */
  priority: number;
  /** What its holder reported last, at most 4 KiB; null if nothing. */
  progress: unknown;
  /** The queue in which the job waits. */
  queue: string;
  /** Whether a job that was there got the new content. */
  replaced?: boolean;
  /** What the job succeeded with; null until then. Lists leave it out unless full=true. */
  result?: unknown;
  /** How long the finished job is kept, as copied at the push; null decides by its end. */
  retain: string | null;
  /** What happens after a failed or lost run, as copied at the push. */
  retry: ShownRetry;
  /** The moment before which the job does not run, or at which it became due. */
  run_at: string;
  /** The schedule that made the job; null for a job that was pushed. */
  schedule: MadeBy | null;
  /** How many of its runs ended in snoozed; 0 again when it is retried or replaced. */
  snoozed: number;
  /** When its last run began; null before the first. */
  started_at: string | null;
  /** Where the job stands. */
  state: JobState;
  /** Longest time of one run, as copied at the push; null if none. */
  timeout: string | null;
  /** The W3C trace context in which the job was pushed; lists show it with full=true alone. */
  traceparent?: string;
  /** The unique key, as it was pushed; null if none. */
  unique: ShownUnique | null;
  /** How many of its parents have not ended, or have not been told to it yet. */
  waiting_on: number;
  /** 0 if nobody asked for the queue within the last minute; absent otherwise. */
  workers?: number;
}

export type PushedJobs = PushedJob | PushedJob[] | PushedId | PushedId[];

export interface Queue {
  /** Its jobs by state. */
  counts: QueueCounts;
  /**
   * How long a job waits after its worker was lost; null is 2s, doubled for each further loss in a
   * row, at most 1m.
   */
  lost_delay: string | null;
  /**
   * Most jobs that may wait, 0 to 1,000,000,000; pushes beyond it are refused as queue_full. null
   * is no bound.
   */
  max_waiting: number | null;
  /** The name of the queue. */
  name: string;
  /**
   * Needs of a pushed job that states none, at most 16. {payload.FIELD} in the name of a limit is
   * filled in from its payload.
   */
  needs: Need[];
  /** Since when the oldest ready job is ready; null if none is. */
  oldest_ready_at: string | null;
  /** Whether nothing is granted now. */
  paused: boolean;
  /** Until when it is paused; null if without end, or not paused. */
  paused_until: string | null;
  /**
   * How long a finished job is kept that states no retain; null decides by its end: 1h, or 7d if it
   * failed.
   */
  retain: string | null;
  /** The retry of a pushed job that states none; null is the default retry. */
  retry: ShownRetry | null;
  /**
   * How many turns each group gets, 1 to 1,000 by the name of the group; 1 for a group that is not
   * named.
   */
  shares: Record<string, number>;
  /** Whether lists of the dashboard show one line of each payload; true unless it is set. */
  show_payload: boolean;
  /**
   * How many moments of schedules into it were skipped: by an unfinished job, a full queue, or a
   * payload that lacks a field.
   */
  skipped: number;
  /** The timeout of a pushed job that states none; null is no timeout. */
  timeout: string | null;
  /** How many workers asked for it within the last minute. */
  workers: number;
}

export interface QueueCounts {
  /** Jobs whose turn came and that lack a need. */
  blocked: number;
  /** Jobs that wait for other jobs. */
  dependent: number;
  /** Jobs that wait for their turn. */
  ready: number;
  /** Jobs that a worker holds. */
  running: number;
  /** Jobs that wait for a moment: a delay, a retry, a snooze. */
  scheduled: number;
}

export interface QueuePatch {
  /**
   * How long a job waits after its worker was lost; null is 2s, doubled for each further loss in a
   * row, at most 1m.
   */
  lost_delay?: string | null;
  /**
   * Most jobs that may wait, 0 to 1,000,000,000; pushes beyond it are refused as queue_full. null
   * is no bound.
   */
  max_waiting?: number | null;
  /**
   * Needs of a pushed job that states none, at most 16. {payload.FIELD} in the name of a limit is
   * filled in from its payload.
   */
  needs?: Need[] | null;
  /**
   * How long a finished job is kept that states no retain; null decides by its end: 1h, or 7d if it
   * failed.
   */
  retain?: string | null;
  /** The retry of a pushed job that states none; null is the default retry. */
  retry?: Retry | null;
  /**
   * How many turns each group gets, 1 to 1,000 by the name of the group; 1 for a group that is not
   * named.
   */
  shares?: Record<string, number> | null;
  /** Whether lists of the dashboard show one line of each payload; true unless it is set. */
  show_payload?: boolean | null;
  /** The timeout of a pushed job that states none; null is no timeout. */
  timeout?: string | null;
}

export interface QueueSettings {
  /**
   * How long a job waits after its worker was lost; null is 2s, doubled for each further loss in a
   * row, at most 1m.
   */
  lost_delay?: string | null;
  /**
   * Most jobs that may wait, 0 to 1,000,000,000; pushes beyond it are refused as queue_full. null
   * is no bound.
   */
  max_waiting?: number | null;
  /**
   * Needs of a pushed job that states none, at most 16. {payload.FIELD} in the name of a limit is
   * filled in from its payload.
   */
  needs?: Need[];
  /**
   * How long a finished job is kept that states no retain; null decides by its end: 1h, or 7d if it
   * failed.
   */
  retain?: string | null;
  /** The retry of a pushed job that states none; null is the default retry. */
  retry?: Retry | null;
  /**
   * How many turns each group gets, 1 to 1,000 by the name of the group; 1 for a group that is not
   * named.
   */
  shares?: Record<string, number>;
  /** Whether lists of the dashboard show one line of each payload; true unless it is set. */
  show_payload?: boolean;
  /** The timeout of a pushed job that states none; null is no timeout. */
  timeout?: string | null;
}

export interface Queues {
  /** The items of this page. */
  items: Queue[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
  /** true: only 10,000 rows were looked at; go on with next. */
  partial?: boolean;
}

export interface Rate {
  /**
   * How many tokens may go at once after a rest, 1 or more; 1 if absent, which is evenly spaced.
   */
  burst?: number;
  /** How many tokens there are in each period, 1 to 1,000,000,000. */
  count: number;
  /** The period, more than 0s. */
  per: string;
}

export interface ReadGauge {
  /**
   * JSON pointers (RFC 6901) to the whole numbers that are added, 1 to 16, each of at most 256
   * bytes.
   */
  count?: string[];
  /** How often it is read, 500ms to 1h; 2s if absent. */
  every: string;
  /** How long a run of ours may take to appear in the count, at most 1h; 10s if absent. */
  lag: string;
  /**
   * What holds once the reading is stale: keep (the default) goes on with the last value, hold
   * grants nothing more.
   */
  on_stale: OnStale;
  /** The one scrapyd project that counts; all if absent. */
  project?: string | null;
  /** What was read last; null before the first attempt. */
  reading: GaugeReading | null;
  /**
   * The address of a scrapyd, whose listjobs.json is read; shown without its login. Excludes url
   * and count.
   */
  scrapyd?: string;
  /**
   * How old the last reading may become, at most 1d and at least what is fresh; 30s if absent, or
   * longer for a slow gauge.
   */
  stale: string;
  /**
   * The address that a GET asks for JSON, at most 2 KiB; shown without its login and query.
   * Excludes scrapyd.
   */
  url?: string;
}

export interface Ready {
  /** In one sentence, how the server and its store are. */
  detail: string;
  /** Whether the server is about to end. */
  draining: boolean;
  /** Whether calls are answered: ok, draining, or degraded while the store is not well. */
  status: "ok" | "draining" | "degraded";
  /** What kind of store the server has. */
  store: string;
}

export interface Reason {
  /** How many jobs go first; null if unknown. */
  ahead: number | null;
  /** How many units of it there are; null if nothing is counted. */
  capacity: number | null;
  /** The same in one sentence. */
  detail: string;
  /** No sooner than this moment; null if a holder decides. */
  earliest: string | null;
  /** Who holds it, at most 20. */
  holders: Holder[];
  /** How many units of it are taken; null if nothing is counted. */
  in_use: number | null;
  /** What kind of thing is waited for. */
  kind: ReasonKind;
  /** The limit, pool or queue; null if there is none. */
  name: string | null;
  /** The place in that line, 1 for the next; null without a line. */
  position: number | null;
}

export type ReasonKind = "waiting_on" | "scheduled" | "behind" | "queue_paused" | "no_worker" | "workers_full" | "limit" | "rate" | "gap" | "limit_paused" | "external" | "pool" | "reserved" | "never_fits";

export interface Resource {
  /** The keys of its data, with • for each value. */
  data: unknown;
  /** The leases that hold it. */
  holders: Holder[];
  /** The id of the resource. */
  id: string;
  /** How many leases hold it now. */
  in_use: number;
  /** When it was granted last; null if never. */
  last_used_at: string | null;
  /** Why it is cooling or banned; null if it is neither. */
  reason: string | null;
  /** Whether it goes as soon as it is free. */
  retiring: boolean;
  /** How many leases may hold it at once. */
  slots: number;
  /**
   * Whether it may be handed out: available, cooling until a moment, or banned until it is
   * restored.
   */
  state: "available" | "cooling" | "banned";
  /** Words by which a need asks for it. */
  tags: string[];
  /** Until when it is cooling; null if it is not. */
  until: string | null;
  /** How many times it was granted. */
  uses: number;
}

export interface ResourceList {
  /** The items of this page. */
  items: Resource[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
  /** true: only 10,000 rows were looked at; go on with next. */
  partial?: boolean;
}

export interface ResourcePatch {
  /** The new data, at most 64 KiB, for the next lease; null is null. */
  data?: unknown;
  /** The new number of leases that may hold it at once; null is 1. */
  slots?: number | null;
  /** The new tags, at most 16, which replace all of the old ones; null is none. */
  tags?: string[] | null;
}

export type ResourceSet = NewResource[];

export interface ResourceVerdict {
  /** With cool: how long it rests. Excludes until. */
  for?: string;
  /** The id of the resource. */
  id: string;
  /** The pool of the resource. */
  pool: string;
  /** With ban: why, for people; at most 8 KiB. */
  reason?: string;
  /** With cool: when its rest ends. Excludes for. */
  until?: string;
  /** Nothing special (ok, the default), let it rest (cool), or hand it out no more (ban). */
  verdict?: "ok" | "cool" | "ban";
}

export type Resources = Resource | Resource[];

export interface Result {
  /** Runs that ended in succeeded or failed, and the one that is running. */
  attempt: number;
  /** Why it failed or was cancelled; null until it has ended, also between attempts. */
  error: string | null;
  /** When the job ended; null until then. */
  finished_at: string | null;
  /** The id of the job. */
  id: string;
  /** What its holder reported last; null if nothing. */
  progress: unknown;
  /**
   * Which progress that is: given back as seen, the wait ends with another one, too; null if
   * nothing was reported.
   */
  progress_id: string | null;
  /** What the job succeeded with; null until then. */
  result: unknown;
  /** Where the job stands; look at it first. */
  state: JobState;
}

export interface Retry {
  /** How long a job waits between attempts. */
  backoff?: Backoff;
  /** How many runs may fail, 0 to 1,000,000,000; 0 is without end, 20 the default. */
  max_attempts?: number;
  /**
   * How many times in a row the worker may be lost before the job fails as poison; 0 is never, 3
   * the default.
   */
  max_lost?: number;
  /** How often a job may snooze before it fails, 0 to 1,000,000,000; absent is without end. */
  max_snoozes?: number | null;
}

export interface RetryOne {
  /**
   * Retries the job only if this is still the moment at which it ended; otherwise it is refused as
   * wrong_state.
   */
  finished_at?: string;
}

export interface RunNow {
  /**
   * The id of the job that is made, by which the call can be repeated; made by the server if
   * absent.
   */
  id?: string;
}

export interface RunningLease {
  /** When it is taken back unless it is extended. */
  expires_at: string;
  /** The id of the worker. */
  holder: string;
  /** The id of the lease. */
  lease: string;
  /** When the lease was granted. */
  since: string;
}

export interface Schedule {
  /** Which of several due moments fire, as after an outage: none, last (the default), or all. */
  catch_up: CatchUp;
  /** With catch_up all, how many moments fire at most, 1 to 1,000; 100 by default. */
  catch_up_max: number;
  /** When its timing was changed last. */
  changed_at: string;
  /** When the schedule was made. */
  created_at: string;
  /**
   * A cron expression of five fields, or six with seconds first, at most 1,024 bytes. Excludes
   * every.
   */
  cron: string | null;
  /** Whether no moment is left. */
  ended: boolean;
  /** No moment lies after it; null is no end. */
  ends_at: string | null;
  /** The interval: whole seconds from 1s to 3650d. Excludes cron and zone. */
  every: string | null;
  /** How many moments made a job. */
  fired: number;
  /** The id of the schedule. */
  id: string;
  /** By how much a moment is late at most, 0s to 1d; 0s by default. */
  jitter: string;
  /** The job that each moment makes. */
  job: ScheduledJob;
  /** The last moment that fired; null if none did. */
  last: LastFired | null;
  /** The job of it that ended last; null if none did. */
  last_ended: LastEnded | null;
  /** When a job of it succeeded last; null if none did. */
  last_succeeded_at: string | null;
  /** How many moments were too late, or too many. */
  missed: number;
  /** Whether next_at was set by the next_in of a settle. */
  moved: boolean;
  /** The next five moments, or as many as are left; lists leave them out. */
  next?: string[];
  /** The next moment, without its jitter; null if none is left or it is paused without end. */
  next_at: string | null;
  /**
   * What becomes of a moment while a job of this schedule is unfinished: skip (the default), queue,
   * or allow.
   */
  overlap: Overlap;
  /** The set from outside to which the schedule belongs, for a sync; null is none. */
  owner: string | null;
  /** Whether nothing fires now. */
  paused: boolean;
  /** Until when it is paused; null if without end, or not paused. */
  paused_until: string | null;
  /**
   * How many moments were skipped: by an unfinished job, a full queue, a payload that lacks a
   * field, or a next_in.
   */
  skipped: number;
  /** No moment lies before it, and an interval counts from it; null is no start. */
  starts_at: string | null;
  /** In one sentence, what happens next. */
  summary: string;
  /** How many of its jobs have not ended. */
  unfinished: number;
  /**
   * The IANA zone in which cron is read, such as Europe/Berlin; UTC if absent. Goes with cron
   * alone.
   */
  zone: string | null;
}

export type ScheduleItem = {
  /** Which of several due moments fire, as after an outage: none, last (the default), or all. */
  catch_up?: CatchUp;
  /** With catch_up all, how many moments fire at most, 1 to 1,000; 100 by default. */
  catch_up_max?: number;
  /**
   * A cron expression of five fields, or six with seconds first, at most 1,024 bytes. Excludes
   * every.
   */
  cron: string | null;
  /** No moment lies after it; null is no end. */
  ends_at?: string | null;
  /**
   * The id of the schedule, 1 to 200 bytes. A set must state it, each one once; otherwise the path
   * names it, and a body may repeat it.
   */
  id: string;
  /** By how much a moment is late at most, 0s to 1d; 0s by default. */
  jitter?: string;
  /** The job that each moment makes. */
  job: ScheduledJob;
  /**
   * What becomes of a moment while a job of this schedule is unfinished: skip (the default), queue,
   * or allow.
   */
  overlap?: Overlap;
  /** The set from outside to which the schedule belongs, for a sync; null is none. */
  owner?: string | null;
  /** No moment lies before it, and an interval counts from it; null is no start. */
  starts_at?: string | null;
  /**
   * The IANA zone in which cron is read, such as Europe/Berlin; UTC if absent. Goes with cron
   * alone.
   */
  zone?: string | null;
} | {
  /** Which of several due moments fire, as after an outage: none, last (the default), or all. */
  catch_up?: CatchUp;
  /** With catch_up all, how many moments fire at most, 1 to 1,000; 100 by default. */
  catch_up_max?: number;
  /** No moment lies after it; null is no end. */
  ends_at?: string | null;
  /** The interval: whole seconds from 1s to 3650d. Excludes cron and zone. */
  every: string | null;
  /**
   * The id of the schedule, 1 to 200 bytes. A set must state it, each one once; otherwise the path
   * names it, and a body may repeat it.
   */
  id: string;
  /** By how much a moment is late at most, 0s to 1d; 0s by default. */
  jitter?: string;
  /** The job that each moment makes. */
  job: ScheduledJob;
  /**
   * What becomes of a moment while a job of this schedule is unfinished: skip (the default), queue,
   * or allow.
   */
  overlap?: Overlap;
  /** The set from outside to which the schedule belongs, for a sync; null is none. */
  owner?: string | null;
  /** No moment lies before it, and an interval counts from it; null is no start. */
  starts_at?: string | null;
};

export interface SchedulePatch {
  /** Which of several due moments fire, as after an outage: none, last (the default), or all. */
  catch_up?: CatchUp | null;
  /** With catch_up all, how many moments fire at most, 1 to 1,000; 100 by default. */
  catch_up_max?: number | null;
  /**
   * A cron expression of five fields, or six with seconds first, at most 1,024 bytes. Excludes
   * every.
   */
  cron?: string | null;
  /** No moment lies after it; null is no end. */
  ends_at?: string | null;
  /** The interval: whole seconds from 1s to 3650d. Excludes cron and zone. */
  every?: string | null;
  /**
   * The id of the schedule, 1 to 200 bytes. A set must state it, each one once; otherwise the path
   * names it, and a body may repeat it.
   */
  id?: string | null;
  /** By how much a moment is late at most, 0s to 1d; 0s by default. */
  jitter?: string | null;
  /** The job that each moment makes. */
  job?: ScheduledJob;
  /**
   * What becomes of a moment while a job of this schedule is unfinished: skip (the default), queue,
   * or allow.
   */
  overlap?: Overlap | null;
  /** The set from outside to which the schedule belongs, for a sync; null is none. */
  owner?: string | null;
  /** No moment lies before it, and an interval counts from it; null is no start. */
  starts_at?: string | null;
  /**
   * The IANA zone in which cron is read, such as Europe/Berlin; UTC if absent. Goes with cron
   * alone.
   */
  zone?: string | null;
}

export type ScheduleSet = ScheduleItem[];

export type ScheduleSettings = {
  /** Which of several due moments fire, as after an outage: none, last (the default), or all. */
  catch_up?: CatchUp;
  /** With catch_up all, how many moments fire at most, 1 to 1,000; 100 by default. */
  catch_up_max?: number;
  /**
   * A cron expression of five fields, or six with seconds first, at most 1,024 bytes. Excludes
   * every.
   */
  cron: string | null;
  /** No moment lies after it; null is no end. */
  ends_at?: string | null;
  /**
   * The id of the schedule, 1 to 200 bytes. A set must state it, each one once; otherwise the path
   * names it, and a body may repeat it.
   */
  id?: string;
  /** By how much a moment is late at most, 0s to 1d; 0s by default. */
  jitter?: string;
  /** The job that each moment makes. */
  job: ScheduledJob;
  /**
   * What becomes of a moment while a job of this schedule is unfinished: skip (the default), queue,
   * or allow.
   */
  overlap?: Overlap;
  /** The set from outside to which the schedule belongs, for a sync; null is none. */
  owner?: string | null;
  /** No moment lies before it, and an interval counts from it; null is no start. */
  starts_at?: string | null;
  /**
   * The IANA zone in which cron is read, such as Europe/Berlin; UTC if absent. Goes with cron
   * alone.
   */
  zone?: string | null;
} | {
  /** Which of several due moments fire, as after an outage: none, last (the default), or all. */
  catch_up?: CatchUp;
  /** With catch_up all, how many moments fire at most, 1 to 1,000; 100 by default. */
  catch_up_max?: number;
  /** No moment lies after it; null is no end. */
  ends_at?: string | null;
  /** The interval: whole seconds from 1s to 3650d. Excludes cron and zone. */
  every: string | null;
  /**
   * The id of the schedule, 1 to 200 bytes. A set must state it, each one once; otherwise the path
   * names it, and a body may repeat it.
   */
  id?: string;
  /** By how much a moment is late at most, 0s to 1d; 0s by default. */
  jitter?: string;
  /** The job that each moment makes. */
  job: ScheduledJob;
  /**
   * What becomes of a moment while a job of this schedule is unfinished: skip (the default), queue,
   * or allow.
   */
  overlap?: Overlap;
  /** The set from outside to which the schedule belongs, for a sync; null is none. */
  owner?: string | null;
  /** No moment lies before it, and an interval counts from it; null is no start. */
  starts_at?: string | null;
};

export interface ScheduleStats {
  /** How many schedules there are. */
  count: number;
  /** How many have a moment that is due and not decided yet. */
  due: number;
  /** Since when the oldest of those moments is due; null if none is. */
  oldest_due_at: string | null;
  /** How many of them are paused now. */
  paused: number;
}

export interface ScheduledJob {
  /**
   * The job is cancelled if it is not running this long after its moment, more than 0s; null is
   * never.
   */
  expires_in?: string | null;
  /** The group in which the job takes turns; null is none. */
  group?: string | null;
  /** What a worker library chooses the handler by, at most 128 bytes; "" if absent. */
  kind?: string;
  /** Words for people and filters, as for a pushed job. */
  labels?: Record<string, string>;
  /**
   * Limits and pools that the job holds while it runs; null is those of its queue when the moment
   * fires.
   */
  needs?: Need[] | null;
  /** What the handler gets: any JSON, at most 256 KiB. Lists leave it out unless full=true. */
  payload?: unknown;
  /** Jobs with a higher priority go first: -100 to 100, 0 if absent. */
  priority?: number;
  /** The queue of the job; "default" if absent. */
  queue?: string;
  /** How long the finished job is kept; null is that of its queue when the moment fires. */
  retain?: string | null;
  /** What happens after a failed or lost run; null is that of its queue when the moment fires. */
  retry?: Retry | null;
  /** Longest time of one run; null is that of its queue when the moment fires. */
  timeout?: string | null;
}

export interface Schedules {
  /** The items of this page. */
  items: Schedule[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
  /** true: only 10,000 rows were looked at; go on with next. */
  partial?: boolean;
}

export type Scope = "metrics" | "view" | "read" | "push" | "work" | "operate" | "admin";

export interface SettleCall {
  /** A lease call that is made right after the settles; its request_id is required. */
  lease?: LeaseCall;
  /** Leases to end, at most 1,000, in this order. */
  settle: SettleItem[];
}

export type SettleItem = {
  /** The id of the lease to end. */
  lease: string;
  /** What becomes of limits that were held. */
  limits?: LimitVerdict[];
  /**
   * The schedule of the job has its next moment this long after the settle: whole seconds, 1s to
   * 3650d.
   */
  next_in?: string;
  /** How the run ended. A lease without a job takes succeeded or released. */
  outcome: "succeeded";
  /** The last progress report, at most 4 KiB, kept with the job. */
  progress?: unknown;
  /** Follow-up jobs, at most 100, stored in the same step as the settle, or neither is. */
  push?: NewJob[];
  /** What becomes of resources that were held; without a verdict, nothing special. */
  resources?: ResourceVerdict[];
  /** With succeeded: the result, any JSON of at most 256 KiB. */
  result?: unknown;
} | {
  /** With failed: what went wrong; the last 8 KiB of it are kept. */
  error?: string;
  /** With failed: there is no other attempt; false if absent. */
  final?: boolean;
  /** The id of the lease to end. */
  lease: string;
  /** What becomes of limits that were held. */
  limits?: LimitVerdict[];
  /**
   * The schedule of the job has its next moment this long after the settle: whole seconds, 1s to
   * 3650d.
   */
  next_in?: string;
  /** How the run ended. A lease without a job takes succeeded or released. */
  outcome: "failed";
  /** The last progress report, at most 4 KiB, kept with the job. */
  progress?: unknown;
  /** Follow-up jobs, at most 100, stored in the same step as the settle, or neither is. */
  push?: NewJob[];
  /** What becomes of resources that were held; without a verdict, nothing special. */
  resources?: ResourceVerdict[];
  /** With failed: the next attempt comes after this, instead of the backoff. Excludes final. */
  retry_in?: string;
} | {
  /** With snoozed: the job waits this long, at least 100ms. Excludes until. */
  for?: string;
  /** The id of the lease to end. */
  lease: string;
  /** What becomes of limits that were held. */
  limits?: LimitVerdict[];
  /**
   * The schedule of the job has its next moment this long after the settle: whole seconds, 1s to
   * 3650d.
   */
  next_in?: string;
  /** How the run ended. A lease without a job takes succeeded or released. */
  outcome: "snoozed";
  /** The last progress report, at most 4 KiB, kept with the job. */
  progress?: unknown;
  /** Follow-up jobs, at most 100, stored in the same step as the settle, or neither is. */
  push?: NewJob[];
  /** With snoozed: attempts start again from 0; false if absent. */
  reset?: boolean;
  /** What becomes of resources that were held; without a verdict, nothing special. */
  resources?: ResourceVerdict[];
  /** With snoozed: the job waits until this moment, at least 100 ms ahead. Excludes for. */
  until?: string;
} | {
  /** The id of the lease to end. */
  lease: string;
  /** What becomes of limits that were held. */
  limits?: LimitVerdict[];
  /**
   * The schedule of the job has its next moment this long after the settle: whole seconds, 1s to
   * 3650d.
   */
  next_in?: string;
  /** How the run ended. A lease without a job takes succeeded or released. */
  outcome: "released";
  /** The last progress report, at most 4 KiB, kept with the job. */
  progress?: unknown;
  /** Follow-up jobs, at most 100, stored in the same step as the settle, or neither is. */
  push?: NewJob[];
  /** What becomes of resources that were held; without a verdict, nothing special. */
  resources?: ResourceVerdict[];
};

export interface Settled {
  /** What the lease call in it was granted. */
  leases?: Granted[];
  /** When the answer of the lease call may change at the earliest; null if unknown. */
  next_at?: string | null;
  /** Why needs of the lease call were not granted. */
  reasons?: Reason[];
  /** Why the lease call in it was refused; the settles stand. */
  refused?: Problem;
  /** What became of each lease, in the order of the call. */
  settled: SettledLease[];
}

export interface SettledLease {
  /** Why it was not settled: the lease is not held any more, or was settled otherwise. */
  code?: "lease_lost" | "already_settled";
  /** The id of the lease. */
  lease: string;
  /** The next moment of the schedule of the job, after next_in; null if it has none any more. */
  next_at?: string | null;
  /** Whether it was settled, by this call or by the same one before. */
  ok: boolean;
  /** The follow-up jobs, without payload. */
  pushed?: PushedJob[];
  /** When the job may run again; absent if it does not. */
  run_at?: string;
  /** Where the job stands after the settle; absent for a lease without a job. */
  state?: JobState;
}

export interface ShownBackoff {
  /** The first wait, or the only one of kind fixed; 1s if absent. */
  base?: string;
  /** The waits of kind list, 1 to 100; the last one repeats. */
  delays?: string[];
  /** Whether each wait is drawn evenly between half of it and the whole; true if absent. */
  jitter: boolean;
  /** How the waits grow: exponential (the default), fixed, or a list. */
  kind: "exponential" | "fixed" | "list";
  /** The longest wait of kind exponential; 1h if absent. */
  max?: string;
}

export type ShownParent = string | NamedFlow;

export interface ShownRate {
  /**
   * How many tokens may go at once after a rest, 1 or more; 1 if absent, which is evenly spaced.
   */
  burst: number;
  /** How many tokens there are in each period, 1 to 1,000,000,000. */
  count: number;
  /** The period, more than 0s. */
  per: string;
}

export interface ShownRetry {
  /** How long a job waits between attempts. */
  backoff: ShownBackoff;
  /** How many runs may fail, 0 to 1,000,000,000; 0 is without end, 20 the default. */
  max_attempts: number;
  /**
   * How many times in a row the worker may be lost before the job fails as poison; 0 is never, 3
   * the default.
   */
  max_lost: number;
  /** How often a job may snooze before it fails, 0 to 1,000,000,000; absent is without end. */
  max_snoozes?: number | null;
}

export interface ShownUnique {
  /**
   * The key is held at least this long after the push, also by a finished job; null holds it no
   * longer than until.
   */
  for?: string | null;
  /** The key, unique within the namespace, 1 to 256 bytes. */
  key: string;
  /**
   * What a push does that meets a holder of the key: keep (the default) answers the job that is
   * there, replace gives it the new content, reject is refused as unique_conflict.
   */
  on_conflict: "keep" | "replace" | "reject";
  /** Until when the job holds the key: its end (the default), or the start of its first run. */
  until: "end" | "start";
  /**
   * With on_conflict replace: pushes move run_at no further than this beyond the moment at which
   * the wait began; null is no bound.
   */
  within?: string | null;
}

export interface Stats {
  /** The events that are kept. */
  events: EventStats;
  /** How many flows there are. */
  flows: number;
  /** How many jobs there are, by state. */
  jobs: Record<string, unknown>;
  /** How many leases live. */
  leases: number;
  /** Since when the oldest ready job is ready; null if none is. */
  oldest_ready_at: string | null;
  /** How many jobs there are, by queue and state. */
  queues: Record<string, unknown>;
  /** How many calls wait for the end of a job or a flow, at most 10,000. */
  result_waiters: number;
  /** Totals of the schedules. */
  schedules: ScheduleStats;
  /** Where state lives, and how much of it. */
  store: StoreStats;
  /**
   * The last line of the trail of the server that answered; absent for callers without admin, and
   * without a trail.
   */
  trail?: TrailEnd;
}

export interface StoreStats {
  /** How many bytes the store takes on disk; in Redis those of its log and its snapshots. */
  bytes: number;
  /** What kind of store the server has. */
  kind: string;
}

export interface Synced {
  /** Resources that were not there before. */
  added: number;
  /** Resources that the set does not have, and that are gone. */
  retired: number;
  /** Resources that the set does not have, and that go when they are free. */
  retiring: number;
  /** Resources that were there, the same. */
  unchanged: number;
  /** Resources that were there and changed. */
  updated: number;
}

export interface SyncedSchedules {
  /** Schedules that were not there before. */
  added: number;
  /** Schedules that the set does not have, and that are gone. */
  deleted: number;
  /** Schedules that were there, the same. */
  unchanged: number;
  /** Schedules that were there and changed. */
  updated: number;
}

export interface Tokens {
  /** A number that grows with every grant in the namespace. */
  fence: number;
  /** Always null: tokens leave no lease, and nothing to settle. */
  lease: null;
  /** Names of the limits whose tokens were taken. */
  limits: string[];
}

export interface Trail {
  /** The items of this page. */
  items: TrailLine[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
  /** true: only 10,000 rows were looked at; go on with next. */
  partial?: boolean;
}

export interface TrailEnd {
  /** SHA-256 of that line, in hex: an anchor for tenure trail verify. */
  hash: string;
  /** The number of its last line. */
  seq: number;
  /** The address of the server that writes the trail. */
  server: string;
}

export interface TrailLine {
  /** When the line was written. */
  at: string;
  /** The name of the file that the line begins; absent in other lines. */
  begins?: string;
  /** The name of the token, or anyone; absent for an unknown caller and the server's own lines. */
  caller?: string;
  /** Changed settings by name, each with old, new or both; contents are •••. */
  changed?: Record<string, unknown>;
  /** The code of the refusal, or unanswered. */
  code?: string;
  /** How many calls the line stands for, or how many jobs a bulk call changed. */
  count?: number;
  /** More about a line of the server itself. */
  detail?: string;
  /** The namespace of the call. */
  namespace?: string;
  /** The name of the operation, or of what the server did. */
  op: string;
  /** The IP address from which the call came. */
  peer?: string;
  /** SHA-256 of the line before, in hex. */
  prev: string;
  /** The X-Request-Id of the call, or the trace id of its traceparent. */
  request_id?: string;
  /** The number of the line, from 0. */
  seq: number;
  /** The address of the server that wrote it, or offline. */
  server: string;
  /** 200 if it was done, otherwise the HTTP status of the refusal; absent if the caller left. */
  status?: number;
  /** What the call names, as kind:name; at most 10. */
  targets?: string[];
  /** The number of all targets, if there are more than 10. */
  targets_count?: number;
  /**
   * How the call came: api, page, server if another one forwarded it, or command for one without a
   * server.
   */
  via?: "api" | "page" | "server" | "command";
}

export interface Unique {
  /**
   * The key is held at least this long after the push, also by a finished job; null holds it no
   * longer than until.
   */
  for?: string | null;
  /** The key, unique within the namespace, 1 to 256 bytes. */
  key: string;
  /**
   * What a push does that meets a holder of the key: keep (the default) answers the job that is
   * there, replace gives it the new content, reject is refused as unique_conflict.
   */
  on_conflict?: "keep" | "replace" | "reject";
  /** Until when the job holds the key: its end (the default), or the start of its first run. */
  until?: "end" | "start";
  /**
   * With on_conflict replace: pushes move run_at no further than this beyond the moment at which
   * the wait began; null is no bound.
   */
  within?: string | null;
}

export interface Version {
  /** The commit from which it was built; unknown if the build did not say. */
  commit: string;
  /** The number of the contract that it speaks. */
  contract: number;
  /** The release of the server. */
  version: string;
}

export interface Waiter {
  /** The id of the job that waits; null for a caller who asks for needs alone. */
  job: string | null;
  /** The queue of the job; null for a caller. */
  queue: string | null;
  /** Since when it stands in the line. */
  since: string;
}

export interface Worker {
  /** The host of the worker, as it says; null if it does not. */
  host: string | null;
  /** The id of the worker, random for each process. */
  id: string;
  /** When it called last; it is forgotten 60s later. */
  last_seen_at: string;
  /** How many leases it holds. */
  leases: number;
  /** The process id of the worker, as it says; null if it does not. */
  pid: number | null;
  /** The queues that it asked for last. */
  queues: string[];
  /** The version of the worker, as it says; null if it does not. */
  version: string | null;
}

export type WorkerName = string | WorkerProcess;

export interface WorkerProcess {
  /** The host of the process, at most 256 bytes. */
  host?: string;
  /** Random for each process, 1 to 256 bytes; anonymous if absent. */
  id?: string;
  /** The id of the process on its host. */
  pid?: number;
  /** The version of the program, at most 256 bytes. */
  version?: string;
}

export interface Workers {
  /** The items of this page. */
  items: Worker[];
  /** The cursor of the next page; null on the last one. */
  next: string | null;
  /** true: only 10,000 rows were looked at; go on with next. */
  partial?: boolean;
}
