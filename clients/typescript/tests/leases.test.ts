import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LeaseLost, NotGranted } from "tenure";
import { Server } from "./servers.js";
import { all, until, within } from "./waiting.js";

const server = await Server.start();

test("a lock is held for longer than its ttl, and given back at the end of its block", async () => {
  const t = server.client();
  let fence = 0;
  {
    await using lock = await t.lock("deploy", { ttl: "4s" });
    fence = lock.fence;
    await sleep(5000);
    assert.equal(lock.signal.aborted || lock.lost, false);
    await assert.rejects(t.lock("deploy", { wait: "100ms" }), (error: NotGranted) => {
      assert.ok(error instanceof NotGranted);
      assert.match(
        error.message,
        new RegExp(
          `^could not get lock "deploy" within 100ms; held by [\\w.-]+:${process.pid} \\[not_granted\\]; wait for longer, or look at the holders$`,
        ),
      );
      return true;
    });
  }
  assert.equal((await all(t.leases())).length, 0);
  const next = await t.lock("deploy", { wait: 0 });
  assert.ok(next.fence > fence);
  await next.release();
  await next.release();
});

test("a lock is kept by heartbeats that are answered slowly", async () => {
  const ttl = 10_000;
  // Carried out at once, and answered later than the next heartbeat is sent. A busy machine may take 1.5 s more.
  const slow: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init);
    if (String(url).endsWith("/leases/extend")) await sleep(0.35 * ttl);
    return answer;
  };
  await using lock = await server.client({ fetch: slow }).lock("slow", { ttl });
  await sleep(1.1 * ttl);
  assert.equal(lock.lost, false);
});

test("a server that answers no heartbeat is left for the next one before the lease is over", async () => {
  const ttl = 6000;
  const asked: string[] = [];
  const silent: typeof fetch = async (url, init) => {
    const { pathname, hostname } = new URL(String(url));
    if (pathname.endsWith("/leases/extend")) {
      asked.push(hostname);
      if (hostname === "127.0.0.1") await once(init?.signal as AbortSignal, "abort");
    }
    return await fetch(url, init);
  };
  // One server by two addresses.
  const url = `${server.url},${server.url.replace("127.0.0.1", "localhost")}`;
  await using lock = await server.client({ url, fetch: silent }).lock("silent", { ttl });
  await sleep(1.1 * ttl);
  assert.equal(lock.lost, false);
  assert.deepEqual(asked.slice(0, 2), ["127.0.0.1", "localhost"]);
});

test("callers of a lock get it one after the other, across slices of their wait", async () => {
  const t = server.client();
  const order: number[] = [];
  const first = await t.lock("l");
  const asked = [0, 0, 0];
  const wait = async (n: number) => {
    const counted: typeof fetch = (url, init) => {
      if (String(url).endsWith("/leases")) asked[n] = (asked[n] ?? 0) + 1;
      return fetch(url, init);
    };
    // One call waits for a sixth of the ttl.
    const caller = server.client({ fetch: counted, namespace: t.namespace });
    await using _lock = await caller.lock("l", { ttl: "24s" });
    order.push(n);
  };
  const waiting: Promise<void>[] = [];
  for (const n of asked.keys()) {
    waiting.push(wait(n));
    await until(async () => (await t.limits.get("lock:l")).waiting === n + 1);
  }
  // The last one began its second call just now, so none is between two calls for a while.
  await until(() => asked.every((calls) => calls >= 2));
  await first.release();
  await within(Promise.all(waiting));
  assert.deepEqual(order, [0, 1, 2]);
});

test("a lease holds permits and resources with their data", async () => {
  const t = server.client();
  await t.pools.sync("accounts", [{ id: "ann", data: { password: "secret" } }]);
  await t.limits.set("site:*", { concurrency: 1 });
  await using lease = await t.lease(["pool:accounts", "limit:site:a"], { wait: "1s" });
  assert.deepEqual(lease.resource<{ password: string }>("accounts").data, { password: "secret" });
  assert.deepEqual(lease.limits, ["site:a"]);
  assert.throws(() => lease.resource("none"), /the pool "none" is not held here/);
  await assert.rejects(t.lease({ needs: ["pool:accounts"] }, { wait: 0 }), NotGranted);
});

test("a lease says beside its release what becomes of what it held", async () => {
  const t = server.client();
  await t.pools.sync("accounts", [{ id: "ann", data: { password: "hunter-2" } }, { id: "bob" }]);
  await t.limits.set("site:*", { concurrency: 1 });
  const lease = await t.lease([{ pool: "accounts", count: 2 }, "limit:site:a"]);
  const [first, second] = lease.resources;
  lease.ban(first as never, "captcha for hunter-2");
  lease.cool(second as never, "1m");
  lease.pause("site:a", "1m");
  await lease.release();
  const states = await all(t.pools.resources("accounts"));
  assert.deepEqual(states.map((each) => each.state).sort(), ["banned", "cooling"]);
  assert.equal(states.find((each) => each.state === "banned")?.reason, "captcha for •••");
  assert.ok((await t.limits.get("site:a")).paused_until);
});

test("a set of resources that is larger than a body of JSON is synced", async () => {
  const t = server.client();
  const data = "x".repeat(1000);
  const set = Array.from({ length: 9000 }, (_, n) => ({ id: `r${n}`, data }));
  assert.equal((await t.pools.sync("large", set)).added, 9000);
  assert.equal((await t.pools.sync("large", set)).unchanged, 9000);
});

test("a lock that is taken away aborts its signal, and its release does nothing", async () => {
  const t = server.client();
  const lock = await t.lock("l", { ttl: "3s" });
  await t.endLease(lock.id);
  await until(() => lock.signal.aborted);
  assert.ok(lock.signal.reason instanceof LeaseLost && lock.lost);
  assert.equal(
    lock.signal.reason.message,
    'lock "l" is lost: the lease could not be extended in time, or was taken back',
  );
  await lock.release();
});

test("an aborted wait leaves the line, and gives back what it was granted meanwhile", async () => {
  const t = server.client();
  const lock = await t.lock("l");
  const stop = new AbortController();
  const waiting = t.lock("l", { signal: stop.signal });
  await until(async () => (await t.limits.get("lock:l")).waiting === 1);
  stop.abort(new Error("enough"));
  await assert.rejects(within(waiting), /enough/);
  await until(async () => (await t.limits.get("lock:l")).waiting === 0);
  await lock.release();
  await until(async () => (await t.limits.get("lock:l")).in_use === 0);
  await (await t.lock("l", { wait: 0 })).release();
});

test("a lock whose ttl is out of range is refused before a call", async () => {
  const t = server.client();
  await assert.rejects(
    t.lock("l", { ttl: "500ms" }),
    /^WrongOption: ttl of lock is 500ms; it must be from 1s to 1h \[wrong_option\]$/,
  );
});
