// How we ask the registry, the third party that sells reports.

const URL = process.env["REGISTRY_URL"] ?? "http://127.0.0.1:8100";

/** What the registry sells. */
export interface Report {
  company: string;
  [field: string]: unknown;
}

/** Calls it once. `order` is the same in all calls for one report, which is sold only once. */
export async function ask(company: string, order: string, signal: AbortSignal) {
  const answer = await fetch(`${URL}/reports`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": order },
    body: JSON.stringify({ company }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(10_000)]),
  });
  const retryAfter = `${Number(answer.headers.get("Retry-After") ?? 5)}s` as const;
  return { status: answer.status, retryAfter, body: (await answer.json()) as Report };
}
