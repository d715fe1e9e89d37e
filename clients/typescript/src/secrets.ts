// The data of leased resources is kept out of errors and progress, by the rule of all workers of
// Tenure: a string of at least six characters out of the data becomes three dots, and so does
// the login of an address, out of the data or not, since libraries print the addresses they are given.

const HIDDEN = "•••";
/** A shorter string stands in too many texts by accident. */
const LETTERS_MIN = 6;
const LOGIN = /(?<=:\/\/)[^\s/?#"]+(?=@)/g;

function* stringsOf(data: unknown): Generator<string> {
  if (typeof data === "string") {
    yield data;
    for (const [login] of data.matchAll(LOGIN)) {
      yield login;
      yield* login.split(":");
    }
  } else if (typeof data === "object" && data !== null) {
    for (const value of Object.values(data)) yield* stringsOf(value);
  }
}

/** The strings that must not be shown, the longest first. */
export function secretsOf(data: readonly unknown[]): string[] {
  const found = new Set<string>();
  for (const one of data) for (const each of stringsOf(one)) if (each.length >= LETTERS_MIN) found.add(each);
  return [...found].sort((a, b) => b.length - a.length);
}

/** A text without these strings, also as JSON writes them, and without logins. */
export function without(text: string, secrets: readonly string[]): string {
  let hidden = text;
  for (const secret of secrets) {
    hidden = hidden.replaceAll(secret, HIDDEN).replaceAll(JSON.stringify(secret).slice(1, -1), HIDDEN);
  }
  return hidden.replace(LOGIN, HIDDEN);
}

/** A JSON value without these strings in its texts and names. */
export function valueWithout(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === "string") return without(value, secrets);
  if (Array.isArray(value)) return value.map((each) => valueWithout(each, secrets));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [without(key, secrets), valueWithout(each, secrets)]),
  );
}
