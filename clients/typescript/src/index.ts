export { type JobQuery, Tenure } from "./client.js";
export type { Codec, ValuePlace } from "./codec.js";
export { Context } from "./context.js";
export type { Duration, DurationUnit, Moment } from "./durations.js";
export {
  Busy,
  type ClientCode,
  CodecError,
  Conflict,
  type ErrorCode,
  type ErrorFields,
  Invalid,
  JobCancelled,
  JobFailed,
  NotFinished,
  NotFound,
  NotGranted,
  NotJson,
  NotPermitted,
  OutcomeUnknown,
  type SchemaIssue,
  SchemaMismatch,
  TenureError,
  UnexpectedAnswer,
  Unreachable,
  WrongOption,
} from "./errors.js";
export type { EventGap, EventOptions, TenureEvent } from "./events.js";
export type { Flows } from "./flows.js";
export type * as api from "./generated.js";
export type { Instrumentation, PushCall, RunEnd } from "./instrumentation.js";
export { Job, type JobChanges, type Pushed, type ResultOptions } from "./job.js";
export type {
  BackoffOptions,
  JobOptions,
  JobSpec,
  Pushable,
  RetryOptions,
  SharedJobOptions,
  TaskPushOptions,
  UniqueOptions,
} from "./job-fields.js";
export { Lease, type LeaseOptions } from "./leasing.js";
export type { Logger } from "./log.js";
export type { LimitNeed, Need, PoolNeed } from "./needs.js";
export type { Abortable } from "./options.js";
export {
  Cancelled,
  Draining,
  Final,
  LeaseLost,
  Outcome,
  Released,
  RetryIn,
  Snooze,
  Stopped,
  TimedOut,
} from "./outcomes.js";
export type { PushedMany, PushManyOptions } from "./pushing.js";
export type {
  LimitSettings,
  Limits,
  NewResource,
  PoolSettings,
  Pools,
  QueueSettings,
  Queues,
  Rate,
  RateOptions,
  Until,
} from "./scarce.js";
export type {
  ScheduledJobOptions,
  ScheduleItem,
  ScheduleSettings,
  Schedules,
  SyncOptions,
  Timing,
} from "./schedules.js";
export type { ClientOptions, Token } from "./settings.js";
export type { InputOf, OutputOf, StandardIssue, StandardResult, StandardSchema } from "./standard-schema.js";
export type { BatchHandler, BatchItem, BatchOptions, Handler, TaskOptions } from "./task.js";
export { Task } from "./task.js";
export type { ScheduleEntry } from "./timetable.js";
export { VERSION } from "./version.js";
export { Worker, type WorkerOptions } from "./worker/worker.js";
