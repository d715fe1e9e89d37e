import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import https from "node:https";
import { after, test } from "node:test";
import { Tenure, Unreachable } from "tenure";
import { at, certificates, WITHOUT_OPENSSL } from "./certificates.js";
import { Server } from "./servers.js";
import { gate, within } from "./waiting.js";

if (!WITHOUT_OPENSSL) certificates("server", "client");

test("servers of an authority of one's own, which ask for certificates", { skip: WITHOUT_OPENSSL }, async () => {
  const args = ["--tls-cert", at("server.pem"), "--tls-key", at("server.key"), "--tls-client-ca", at("ca.pem")];
  const server = await Server.start("memory:", args);
  const url = `https://127.0.0.1:${server.port}`;
  const files = { ca: at("ca.pem"), clientCert: at("client.pem"), clientKey: at("client.key") };
  const t = new Tenure({ url, ...files, logger: false });
  after(() => t.close());
  await within(t.push("q", 1));
  // PEM text does as well as a file, and the heartbeat thread shows the same certificate.
  const text = new Tenure({
    url,
    ca: readFileSync(files.ca, "utf8"),
    clientCert: readFileSync(files.clientCert, "utf8"),
    clientKey: readFileSync(files.clientKey, "utf8"),
    logger: false,
  });
  after(() => text.close());
  const lock = await text.lock("l", { ttl: "4s" });
  await new Promise((resolve) => setTimeout(resolve, 5000));
  assert.equal(lock.lost, false);
  await lock.release();

  const stranger = new Tenure({ url, clientCert: files.clientCert, clientKey: files.clientKey, retryFor: "30s" });
  // No repeat would mend it, so there is none.
  await assert.rejects(within(stranger.stats(), 3000), (error: Unreachable) => {
    assert.match(
      error.message,
      /: the certificate of the server is not accepted: .+ \[unreachable\]; give the authority of the servers' certificates as `ca` or in TENURE_CA$/,
    );
    return error instanceof Unreachable;
  });
  const nameless = new Tenure({ url, ca: files.ca, retryFor: 100 });
  await assert.rejects(within(nameless.stats()), /\[(unreachable|outcome_unknown)\]/);
  await server.kill();
});

test("a fetch over node:https with an agent of the user's own works", { skip: WITHOUT_OPENSSL }, async () => {
  const server = await Server.start("memory:", ["--tls-cert", at("server.pem"), "--tls-key", at("server.key")]);
  const agent = new https.Agent({ ca: readFileSync(at("ca.pem")), keepAlive: true });
  const over: typeof fetch = (input, init) =>
    new Promise((resolve, reject) => {
      const sending = https.request(
        String(input),
        { method: init?.method, headers: init?.headers as Record<string, string>, agent } as https.RequestOptions,
        (answer) => {
          const parts: Buffer[] = [];
          answer.on("data", (part: Buffer) => parts.push(part));
          answer.on("end", () =>
            resolve(
              new Response(Buffer.concat(parts), {
                status: answer.statusCode ?? 500,
                headers: answer.headers as Record<string, string>,
              }),
            ),
          );
        },
      );
      sending.on("error", reject);
      sending.end(init?.body as string | undefined);
    });
  const t = new Tenure({ url: `https://localhost:${server.port}`, fetch: over, logger: false });
  const { promise, open } = gate();
  const task = t.task("t", {}, async () => {
    // Its heartbeats go through the same fetch: the thread could not call this server.
    await new Promise((resolve) => setTimeout(resolve, 5000));
    open();
    return 1;
  });
  const job = await task.push(null);
  const worker = t.work([task], { ttl: "4s", signals: false });
  await within(promise);
  assert.equal(await within(job.result()), 1);
  await worker.stop();
  agent.destroy();
});
