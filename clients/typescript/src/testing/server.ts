import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sleep } from "../backoff.js";
import { Tenure } from "../client.js";
import { now } from "../clock.js";
import { newId } from "../ids.js";
import { as, readOptions, shape } from "../options.js";
import type { ClientOptions } from "../settings.js";
import { TestClock } from "./clock.js";

const START_MS = 30_000;

/** How a test's server is started. */
export interface ServerOptions {
  /** Whether its time stands still, and only the test moves it. Default true. */
  clock?: boolean;
  /** The binary. Default TENURE_BIN, then `tenure` on the PATH. */
  binary?: string;
}

/** A server of a test: in memory, on a free port of this machine, until it is stopped. */
export class TestServer implements AsyncDisposable {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string;
  #process: ChildProcess;
  #folder: string;
  #hasClock: boolean;

  /** @internal */
  constructor(url: string, process: ChildProcess, folder: string, hasClock: boolean) {
    this.url = url;
    this.#process = process;
    this.#folder = folder;
    this.#hasClock = hasClock;
  }

  /** A client in a namespace that no other test uses. Calls are repeated for 5 s only. */
  client(options?: Omit<ClientOptions, "url">): Tenure {
    const namespace = newId("test").replaceAll("_", "-");
    // No variable of the developer's own server reaches a test.
    return new Tenure({ namespace, retryFor: "5s", logger: false, token: "", ...options, url: this.url });
  }

  /** The clock. @throws `Error` if the server was started without one. */
  get clock(): TestClock {
    if (!this.#hasClock) throw new Error("this server has the machine's clock; start it with { clock: true }");
    return new TestClock(this.client().parts.transport);
  }

  /** Ends it; all its data is gone. */
  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.ref();
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      this.#process.kill("SIGKILL");
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

/**
 * Starts a server for tests, and waits until it listens: `await using server = await startServer()`.
 *
 * @throws `Error` if there is no binary, or it does not start.
 */
export async function startServer(options?: ServerOptions): Promise<TestServer> {
  const read = readOptions(options, shape({ clock: as.flag, binary: as.text }), "startServer") as ServerOptions;
  const binary = read.binary ?? process.env["TENURE_BIN"] ?? "tenure";
  const hasClock = read.clock ?? true;
  const args = ["serve", "--store", "memory:", "--listen", "127.0.0.1:0", ...(hasClock ? ["--test-clock"] : [])];
  // What the environment says about the developer's own server must not reach the test's.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TENURE_")));
  const folder = mkdtempSync(join(tmpdir(), "tenure-test-"));
  const log = join(folder, "log");
  // A file and not a pipe: a test that reads no pipe would stop the server.
  const file = openSync(log, "w");
  const child = spawn(binary, args, { env: { ...env, TENURE_LOG_FORMAT: "text" }, stdio: ["ignore", "ignore", file] });
  closeSync(file);
  let fault: NodeJS.ErrnoException | undefined;
  child.on("error", (error) => {
    fault = error;
  });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  for (const end of ["exit", "error"]) child.once(end, () => process.off("exit", kill));
  child.unref();
  const until = now() + START_MS;
  for (;;) {
    const said = readFileSync(log, "utf8");
    const url = /^listening on (http:\/\/\S+)$/m.exec(said)?.[1];
    if (url) return new TestServer(url, child, folder, hasClock);
    if (fault || child.exitCode !== null || child.signalCode !== null || now() > until) {
      child.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
      if (fault?.code === "ENOENT") {
        throw new Error(
          `there is no binary "${binary}"; put \`tenure\` on the PATH, or name it in TENURE_BIN or as { binary }`,
        );
      }
      throw new Error(`\`${binary} ${args.join(" ")}\` did not start: ${fault?.message ?? said.trim()}`);
    }
    await sleep(10);
  }
}
