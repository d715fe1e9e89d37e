// Servers are looked up in a Redis. This one knows four commands, and is no Redis.
import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { after, test } from "node:test";
import { Tenure } from "tenure";
import { freePort, Server } from "./servers.js";
import { within } from "./waiting.js";

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
