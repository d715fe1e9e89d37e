import { type Duration, durationText, type Moment, milliseconds, momentText } from "./durations.js";
import { wrong } from "./errors.js";
import { as, readOptions, shape } from "./options.js";

/** How a run ended, as the server reads it, without its lease. */
export interface OutcomeFields {
  outcome: "succeeded" | "failed" | "snoozed" | "released";
  for?: string;
  until?: string;
  reset?: true;
  final?: true;
  retry_in?: string;
}

/** An error by which a handler decides how its run ends. Every other error is a failed run. */
export abstract class Outcome extends Error {
  override get name(): string {
    return NAMES.get(this.constructor) ?? "Error";
  }

  /** @internal */
  abstract fields(): OutcomeFields;
}

function cause(of: unknown): ErrorOptions | undefined {
  return of === undefined ? undefined : { cause: of };
}

const OPTIONS = shape({ reset: as.flag });
const SNOOZE = "the time of Snooze";
const SNOOZE_MIN_MS = 100;

/** The job fails for good: a retry would not help. */
export class Final extends Outcome {
  /** @param message why; it is stored with the job. */
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, cause(options?.cause));
  }

  /** @internal */
  fields(): OutcomeFields {
    return { outcome: "failed", final: true };
  }
}

/** Not yet: the job runs again later. Costs no attempt. */
export class Snooze extends Outcome {
  readonly #when: { for?: string; until?: string; reset?: true };

  /**
   * @param when for how long, from 100 ms on, or until which moment.
   * @param options `reset`: whether attempts start again from 0. A job that lives on by snoozing would otherwise fail
   * for good in time, however many of its runs went well. Default false.
   */
  constructor(when: Duration | { until: Moment }, options?: { reset?: boolean }) {
    const { reset } = readOptions(options, OPTIONS, "Snooze") as { reset?: boolean };
    const until = typeof when === "object" ? when.until : undefined;
    const text = until === undefined ? durationText(when as Duration, SNOOZE) : momentText(until, SNOOZE);
    if (until === undefined && milliseconds(when as Duration) < SNOOZE_MIN_MS) {
      wrong(SNOOZE, `is ${text}; it must be at least ${SNOOZE_MIN_MS}ms`, "throw a Released to run at once");
    }
    super(until === undefined ? `snoozed for ${text}` : `snoozed until ${text}`);
    this.#when = { ...(until === undefined ? { for: text } : { until: text }), ...(reset && { reset: true }) };
  }

  /** @internal */
  fields(): OutcomeFields {
    return { outcome: "snoozed", ...this.#when };
  }
}

/** Gives the job back: it runs again at its old place in line. Costs no attempt. */
export class Released extends Outcome {
  constructor(message = "released") {
    super(message);
  }

  /** @internal */
  fields(): OutcomeFields {
    return { outcome: "released" };
  }
}

/** The run failed, and the next attempt is made after this time, whatever the policy of the job says. */
export class RetryIn extends Outcome {
  readonly #wait: string;

  /**
   * @param wait until the next attempt.
   * @param message why; it is stored with the job.
   */
  constructor(wait: Duration, message = "failed", options?: { cause?: unknown }) {
    super(message, cause(options?.cause));
    this.#wait = durationText(wait, "the time of RetryIn");
  }

  /** @internal */
  fields(): OutcomeFields {
    return { outcome: "failed", retry_in: this.#wait };
  }
}

/** Why a handler, or the holder of a lease, is to stop: the reason of its `signal`. */
export class Stopped extends Error {
  override get name(): string {
    return NAMES.get(this.constructor) ?? "Error";
  }
}

/** The lease is lost, or could not be extended in time: another holder may have the same. */
export class LeaseLost extends Stopped {}
/** A caller asked to cancel the job. A run that then throws ends it as `cancelled`. */
export class Cancelled extends Stopped {}
/** The run took longer than the timeout of its job. */
export class TimedOut extends Stopped {}
/** The worker ends and gives the job back. */
export class Draining extends Stopped {}

// Said once: a minifier shortens the names of classes.
const NAMES = new Map<unknown, string>(
  Object.entries({ Final, Snooze, Released, RetryIn, LeaseLost, Cancelled, TimedOut, Draining }).map(([name, kind]) => [
    kind,
    name,
  ]),
);
