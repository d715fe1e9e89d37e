import { NotJson } from "./errors.js";
import { wellFormed } from "./text.js";

/** How deep a value may be nested: the server reads 64 levels, and three are around a value. */
export const LEVELS_MAX = 61;

/**
 * Writes a value as JSON. `name` is what the value is called by the error, which says where it
 * cannot be written.
 *
 * `JSON.stringify` writes a function as nothing, and NaN and a `Map` as something else than they
 * are. A payload that lost a part on its way is found out too late, so these are refused here. So is
 * text with half a surrogate pair, which the server cannot read; with `mends` a mark takes its place, since work
 * that is done must not be lost for it.
 *
 * @throws {@link NotJson}
 */
export function encode(value: unknown, name: string, mends = false): string {
  if (value === undefined || value === null) return "null";
  check(value, name, 0, mends);
  const json = JSON.stringify(value);
  // What `toJSON` returned was not looked at. Only half a pair is written so; `\\ud800` is a backslash and letters.
  return json.includes("\\ud")
    ? json.replace(/\\(?:ud[89a-f]..|.)/g, (each) => (each[2] === "d" ? "\ufffd" : each))
    : json;
}

function refuse(where: string, why: string): never {
  throw new NotJson("not_json", `${where}: ${why}`);
}

function check(value: unknown, where: string, depth: number, mends: boolean): void {
  switch (typeof value) {
    case "string":
      if (!mends && wellFormed(value) !== value)
        refuse(where, "text with half a surrogate pair is not JSON; cut it elsewhere");
      return;
    case "boolean":
    case "undefined":
      return;
    case "number":
      if (!Number.isFinite(value)) refuse(where, `${value} is not JSON; use null or text`);
      return;
    case "bigint":
      refuse(where, "a bigint is not JSON; use a number below 2^53, or text");
      break;
    case "object":
      if (value !== null) checkObject(value, where, depth, mends);
      return;
    default:
      refuse(where, `a ${typeof value} is not JSON; leave it out, or use text`);
  }
}

function checkObject(value: object, where: string, depth: number, mends: boolean): void {
  if (depth >= LEVELS_MAX) refuse(where, `nested deeper than ${LEVELS_MAX} levels, or a part of itself`);
  if (Array.isArray(value)) {
    for (let n = 0; n < value.length; n++) {
      const each: unknown = value[n];
      if (each === undefined) refuse(`${where}[${n}]`, "undefined in an array is not JSON; use null");
      check(each, `${where}[${n}]`, depth + 1, mends);
    }
    return;
  }
  if ("toJSON" in value && typeof value.toJSON === "function") {
    if (value instanceof Date && Number.isNaN(value.getTime()))
      refuse(where, "an invalid Date is not JSON; use null or text");
    return;
  }
  if (value instanceof Map || value instanceof Set || ArrayBuffer.isView(value)) {
    refuse(where, `a ${value.constructor.name} is not JSON; use an object, an array or text`);
  }
  for (const key in value) {
    check(key, where, depth, mends);
    check((value as Record<string, unknown>)[key], `${where}.${key}`, depth + 1, mends);
  }
}
