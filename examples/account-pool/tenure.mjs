// The three HTTP calls that hold something for as long as a function runs. Node 18 or newer, no packages.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const API = `${process.env.TENURE_URL ?? "http://127.0.0.1:7171"}/v1/`;
const HEADERS = { "Content-Type": "application/json" };
if (process.env.TENURE_TOKEN) HEADERS.Authorization = `Bearer ${process.env.TENURE_TOKEN}`;
// A name that is never used again, not even after a restart.
const WORKER = { id: `worker-${randomUUID()}`, pid: process.pid };

async function once(path, body, timeout) {
  const signal = AbortSignal.timeout(timeout);
  const answer = await fetch(API + path, { method: "POST", headers: HEADERS, body: JSON.stringify(body), signal });
  const data = await answer.json();
  if (answer.ok) return data;
  throw Object.assign(new Error(`${data.code}: ${data.detail}`), { status: answer.status });
}

// A call whose answer was lost is sent again as it was: the ids in it make that safe.
async function call(path, body) {
  for (;;) {
    try {
      return await once(path, body, 10_000);
    } catch (error) {
      const passes = !error.status || [408, 429].includes(error.status) || error.status >= 500;
      if (!passes) throw error;
    }
    await sleep(200);
  }
}

async function granted(needs, ttl) {
  // Each wait is short, so that a lease is fresh when it is read; `place` keeps the place in the line.
  for (let place; ; ) {
    const request_id = randomUUID();
    const sent = performance.now();
    const wait = `${Math.floor(ttl / 6)}ms`;
    const body = { needs, wait, ttl: `${ttl}ms`, worker: WORKER, request_id, ...(place && { place }) };
    const { leases } = await call("leases", body);
    if (leases.length > 0) return { lease: leases[0], sent };
    place ??= request_id;
  }
}

// Waits for `needs`, runs `work` with them, and gives them back. `work` gets the lease and a signal that aborts
// before anybody else can have the same. It may return verdicts, which go along with the release.
export async function hold(needs, ttl, work) {
  const { lease, sent } = await granted(needs, ttl);
  const lost = new AbortController();
  let good = sent;
  const extend = async () => {
    const sent = performance.now();
    const answer = await once("leases/extend", { leases: [lease.lease] }, ttl / 5).catch(() => null);
    if (answer?.lost.includes(lease.lease)) lost.abort();
    else if (answer) good = Math.max(good, sent);
  };
  // A lease that was read late must be confirmed before the work starts.
  if (performance.now() - sent > ttl / 5) await extend();
  const fresh = performance.now() - good <= ttl / 5;
  const beats = setInterval(extend, ttl / 5);
  const clock = setInterval(() => performance.now() - good >= 0.8 * ttl && lost.abort(), ttl / 50);
  let verdicts;
  try {
    if (fresh && !lost.signal.aborted) verdicts = await work(lease, lost.signal);
  } finally {
    clearInterval(beats);
    clearInterval(clock);
    const item = { lease: lease.lease, outcome: "released", ...(verdicts && { resources: verdicts }) };
    const { settled } = await call("leases/settle", { settle: [item] });
    if (!settled[0].ok) console.log(`lease ${lease.lease} was over before it was given back: ${settled[0].code}`);
  }
}
