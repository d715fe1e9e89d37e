// As much of the standard WebSocket as a session needs, for Node 18 and 20, which have none: text messages,
// pings and close. Where packages may be installed, `ws` does the same and more.

import { createHash, randomBytes } from "node:crypto";
import { request } from "node:http";

const TEXT = 1;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

export class WebSocket {
  readyState = 0;
  #wire;
  #received = Buffer.alloc(0);

  constructor(url) {
    const key = randomBytes(16).toString("base64");
    const headers = {
      Connection: "Upgrade",
      Upgrade: "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": key,
    };
    const asked = request(url.replace(/^ws/, "http"), { headers });
    const failed = (why) => this.onerror?.(why);
    asked.on("error", failed);
    asked.on("response", (answer) => failed(new Error(`the server answered ${answer.statusCode}`)));
    asked.on("upgrade", (answer, wire, first) => {
      const proof = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
      if (answer.headers["sec-websocket-accept"] !== proof) {
        wire.destroy();
        return failed(new Error("the server does not speak WebSocket"));
      }
      this.#wire = wire;
      this.readyState = 1;
      wire.setNoDelay(true);
      wire.on("error", () => {});
      wire.on("close", () => this.#closed());
      wire.on("end", () => wire.destroy());
      wire.on("data", (bytes) => this.#read(bytes));
      this.onopen?.();
      if (first.length > 0) this.#read(first);
    });
    asked.end();
  }

  send(text) {
    this.#write(TEXT, Buffer.from(text));
  }

  close() {
    if (this.readyState !== 1) return;
    this.readyState = 2;
    this.#write(CLOSE, Buffer.from([0x03, 0xe8]));
    // The server answers and closes; a wire that is dead is not waited for.
    setTimeout(() => this.#wire.destroy(), 1_000).unref();
  }

  #closed() {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.onclose?.();
  }

  // A client masks what it sends; the mask may be any four bytes.
  #write(kind, payload) {
    if (payload.length > 0xffff) throw new Error("this message is too long for this small client");
    const long = payload.length > 125;
    const head = Buffer.from([0x80 | kind, 0x80 | (long ? 126 : payload.length)]);
    const length = long ? Buffer.from([payload.length >> 8, payload.length & 0xff]) : Buffer.alloc(0);
    const mask = randomBytes(4);
    const masked = payload.map((byte, at) => byte ^ mask[at % 4]);
    this.#wire.write(Buffer.concat([head, length, mask, masked]));
  }

  #read(bytes) {
    this.#received = Buffer.concat([this.#received, bytes]);
    for (;;) {
      const data = this.#received;
      if (data.length < 2) return;
      let size = data[1] & 0x7f;
      let start = 2;
      if (size === 127 || (data[0] & 0x80) === 0) return void this.#wire.destroy();
      if (size === 126) {
        if (data.length < 4) return;
        size = data.readUInt16BE(2);
        start = 4;
      }
      if (data.length < start + size) return;
      this.#received = data.subarray(start + size);
      this.#frame(data[0] & 0x0f, data.subarray(start, start + size));
    }
  }

  #frame(kind, payload) {
    if (kind === TEXT) this.onmessage?.({ data: payload.toString() });
    if (kind === PING) this.#write(PONG, payload);
    if (kind === CLOSE) {
      if (this.readyState === 1) this.#write(CLOSE, payload.subarray(0, 2));
      this.readyState = 2;
      this.#wire.end();
    }
  }
}
