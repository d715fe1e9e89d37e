import { bounded, ERROR_BYTES, wellFormed } from "./text.js";

/** Frames of a stack that are kept. */
const FRAMES = 10;
/** Causes that are followed. */
const CAUSES = 3;
const OWN = new URL("./", import.meta.url).href;

/** The name and the message of a thrown value. */
export function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return `a thrown value that is no Error: ${plain(thrown)}`;
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
  for (let depth = 0; depth < CAUSES && error instanceof Error; depth++) {
    if (depth > 0) lines.push(`caused by ${describe(error)}`);
    lines.push(...framesOf(error));
    error = (error as { cause?: unknown }).cause;
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

/**
 * Cuts the error of a run to what the server keeps: the beginning says what went wrong. Half a surrogate pair, as a
 * text has that was cut by `slice`, is no JSON, and the server would refuse the whole call.
 */
export function boundedError(text: string): string {
  return bounded(wellFormed(text), ERROR_BYTES);
}
