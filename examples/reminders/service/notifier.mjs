// The notifier over plain HTTP: `node service/notifier.mjs`. Node 18 or newer, and no package.
//
// All but `handle` is the worker of docs/guides/http.md, which says why each line is there.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const QUEUES = ["reminders"];
const CONCURRENCY = 8;
const TTL = 2_000;
const DRAIN = 25_000;

async function handle(job, signal) {
  // As the Python package logs it: another notifier may have the job by now.
  signal.addEventListener("abort", () => console.error(`job ${job.id} is stopped: lease_lost`));
  const { meeting, who, starts } = job.payload;
  // Node 18 has no SQLite, so the API is asked whether the meeting is still as the job says. While
  // the API is down this throws, and the job is tried again by its policy, within a second at first.
  const shown = await fetch(`${process.env.MEETINGS_URL}/meetings/${meeting}`, { signal });
  if (!shown.ok && shown.status !== 404) throw new Error(`the API answered ${shown.status}`);
  const found = shown.ok ? await shown.json() : null;
  if (found?.starts !== starts || !found.people.includes(who)) return "called off";
  const answer = await fetch(`${process.env.INBOX_URL}/messages`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "User-Agent": `notifier/${process.pid}`,
      // The same for each try by any notifier: the inbox refuses what it has.
      "Idempotency-Key": `meeting-${meeting}:${who}:${starts}`,
    },
    // `job` and `lost` are for the figures of the demo.
    body: JSON.stringify({ meeting, who, starts, title: found.title, job: job.id, lost: job.lost }),
    signal,
  });
  if (answer.status === 409) return "was sent already";
  if (!answer.ok) throw new Error(`the inbox answered ${answer.status}`);
  return "sent";
}

const API = `${process.env.TENURE_URL ?? "http://127.0.0.1:7171"}/v1/`;
const HEADERS = { "Content-Type": "application/json" };
if (process.env.TENURE_TOKEN) HEADERS.Authorization = `Bearer ${process.env.TENURE_TOKEN}`;
if (process.env.TENURE_NAMESPACE) HEADERS["Tenure-Namespace"] = process.env.TENURE_NAMESPACE;
const WORKER = `worker-${randomUUID()}`;
const WAIT = Math.min(Math.floor(TTL / 6), 10_000);
const runs = new Map(); // by lease; each run until its settle is answered
let draining = false;
const now = () => performance.now();

async function call(path, body, timeout) {
  const signal = AbortSignal.timeout(timeout);
  const answer = await fetch(API + path, { method: "POST", headers: HEADERS, body, signal });
  const data = await answer.json();
  if (answer.ok) return data;
  throw Object.assign(new Error(`${data.code}: ${data.detail}`), { status: answer.status });
}

async function repeat(path, fields, goOn) {
  const body = JSON.stringify(fields);
  for (let pause = 100; ; pause = Math.min(2 * pause, 5_000)) {
    try {
      return await call(path, body, 20_000);
    } catch (error) {
      // Without a status nobody answered; 408, 429 and 5xx pass. Every other refusal stays one.
      const passes = !error.status || [408, 429].includes(error.status) || error.status >= 500;
      if (!passes || !goOn()) throw error;
    }
    await sleep(pause * (0.5 + Math.random() / 2));
  }
}

async function extend() {
  const sent = now();
  const leases = [...runs.keys()];
  if (leases.length === 0) return;
  const answer = await call("leases/extend", JSON.stringify({ leases }), TTL / 5);
  for (const { lease } of answer.extended) {
    const run = runs.get(lease);
    if (run) run.good = Math.max(run.good, sent);
  }
  for (const lease of answer.cancel) runs.get(lease)?.stop.abort();
  for (const lease of answer.lost) {
    const run = runs.get(lease);
    if (run) run.deadline = Math.min(run.deadline, now());
  }
}

async function beat() {
  for (;;) await sleep(await extend().then(() => TTL / 5, () => TTL / 20));
}

function watch() {
  for (const run of runs.values()) {
    const over = now() - Math.min(run.good + 0.8 * TTL, run.deadline);
    if (run.running && over >= 0) run.stop.abort();
    if (run.running && over >= 0.1 * TTL) process.exit(70);
  }
}

async function settle(item) {
  const always = () => true;
  try {
    return await repeat("leases/settle", { settle: [item] }, always);
  } catch (refused) {
    // A result that cannot be stored, for instance: a retry would not mend it.
    const instead = { lease: item.lease, outcome: "failed", error: `${refused}`, final: true };
    return await repeat("leases/settle", { settle: [instead] }, always);
  }
}

async function work(run, { lease, job }) {
  let item = { lease, outcome: "released" };
  // An answer that was read late must be confirmed before the work starts.
  if (now() - run.good > TTL / 5) await extend().catch(() => {});
  run.running = now() - run.good <= TTL / 5 && now() < run.deadline && !draining;
  if (run.running) {
    try {
      item = { lease, outcome: "succeeded", result: await handle(job, run.stop.signal) };
    } catch (error) {
      if (!run.stop.signal.aborted) item = { lease, outcome: "failed", error: `${error}` };
    }
  }
  run.running = false;
  const [settled] = (await settle(item)).settled;
  if (!settled.ok) console.error(`job ${job.id}: ${item.outcome} counts no more: ${settled.code}`);
  runs.delete(lease);
}

async function take() {
  while (!draining) {
    if (runs.size >= CONCURRENCY) {
      await Promise.race([...runs.values()].map((run) => run.done));
      continue;
    }
    const sent = now();
    const { leases } = await repeat("leases", {
      queues: QUEUES, max: CONCURRENCY - runs.size, wait: `${WAIT}ms`,
      ttl: `${TTL}ms`, worker: WORKER, request_id: randomUUID(),
    }, () => !draining);
    for (const lease of leases) {
      const left = lease.deadline ? Date.parse(lease.deadline) - Date.parse(lease.granted_at) : Infinity;
      const run = { good: sent, deadline: now() + left, stop: new AbortController(), running: false };
      runs.set(lease.lease, run);
      run.done = work(run, lease);
    }
  }
}

process.on("SIGTERM", () => {
  draining = true;
  setTimeout(() => runs.forEach((run) => run.stop.abort()), DRAIN);
  setTimeout(() => process.exit(1), DRAIN + 5_000);
});
console.log(`takes jobs of ${QUEUES}`);
beat();
setInterval(watch, TTL / 50);
await take().catch((error) => draining || Promise.reject(error));
await Promise.all([...runs.values()].map((run) => run.done));
process.exit(0);
