import type { Context } from "../context.js";
import { boundedError, describe, traced } from "../failures.js";
import { encode } from "../json.js";
import { Outcome, type OutcomeFields } from "../outcomes.js";

const RESULT_BYTES = 256 * 1024;

/**
 * An outcome as the server reads it, written once where a run ends. The handler's value is looked
 * at for the last time there: nothing that comes later can keep an outcome from being sent, and with it
 * the outcomes of other runs in the same call.
 */
export interface Written {
  readonly outcome: OutcomeFields["outcome"];
  /** For the log. */
  readonly error: string | undefined;
  /** The item's other fields, as JSON without the braces. */
  readonly rest: string;
  /** Whether its refusal is no news: it gives back what may be lost already. */
  readonly quiet?: boolean;
}

export const RELEASED: Written = { outcome: "released", error: undefined, rest: "", quiet: true };
const SUCCEEDED: Written = { outcome: "succeeded", error: undefined, rest: "" };

/** A failure that a retry would not mend. */
export function finalFailure(error: string): Written {
  return failure(error, ',"final":true');
}

/** A failed run that is retried by its policy. */
export function failure(error: string, rest = ""): Written {
  const text = boundedError(error);
  return { outcome: "failed", error: text, rest: `${rest},"error":${JSON.stringify(text)}` };
}

/** Writes what a handler returned, and seals it. A result that cannot be stored fails the job for good. */
export async function returned(value: unknown, ctx: Context): Promise<Written> {
  await ctx.sealing;
  if (ctx.fault !== undefined) return finalFailure(ctx.hide(describe(ctx.fault)));
  const beside = ctx.beside("succeeded");
  if (value === undefined || value === null) return beside === "" ? SUCCEEDED : { ...SUCCEEDED, rest: beside };
  let result: string;
  try {
    result = await ctx.seal(encode(value, "result", true), "result");
  } catch (refused) {
    if (refused instanceof Outcome) return thrown(refused, ctx);
    const why =
      refused instanceof Error ? ((refused as { detail?: string }).detail ?? refused.message) : String(refused);
    return finalFailure(`its result cannot be stored: ${why}`);
  }
  const bytes = result.length * 3 > RESULT_BYTES ? Buffer.byteLength(result) : 0;
  if (bytes > RESULT_BYTES)
    return finalFailure(`its result has ${bytes} bytes as JSON; at most ${RESULT_BYTES} can be stored`);
  return { outcome: "succeeded", error: undefined, rest: `,"result":${result}${beside}` };
}

/** Writes what a handler threw. */
export function thrown(error: unknown, ctx: Context): Written {
  if (!(error instanceof Outcome)) {
    const text = boundedError(ctx.hide(traced(error)));
    return { outcome: "failed", error: text, rest: `,"error":${JSON.stringify(text)}${ctx.beside("failed")}` };
  }
  const { outcome, ...fields } = error.fields();
  let rest = Object.entries(fields)
    .map(([name, value]) => `,"${name}":${JSON.stringify(value)}`)
    .join("");
  let text: string | undefined;
  if (outcome === "failed") {
    // An error that the handler chose needs no stack, except where it names a cause.
    text = boundedError(
      ctx.hide(
        error.cause === undefined ? error.message || describe(error) : `${error.message}\n${traced(error.cause)}`,
      ),
    );
    rest += `,"error":${JSON.stringify(text)}`;
  }
  return { outcome, error: text, rest: rest + ctx.beside(outcome) };
}

/** The item of a settle call. */
export function itemOf(lease: string, written: Written): string {
  return `{"lease":${JSON.stringify(lease)},"outcome":"${written.outcome}"${written.rest}}`;
}
