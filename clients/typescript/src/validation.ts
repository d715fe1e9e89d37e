import { type SchemaIssue, SchemaMismatch, wrong } from "./errors.js";

import type { StandardIssue, StandardSchema } from "./standard-schema.js";
import { shown } from "./text.js";

/** The most issues of a message. */
const ISSUES_SHOWN = 5;

/** Reads an option that is a schema. */
export function schemaOption(value: unknown, name: string): StandardSchema {
  if ((typeof value === "object" || typeof value === "function") && value !== null && "~standard" in value) {
    return value as StandardSchema;
  }
  return wrong(
    name,
    `must be a schema of zod, valibot, arktype or another library of Standard Schema, not ${shown(value)}`,
  );
}

/** Whether a value is a promise of any kind: queries of drizzle and knex are, and run only when they are awaited. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === "function";
}

function pathOf(issue: StandardIssue, whole: string): string {
  let path = whole;
  for (const each of issue.path ?? []) {
    const key = typeof each === "object" ? each.key : each;
    path += typeof key === "number" ? `[${key}]` : `.${String(key)}`;
  }
  return path;
}

/**
 * Lets a schema read a value. `whole` is what the value is called, `owner` whose it is.
 *
 * @throws {@link SchemaMismatch}, with the place of each thing that is wrong, and no value of it: the
 * message is stored with the job and logged.
 */
export async function validate<Out>(
  schema: StandardSchema<unknown, Out>,
  value: unknown,
  whole: "payload" | "result",
  owner: string,
): Promise<Out> {
  const checked = schema["~standard"].validate(value);
  const result = isThenable(checked) ? await checked : checked;
  if (!result.issues) return result.value;
  const issues: SchemaIssue[] = result.issues.map((issue) => ({ path: pathOf(issue, whole), message: issue.message }));
  const some = issues.slice(0, ISSUES_SHOWN).map((issue) => `${issue.path}: ${issue.message}`);
  const more = issues.length > ISSUES_SHOWN ? `; and ${issues.length - ISSUES_SHOWN} more` : "";
  throw new SchemaMismatch(
    `the ${whole} does not fit the schema of task "${owner}": ${some.join("; ")}${more}`,
    issues,
    whole === "payload"
      ? "give a payload that fits, or change `schema` of the task"
      : "return what `result` of the task describes",
  );
}
