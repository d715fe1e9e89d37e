import { NotJson } from "./errors.js";

/** How deep a value may be nested: the server reads 64 levels, and three are around a value. */
export const LEVELS_MAX = 61;

/**
 * Writes a value as JSON. `name` is what the value is called by the error, which says where it
 * cannot be written.
 *
 * `JSON.stringify` writes a function as nothing, and NaN and a `Map` as something else than they
 * are. A payload that lost a part on its way is found out too late, so these are refused here.
 *
 * @throws {@link NotJson}
 */
export function encode(value: unknown, name: string): string {
  if (value === undefined || value === null) return "null";
  check(value, name, 0);
  return JSON.stringify(value);
}

function refuse(where: string, why: string): never {
  throw new NotJson("not_json", `${where}: ${why}`);
}

function check(value: unknown, where: string, depth: number): void {
  switch (typeof value) {
    case "string":
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
      if (value !== null) checkObject(value, where, depth);
      return;
    default:
      refuse(where, `a ${typeof value} is not JSON`);
  }
}

function checkObject(value: object, where: string, depth: number): void {
  if (depth >= LEVELS_MAX) refuse(where, `nested deeper than ${LEVELS_MAX} levels, or a part of itself`);
  if (Array.isArray(value)) {
    for (let n = 0; n < value.length; n++) {
      const each: unknown = value[n];
      if (each === undefined) refuse(`${where}[${n}]`, "undefined in an array is not JSON; use null");
      check(each, `${where}[${n}]`, depth + 1);
    }
    return;
  }
  if ("toJSON" in value && typeof value.toJSON === "function") {
    if (value instanceof Date && Number.isNaN(value.getTime())) refuse(where, "an invalid Date is not JSON");
    return;
  }
  if (value instanceof Map || value instanceof Set || ArrayBuffer.isView(value)) {
    refuse(where, `a ${value.constructor.name} is not JSON; use an object, an array or text`);
  }
  for (const key in value) check((value as Record<string, unknown>)[key], `${where}.${key}`, depth + 1);
}
