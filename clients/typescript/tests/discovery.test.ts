// Servers are looked up in a Redis: in a real one where there is one, and in a double that knows four commands.
import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Tenure } from "tenure";
import { at, certificates, WITHOUT_OPENSSL } from "./certificates.js";
import { startRedis, WITHOUT_REDIS } from "./redis.js";
import { freePort, Server } from "./servers.js";
import { Lines, within } from "./waiting.js";

const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const list = (items: string[]) => `*${items.length}\r\n${items.map(bulk).join("")}`;

/** Answers what a client asks of a store whose servers are these, the first of them its leader. */
async function redisWith(urls: () => string[]): Promise<{ port: number; asked: string[][] }> {
  const asked: string[][] = [];
  const answer = (words: string[]): string => {
    asked.push(words.map((word, n) => (n === 0 ? word.toLowerCase() : word)));
    const nowUs = Date.now() * 1000;
    switch (words[0]?.toUpperCase()) {
      case "HGET":
        return urls().length > 0 ? bulk("s0") : "$-1\r\n";
      case "HGETALL":
        return list(urls().flatMap((url, n) => [`s${n}`, `${nowUs} 0.1.0 1 7 ${url}`]));
      case "TIME":
        return list([`${Math.floor(nowUs / 1e6)}`, `${nowUs % 1e6}`]);
      default:
        return "+OK\r\n";
    }
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let text = "";
    socket.on("data", (part) => {
      text += part;
      for (;;) {
        const found = /^\*(\d+)\r\n((?:\$\d+\r\n[^\r]*\r\n)*)/.exec(text);
        const words = found?.[2]?.split("\r\n").filter((_, n) => n % 2 === 1) ?? [];
        if (!found || words.length < Number(found[1])) return;
        text = text.slice(found[0].length);
        socket.write(answer(words));
      }
    });
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, asked };
}

test("a client of a store in Redis calls its leader, and another server when that is gone", async () => {
  const servers = [await Server.start(), await Server.start()];
  let urls = servers.map((server) => server.url);
  const redis = await redisWith(() => urls);
  const t = new Tenure({
    url: `redis://me:hunter-2@127.0.0.1:${redis.port}?name=shop`,
    logger: false,
    retryFor: "10s",
  });
  after(() => t.close());
  assert.equal(t.url, `redis://127.0.0.1:${redis.port}?name=shop`);
  await within(t.push("q", 1));
  assert.ok(
    redis.asked.some((words) => words.join(" ") === "hgetall {shop}:servers"),
    JSON.stringify(redis.asked),
  );
  assert.ok(redis.asked.some((words) => words.join(" ") === "hget {shop}:own owner"));
  assert.equal((await servers[0]?.client({ namespace: "default" }).stats())?.jobs["ready"], 1);
  await servers[0]?.kill();
  await within(t.push("q", 2));
  urls = urls.slice(1);
  await servers[1]?.kill();
  urls = [];
  const late = new Tenure({ url: `redis://127.0.0.1:${redis.port}`, retryFor: 100 });
  await assert.rejects(within(late.stats()), {
    message: `no server of Tenure uses redis://127.0.0.1:${redis.port} [unreachable]; start one: tenure serve --store redis://127.0.0.1:${redis.port}`,
  });
});

test("a Redis that is not there is named without its password", async () => {
  const port = await freePort();
  const t = new Tenure({ url: `redis://me:hunter-2@127.0.0.1:${port}`, retryFor: 0 });
  await assert.rejects(within(t.stats()), (error: Error) => {
    assert.match(error.message, new RegExp(`^redis://127.0.0.1:${port}: cannot look up its servers: .*ECONNREFUSED`));
    return !error.message.includes("hunter-2");
  });
});

test("servers in clear are not called by a client that is set up for TLS", async () => {
  const redis = await redisWith(() => ["http://10.0.0.1:7171"]);
  const ca = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----";
  const t = new Tenure({ url: `redis://127.0.0.1:${redis.port}`, ca, retryFor: 0 });
  await assert.rejects(
    within(t.stats()),
    /names http:\/\/10\.0\.0\.1:7171 in clear, and this client is set up for TLS, so it sends nothing there/,
  );
});

test("workers, locks and pushes find the servers of a Redis, and go on when the leader is killed", {
  skip: WITHOUT_REDIS,
}, async () => {
  const store = `redis://:hunter-2@127.0.0.1:${await startRedis("hunter-2")}?name=shop`;
  const servers = new Map<string, Server>();
  for (let n = 0; n < 2; n++) {
    const server = await Server.start(store);
    servers.set(server.url, server);
  }
  const lines = new Lines();
  const t = new Tenure({ url: store, logger: lines, retryFor: "20s" });
  after(() => t.close());
  const task = t.task("t", {}, (n: number) => n + 1);
  const worker = t.work([task], { signals: false, ttl: "5s" });
  const lock = await within(t.lock("l", { ttl: "5s" }), 20_000);
  assert.equal(await within((await task.push(1)).result(), 20_000), 2);
  const first = lines.lines.find((line) => line.includes("found the server")) ?? "";
  assert.match(first, /^info found the server http:\/\/127\.0\.0\.1:\d+ in redis:\/\/127\.0\.0\.1:\d+\?name=shop$/);
  // The first that is found leads the store.
  const leader = servers.get(/http:\S+/.exec(first)?.[0] ?? "");
  assert.ok(leader, first);
  await leader.kill();
  assert.equal(await within((await task.push(2)).result(), 20_000), 3);
  // Longer than its ttl: the heartbeat thread, too, has found the other server.
  await sleep(6000);
  assert.equal(lock.lost, false);
  await lock.release();
  await worker.stop();
  assert.ok(!lines.lines.join().includes("hunter-2"));
});

test("the servers of a Redis behind TLS are called with a certificate", {
  skip: WITHOUT_REDIS || WITHOUT_OPENSSL,
}, async () => {
  certificates("server", "client");
  const files = { cert: at("server.pem"), key: at("server.key"), ca: at("ca.pem") };
  const port = await startRedis("hunter-2", files);
  const store = `rediss://:hunter-2@127.0.0.1:${port}?ca=${files.ca}`;
  await Server.start(store, ["--tls-cert", files.cert, "--tls-key", files.key, "--tls-client-ca", files.ca]);
  const shown = { ca: files.ca, clientCert: at("client.pem"), clientKey: at("client.key"), logger: false as const };
  const t = new Tenure({ url: store, ...shown });
  after(() => t.close());
  assert.equal(t.url, `rediss://127.0.0.1:${port}`);
  const lock = await within(t.lock("l", { ttl: "4s" }), 20_000);
  await sleep(5000);
  assert.equal(lock.lost, false);
  await lock.release();
  // Another authority vouches for neither of them.
  const stranger = new Tenure({ ...shown, url: `rediss://:hunter-2@127.0.0.1:${port}`, retryFor: 0 });
  await assert.rejects(within(stranger.stats()), (error: Error) => {
    assert.match(error.message, /^rediss:\/\/127\.0\.0\.1:\d+: cannot look up its servers: .*certificate/);
    return !error.message.includes("hunter-2");
  });
});

test("a Redis that refuses the password says so", { skip: WITHOUT_REDIS }, async () => {
  const port = await startRedis("hunter-2");
  const t = new Tenure({ url: `redis://:wrong-pass@127.0.0.1:${port}`, retryFor: 0, logger: false });
  await assert.rejects(within(t.stats()), (error: Error) => {
    assert.match(error.message, /cannot look up its servers: .*(WRONGPASS|NOAUTH|password)/);
    return !error.message.includes("wrong-pass");
  });
});
