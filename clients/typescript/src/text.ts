/** A value in a message: short, on one line. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (value === null || value === undefined || typeof value === "number" || typeof value === "boolean") {
    return String(value);
  }
  if (typeof value === "bigint") return `${value}n`;
  if (Array.isArray(value)) return "an array";
  return typeof value === "function" ? "a function" : "an object";
}

/** Text with a mark for each half of a surrogate pair that stands alone: no UTF-8 can say it. */
export function wellFormed(text: string): string {
  return (text as unknown as { toWellFormed(): string }).toWellFormed();
}

/** The most bytes of the error of a run. */
export const ERROR_BYTES = 8192;

/** Text on one line, for a log: control characters and marks that turn text are escaped. */
export function oneLine(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (mark) => (mark === "\n" ? "\\n" : mark === "\t" ? " " : `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`),
  );
}

const CUT = " … ";

/** Text of at most so many bytes of UTF-8: its beginning and its end. */
export function middleCut(text: string, most: number): string {
  if (text.length * 3 <= most) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  const each = (most - Buffer.byteLength(CUT)) >> 1;
  const part = (from: number, to?: number) => bytes.subarray(from, to).toString("utf8");
  // A character that is cut through becomes marks, which are left out.
  return part(0, each).replace(/\ufffd+$/, "") + CUT + part(-each).replace(/^\ufffd+/, "");
}
