import http from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";

/** How the next request of a kind is spoiled. `lose`: carried out, and not answered. `refuse`: never forwarded. `half`: answered in part. */
export type Spoil = "lose" | "refuse" | "half" | { status: number; retryAfter?: number };

/** A proxy between client and server that loses answers on purpose. */
export class LossyProxy {
  readonly seen: string[] = [];
  url = "";
  #rules: { how: Spoil; method: string; path: string }[] = [];
  #server: http.Server;

  constructor(target: number) {
    this.#server = http.createServer((request, answer) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => this.#pass(target, request, Buffer.concat(parts), answer));
    });
    after(() => {
      this.#server.closeAllConnections();
      this.#server.close();
    });
  }

  static async before(target: number): Promise<LossyProxy> {
    const proxy = new LossyProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    proxy.url = `http://127.0.0.1:${(proxy.#server.address() as AddressInfo).port}`;
    return proxy;
  }

  /** Spoils the next requests whose path begins so. */
  spoil(how: Spoil, method: string, path: string, times = 1): void {
    for (let n = 0; n < times; n++) this.#rules.push({ how, method, path });
  }

  count(method: string, path: string): number {
    return this.seen.filter((each) => each.startsWith(`${method} ${path}`)).length;
  }

  /** How many rules met no request yet. */
  get left(): number {
    return this.#rules.length;
  }

  #pass(target: number, request: http.IncomingMessage, body: Buffer, answer: http.ServerResponse): void {
    const url = request.url as string;
    this.seen.push(`${request.method} ${url}`);
    const at = this.#rules.findIndex((rule) => rule.method === request.method && url.startsWith(rule.path));
    const how = at < 0 ? undefined : this.#rules.splice(at, 1)[0]?.how;
    if (how === "refuse") return void request.socket.destroy();
    if (typeof how === "object") {
      if (how.retryAfter !== undefined) answer.setHeader("retry-after", how.retryAfter);
      answer.writeHead(how.status, { "content-type": "application/problem+json" });
      answer.end(JSON.stringify({ code: "draining", detail: "the server drains", status: how.status }));
      return;
    }
    const { connection: _, ...headers } = request.headers;
    const sending = http.request(
      { host: "127.0.0.1", port: target, method: request.method, path: url, headers, agent: false },
      (incoming) => {
        const parts: Buffer[] = [];
        incoming.on("data", (part: Buffer) => parts.push(part));
        incoming.on("end", () => {
          if (how === "lose") return void request.socket.destroy();
          const data = Buffer.concat(parts);
          const { connection: _c, "transfer-encoding": _t, ...kept } = incoming.headers;
          answer.writeHead(incoming.statusCode ?? 0, { ...kept, "content-length": data.length });
          if (how !== "half") return void answer.end(data);
          answer.write(data.subarray(0, data.length >> 1), () => request.socket.destroy());
        });
      },
    );
    sending.on("error", () => request.socket.destroy());
    sending.end(body);
  }
}
