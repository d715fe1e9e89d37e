import type { Code, Problem } from "./generated.js";

/** Codes of errors that this package makes itself. */
export type ClientCode =
  | "unreachable"
  | "unexpected_answer"
  | "wrong_option"
  | "not_json"
  | "schema_mismatch"
  | "not_granted"
  | "not_finished"
  | "job_failed"
  | "job_cancelled"
  | "duplicate_job"
  | "no_codec"
  | "wrong_codec"
  | "codec_failed";

/** All codes of a `TenureError`: those of the server, and those of this package. */
export type ErrorCode = Code | ClientCode;

/** The fields of an error beside its sentence. */
export interface ErrorFields {
  /** What to do next, in a sentence. */
  hint?: string | undefined;
  /** The HTTP status; absent if no server answered. */
  status?: number | undefined;
  /** Where it is wrong: a JSON pointer into the body, or `/query/NAME`, `/path/NAME`. */
  pointer?: string | undefined;
  /** The item of an array, counted from 0; of `pushMany`, from the start of the iterable. */
  index?: number | undefined;
  /** The id of the job that is in the way. */
  job?: string | undefined;
  /** After how many milliseconds another try makes sense. */
  retryAfter?: number | undefined;
  /** What caused it. */
  cause?: unknown;
}

/** Refusals that pass: the same call, sent again later, may be carried out. */
const PASSING: ReadonlySet<string> = new Set([
  "draining",
  "not_owner",
  "store_unavailable",
  "overloaded",
  "outcome_unknown",
  "queue_full",
  "line_full",
  "store_full",
  "request_timeout",
  "unreachable",
]);

/**
 * A call was refused or could not be made. A refused call changed nothing.
 *
 * Compare `code`, which never changes its meaning; `message` and `hint` are for people.
 */
export class TenureError extends Error {
  /** For programs: a code of the server or of this package. */
  readonly code: ErrorCode;
  /** What is wrong with this very call, in a sentence; `message` adds the code and the hint. */
  readonly detail: string;
  /** What to do next, in a sentence. */
  readonly hint: string | undefined;
  /** The HTTP status; undefined if no server answered. */
  readonly status: number | undefined;
  /** Where it is wrong: a JSON pointer into the body, or `/query/NAME`, `/path/NAME`. */
  readonly pointer: string | undefined;
  /** The item of an array, counted from 0; of `pushMany`, from the start of the iterable. */
  index: number | undefined;
  /** The id of the job that is in the way. */
  readonly job: string | undefined;
  /** After how many milliseconds another try makes sense. */
  readonly retryAfter: number | undefined;

  constructor(code: ErrorCode, detail: string, fields: ErrorFields = {}) {
    const at = fields.pointer ? ` at ${fields.pointer}` : "";
    const hint = fields.hint ? `; ${fields.hint}` : "";
    super(`${detail} [${code}${at}]${hint}`, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.code = code;
    this.detail = detail;
    this.hint = fields.hint;
    this.status = fields.status;
    this.pointer = fields.pointer;
    this.index = fields.index;
    this.job = fields.job;
    this.retryAfter = fields.retryAfter;
  }

  override get name(): string {
    return NAMES.get(this.constructor) ?? "TenureError";
  }

  /** Whether the same call may be carried out when it is made again later. */
  get retryable(): boolean {
    return PASSING.has(this.code);
  }
}

/** No server could be reached; nothing happened. */
export class Unreachable extends TenureError {}
/** The answer was lost: the call may have been carried out. Make the same call again, with the same ids. */
export class OutcomeUnknown extends TenureError {}
/** The answer is not one of a Tenure server. */
export class UnexpectedAnswer extends TenureError {
  // A gateway answers with a page of its own while the server behind it starts.
  override get retryable(): boolean {
    return this.status !== undefined && this.status >= 502 && this.status <= 504;
  }
}
/** 401 and 403: the token is missing or wrong, or the call comes from a place that may not call. */
export class NotPermitted extends TenureError {}
/** 404: nothing of this name is there. */
export class NotFound extends TenureError {}
/** 409: the state of the job, limit, pool or schedule does not allow the call. */
export class Conflict extends TenureError {}
/** 400, 413, 415 and 422: a field has a wrong name or value. */
export class Invalid extends TenureError {}
/** 408, 429 and 503: not now. */
export class Busy extends TenureError {}
/** An option of a call has a wrong name or value. Nothing was sent. */
export class WrongOption extends TenureError {}
/** Fails with a sentence about an option, and the next step. Nothing was sent. */
export function refuse(detail: string, hint?: string): never {
  throw new WrongOption("wrong_option", detail, { hint });
}

/** Fails with the name of an option, and what is wrong with its value. */
export function wrong(name: string, why: string, hint?: string): never {
  refuse(`${name} ${why}`, hint);
}

/** A payload or a result is no JSON. Nothing was sent. */
export class NotJson extends TenureError {}
/** A lock, or other needs, could not be granted within their wait. */
export class NotGranted extends TenureError {}
/** The job has not ended within the wait. */
export class NotFinished extends TenureError {}
/** The job whose result was asked for failed; `job` is its id. */
export class JobFailed extends TenureError {
  /** The error of its last run as it is stored: name, message, then the innermost frames and the causes. */
  readonly error: string | undefined;

  constructor(code: ErrorCode, detail: string, fields: ErrorFields & { error?: string } = {}) {
    super(code, detail, fields);
    this.error = fields.error;
  }
}
/** The job whose result was asked for was cancelled; `job` is its id. */
export class JobCancelled extends TenureError {}

/**
 * A value is sealed and cannot be opened here, or could not be sealed. `no_codec`: this client has no codec.
 * `wrong_codec`: it has one of another name. `codec_failed`: its codec threw, as for a wrong key; `cause` is what it
 * threw.
 */
export class CodecError extends TenureError {}

/** One mismatch that a schema found. */
export interface SchemaIssue {
  /** Where in the value, such as `payload.order.id`. */
  path: string;
  /** The mismatch, as the schema describes it. */
  message: string;
}

/** A payload or result does not fit the schema of its task. At a push, nothing was sent. */
export class SchemaMismatch extends TenureError {
  /** All that the schema found. */
  readonly issues: readonly SchemaIssue[];

  constructor(detail: string, issues: readonly SchemaIssue[], hint: string) {
    super("schema_mismatch", detail, { hint });
    this.issues = issues;
  }
}

// Said once: a minifier shortens the names of classes.
const NAMES = new Map<unknown, string>(
  Object.entries({
    Unreachable,
    OutcomeUnknown,
    UnexpectedAnswer,
    NotPermitted,
    NotFound,
    Conflict,
    Invalid,
    Busy,
    WrongOption,
    NotJson,
    NotGranted,
    NotFinished,
    JobFailed,
    JobCancelled,
    CodecError,
    SchemaMismatch,
  }).map(([name, kind]) => [kind, name]),
);

/** The error of an answer with a status from 400 on. */
export function fromProblem(status: number, body: unknown, retryAfter?: number): TenureError {
  const problem: Partial<Problem> = typeof body === "object" && body !== null ? body : {};
  if (typeof problem.code !== "string") {
    return new UnexpectedAnswer(
      "unexpected_answer",
      `the answer has status ${status} and is not one of a Tenure server`,
      {
        status,
        retryAfter,
        hint: "look at the address, and at what stands between this client and the server",
      },
    );
  }
  const kind = classOf(status, problem.code);
  return new kind(problem.code, problem.detail ?? problem.title ?? problem.code, {
    status,
    hint: problem.hint,
    pointer: problem.pointer,
    index: problem.index,
    job: problem.job,
    retryAfter,
  });
}

/** Whether a call that was answered with this passing error may have been carried out. */
export const leavesDoubt = (error: TenureError): boolean =>
  error instanceof OutcomeUnknown || error instanceof UnexpectedAnswer;

function classOf(status: number, code: string): typeof TenureError {
  if (code === "outcome_unknown") return OutcomeUnknown;
  if (status === 401 || status === 403) return NotPermitted;
  if (status === 404) return NotFound;
  if (status === 409) return Conflict;
  if (status === 408 || status === 429 || status === 503) return Busy;
  return status < 500 ? Invalid : TenureError;
}
