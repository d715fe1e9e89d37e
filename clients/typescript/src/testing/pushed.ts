import { AssertionError } from "node:assert";
import { isDeepStrictEqual } from "node:util";
import type { Tenure } from "../client.js";
import type { Job as JobRecord } from "../generated.js";
import { as, readOptions, shape } from "../options.js";
import { Task } from "../task.js";

/** A filter of jobs. */
export interface PushedQuery {
  /** An object fits if the job's payload has these fields, whatever else it has; every other value must be equal. */
  payload?: unknown;
}

const SHAPE = shape({ payload: as.any });
const EXPECTED = shape({ payload: as.any, count: as.whole(0) });

/** The jobs that a task, or a queue, got, oldest first, with their payloads. */
export async function pushed(
  client: Tenure,
  what: Task<never, unknown> | string,
  query: PushedQuery = {},
): Promise<JobRecord[]> {
  readOptions(query, SHAPE, "pushed");
  const filter = what instanceof Task ? { queue: what.queue, kind: what.name } : { queue: what };
  const found: JobRecord[] = [];
  for await (const job of client.jobs({ ...filter, full: true })) {
    if (!("payload" in query) || fits(job.payload, query.payload)) found.unshift(job);
  }
  return found;
}

function fits(payload: unknown, wanted: unknown): boolean {
  const isPart = typeof wanted === "object" && wanted !== null && typeof payload === "object" && payload !== null;
  if (!isPart || Array.isArray(wanted)) return isDeepStrictEqual(payload, wanted);
  return Object.entries(wanted).every(([key, value]) =>
    isDeepStrictEqual((payload as Record<string, unknown>)[key], value),
  );
}

/**
 * Fails unless a task, or a queue, got such a job, or exactly `count` of them; returns them.
 *
 * @throws `AssertionError` of `node:assert`, which node:test, vitest and jest show as a failed assertion.
 */
export async function assertPushed(
  client: Tenure,
  what: Task<never, unknown> | string,
  expected: PushedQuery & { count?: number } = {},
): Promise<JobRecord[]> {
  readOptions(expected, EXPECTED, "assertPushed");
  const { count, ...query } = expected;
  const found = await pushed(client, what, query);
  if (count === undefined ? found.length > 0 : found.length === count) return found;
  const name = what instanceof Task ? `task "${what.name}"` : `queue "${what}"`;
  const like = "payload" in query ? ` with the payload ${JSON.stringify(query.payload)}` : "";
  const number = found.length === 0 ? "no job" : found.length === 1 ? "1 job" : `${found.length} jobs`;
  const all = await pushed(client, what);
  const there =
    all
      .slice(-10)
      .map((job) => JSON.stringify(job.payload))
      .join(", ") || "nothing";
  throw new AssertionError({
    message: `${name} got ${number}${like}${count === undefined ? "" : `, not ${count}`}; it got: ${there}`,
    actual: all.map((job) => job.payload),
    expected: "payload" in query ? query.payload : undefined,
    operator: "assertPushed",
  });
}
