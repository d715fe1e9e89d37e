import { durationText, milliseconds, momentText } from "./durations.js";
import { refuse, wrong } from "./errors.js";
import type { Logger } from "./log.js";
import { shown } from "./text.js";

/** Reads one option; `name` is what messages call it. */
export type Reader<T = unknown> = (value: unknown, name: string) => T;

/** Readers of options, by their kind. */
export const as = {
  any: (value: unknown) => value,
  text: (value: unknown, name: string): string =>
    typeof value === "string" ? value : wrong(name, `must be text, not ${shown(value)}`),
  flag: (value: unknown, name: string): boolean =>
    typeof value === "boolean" ? value : wrong(name, `must be true or false, not ${shown(value)}`),
  /** Milliseconds of a duration. */
  ms: milliseconds as Reader<number>,
  /** A duration, as the server reads it. */
  duration: durationText as Reader<string>,
  moment: momentText as Reader<string>,
  whole:
    (least: number, most = Number.MAX_SAFE_INTEGER): Reader<number> =>
    (value, name) =>
      Number.isInteger(value) && (value as number) >= least && (value as number) <= most
        ? (value as number)
        : wrong(
            name,
            `must be a whole number ${most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`}, not ${shown(value)}`,
          ),
  oneOf:
    (...choices: string[]): Reader<string> =>
    (value, name) => {
      if (typeof value === "string" && choices.includes(value)) return value;
      const near = typeof value === "string" ? nearest(value, choices) : undefined;
      const hint = near ? `did you mean "${near}"?` : undefined;
      return wrong(name, `must be ${choices.map((each) => `"${each}"`).join(", ")}, not ${shown(value)}`, hint);
    },
  texts: (value: unknown, name: string): string[] =>
    Array.isArray(value) && value.every((each) => typeof each === "string")
      ? value
      : wrong(name, `must be an array of text, not ${shown(value)}`),
  /** An array, a generator or anything else that is iterated, if need be with `await`. */
  items: <S extends Iterable<unknown> | AsyncIterable<unknown>>(value: S, name: string): S =>
    typeof value === "object" && value !== null && (Symbol.iterator in value || Symbol.asyncIterator in value)
      ? value
      : wrong(name, `must be an array or another iterable, not ${shown(value)}`),
  logger: (value: unknown, name: string): Logger | false => {
    const logger = value as Logger | false | null;
    if (logger === false || [logger?.info, logger?.warn, logger?.error].every((each) => typeof each === "function"))
      return logger as Logger | false;
    return wrong(name, `must be an object with \`info\`, \`warn\` and \`error\`, or false, not ${shown(value)}`);
  },
  callable: (value: unknown, name: string): ((...args: never[]) => unknown) =>
    typeof value === "function" ? (value as () => unknown) : wrong(name, `must be a function, not ${shown(value)}`),
  signal: (value: unknown, name: string): AbortSignal =>
    value instanceof AbortSignal ? value : wrong(name, `must be an AbortSignal, not ${shown(value)}`),
  /** A value that may be null, which means the server's default. */
  orNull:
    (read: Reader): Reader =>
    (value, name) =>
      value === null ? null : read(value, name),
};

/** The options of one call: by their names, what the server calls them, and how they are read. */
export type Shape = Record<string, readonly [wire: string, read: Reader]>;

/** A shape whose options have other names on the wire: `runAt` is `run_at`. */
export function shape(readers: Record<string, Reader>): Shape {
  const made: Shape = {};
  for (const [name, read] of Object.entries(readers)) {
    made[name] = [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), read];
  }
  return made;
}

/**
 * Reads options and names them as the server does. An option that is undefined is absent.
 *
 * @throws {@link WrongOption} that names the wrong option, and the nearest right one.
 */
export function readOptions(given: object | undefined, known: Shape, call: string): Record<string, unknown> {
  const read: Record<string, unknown> = {};
  if (given === undefined) return read;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    refuse(`${call} takes its options as an object, not ${shown(given)}`);
  }
  for (const name in given) {
    const value = (given as Record<string, unknown>)[name];
    const found = Object.hasOwn(known, name) ? known[name] : undefined;
    if (found === undefined) unknownOption(name, Object.keys(known), call);
    if (value !== undefined) read[found[0]] = found[1](value, `${name} of ${call}`);
  }
  return read;
}

/** Fails since a call has no such option. */
export function unknownOption(name: string, known: string[], call: string): never {
  const near = nearest(name, known);
  const hint = near ? `did you mean "${near}"?` : `it has ${known.map((each) => `"${each}"`).join(", ")}`;
  refuse(`${call} has no option "${name}"`, hint);
}

/** The choice that was perhaps meant, by the letters that differ. */
export function nearest(text: string, choices: string[]): string | undefined {
  const plain = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, "");
  const wanted = plain(text);
  let best: string | undefined;
  // Two letters that changed places differ by two.
  let least = (wanted.length <= 3 ? 1 : Math.max(2, Math.floor(wanted.length / 3))) + 1;
  for (const each of choices) {
    const differ = distance(wanted, plain(each));
    if (differ < least) {
      least = differ;
      best = each;
    }
  }
  return (
    best ?? choices.find((each) => wanted.length > 3 && (plain(each).includes(wanted) || wanted.includes(plain(each))))
  );
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}

/** A call that an abort signal can end. */
export interface Abortable {
  /** Ends the call; it then rejects with the reason of the signal. */
  signal?: AbortSignal;
}

const SIGNAL = shape({ signal: as.signal });

/** The signal of a call that has no other option. */
export function signalOf(options: Abortable | undefined, call: string): Abortable {
  return readOptions(options, SIGNAL, call);
}
