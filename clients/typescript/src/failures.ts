import { types } from "node:util";
import { ERROR_BYTES, middleCut, wellFormed } from "./text.js";

/** Frames of a stack that are kept. */
const FRAMES = 10;
/** Causes that are followed. */
const CAUSES = 3;
const OWN = new URL("./", import.meta.url).href;

/** Where frames begin in an error that is stored with its job, by a worker in TypeScript or in Python. */
const FRAMES_AT = /\n(?: {4}at | {2}\S[^\n]*:\d+ in )/;

/** Whether a value is an error, also one of another realm: jest runs tests in their own, and Node's errors are not of it. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value);
}

/** The name and the message of a thrown value. */
export function describe(thrown: unknown): string {
  if (!isError(thrown)) return `a thrown value that is no Error: ${plain(thrown)}`;
  try {
    const name = String(thrown.name) || "Error";
    const message = String(thrown.message);
    return message === "" ? name : `${name}: ${message}`;
  } catch {
    // A getter of it may throw.
    return "an error whose message cannot be read";
  }
}

function plain(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return typeof value;
  }
}

/**
 * An error as it is stored with its job: what it is, then the innermost frames of its stack, then its
 * causes. Frames of this package and of Node itself are left out. Failures are told apart by how they begin.
 */
export function traced(thrown: unknown): string {
  const lines = [describe(thrown)];
  let error: unknown = thrown;
  for (let depth = 0; depth < CAUSES && isError(error); depth++) {
    if (depth > 0) lines.push(`caused by ${describe(error)}`);
    lines.push(...framesOf(error));
    const { cause, errors } = error as { cause?: unknown; errors?: unknown };
    // An AggregateError says nothing itself.
    error = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  }
  return lines.join("\n");
}

function framesOf(error: Error): string[] {
  let stack: unknown;
  try {
    stack = error.stack;
  } catch {
    return [];
  }
  if (typeof stack !== "string") return [];
  return stack
    .split("\n")
    .filter((line) => /^\s+at /.test(line) && !line.includes(OWN) && !/\(?node:/.test(line))
    .slice(0, FRAMES)
    .map((line) => `    ${line.trim()}`);
}

/** The part of a stored error that says what happened, without the frames that say where. */
export function whatHappened(error: string): string {
  return error.split(FRAMES_AT, 1)[0] as string;
}

/**
 * Cuts the error of a run to what the server keeps: the beginning and the end of what happened, and as many frames as
 * there is room for. Half a surrogate pair, as a text has that was cut by `slice`, is no JSON, and the server would
 * refuse the whole call.
 */
export function boundedError(text: string): string {
  const whole = wellFormed(text);
  if (whole.length * 3 <= ERROR_BYTES || Buffer.byteLength(whole) <= ERROR_BYTES) return whole;
  const what = whatHappened(whole);
  const frames = whole.slice(what.length).split("\n").slice(1);
  let kept = middleCut(what, frames.length > 0 ? ERROR_BYTES >> 1 : ERROR_BYTES);
  let room = ERROR_BYTES - Buffer.byteLength(kept);
  for (const line of frames) {
    room -= Buffer.byteLength(line) + 1;
    if (room < 0) break;
    kept += `\n${line}`;
  }
  return kept;
}
