import { wrong } from "./errors.js";
import { shown } from "./text.js";

/** The unit of a duration in text. */
export type DurationUnit = "ms" | "s" | "m" | "h" | "d";

/**
 * A time span: milliseconds, or text of whole numbers with units, largest first, such as `"90s"`, `"500ms"` or
 * `"1h30m"`. At most 3,650 days.
 */
export type Duration =
  | number
  | `${number}${DurationUnit}`
  | `${number}${DurationUnit}${number}${DurationUnit}`
  | `${number}${DurationUnit}${number}${DurationUnit}${number}${DurationUnit}`;

/** A point in time: a `Date`, or RFC 3339 text with an offset, such as `"2026-12-01T09:55:00Z"`. */
export type Moment = Date | string;

/** Whole numbers with units, largest first, each at most once. */
const FORM = /^(?=.)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/;
/** The milliseconds of each. */
const UNITS = [86_400_000, 3_600_000, 60_000, 1000, 1];
const MOMENT = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:\d{2})$/;

/**
 * Returns a duration in milliseconds.
 *
 * @throws `WrongOption` if it is none.
 */
export function milliseconds(value: Duration, name = "a duration"): number {
  if (typeof value === "number") {
    if (Number.isFinite(value) && value >= 0) return value;
    wrong(name, `is ${value}; give milliseconds, 0 or more, or text such as "90s"`);
  }
  const parts = typeof value === "string" && FORM.exec(value);
  if (parts) return UNITS.reduce((sum, unit, n) => sum + Number(parts[n + 1] ?? 0) * unit, 0);
  wrong(name, `is ${shown(value)}; give milliseconds as a number, or text such as "500ms", "90s" or "1h30m"`);
}

/** Writes a duration as the server reads it: whole milliseconds. */
export function durationText(value: Duration, name?: string): string {
  const ms = Math.round(milliseconds(value, name));
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

/**
 * Writes a moment as the server reads it.
 *
 * @throws `WrongOption` if it is none, or has no offset.
 */
export function momentText(value: Moment, name = "a moment"): string {
  if (value instanceof Date) {
    if (!Number.isNaN(value.getTime())) return value.toISOString();
  } else if (typeof value === "string" && MOMENT.test(value)) {
    return value;
  }
  const given = value instanceof Date ? "an invalid Date" : shown(value);
  wrong(name, `is ${given}; give a Date, or text with an offset such as "2026-12-01T09:55:00Z"`);
}
