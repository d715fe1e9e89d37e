import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { type ClientOptions, Tenure } from "tenure";
import { until } from "./waiting.js";

/** The server's binary: TENURE_BIN, or the build of this workspace. */
export function binary(): string {
  const found = process.env["TENURE_BIN"];
  if (found && existsSync(found)) return found;
  throw new Error("TENURE_BIN must name the server's binary; clients/typescript/check sets it");
}

/** A folder that is removed after the tests of this file. */
export const folder = mkdtempSync(join(tmpdir(), "tenure-typescript-"));
const started = new Set<ChildProcess>();
after(() => {
  for (const each of started) {
    each.kill("SIGCONT");
    each.kill("SIGKILL");
  }
  rmSync(folder, { recursive: true, force: true });
});

/** Ends a process with the tests of this file, at the latest. */
export function endLater(child: ChildProcess): void {
  started.add(child);
  child.once("exit", () => started.delete(child));
}

// The system gives ports from 32,768 on to connections, so one of those may be taken while its server is away.
const FIRST_PORT = 12_000;
const PORTS = 20_000;
/** Files are tested at the same time, so each process begins elsewhere. */
let nextPort = process.pid * 61;

/** A port that is free now, and stays so while its server starts again. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + (nextPort++ % PORTS);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

let namespaces = 0;

/** One `tenure serve`, which may be killed and started again at its address. */
export class Server {
  readonly port: number;
  readonly log: string;
  #args: string[];
  #env: Record<string, string>;
  #process: ChildProcess | undefined;

  private constructor(port: number, args: string[], env: Record<string, string>) {
    this.port = port;
    this.log = join(folder, `serve-${port}.log`);
    this.#args = args;
    this.#env = env;
  }

  static async start(store = "memory:", args: string[] = [], env: Record<string, string> = {}): Promise<Server> {
    const port = await freePort();
    const named = store === "file:" ? `file:${mkdtempSync(join(folder, "store-"))}` : store;
    const server = new Server(port, ["--store", named, ...args], env);
    await server.start();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TENURE_")));
    const log = openSync(this.log, "a");
    const before = readFileSync(this.log, "utf8").length;
    const child = spawn(binary(), ["serve", "--listen", `127.0.0.1:${this.port}`, ...this.#args], {
      env: { ...env, ...this.#env },
      stdio: ["ignore", log, log],
    });
    endLater(child);
    this.#process = child;
    await until(async () => {
      const lines = readFileSync(this.log, "utf8");
      if (child.exitCode !== null) throw new Error(lines);
      return lines.includes("listening on http", before);
    }, 20_000);
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGCONT");
    child.kill(signal);
    await ended;
    this.#process = undefined;
  }

  /** Lets it hang: connections are taken and nothing is answered. */
  pause(): void {
    this.#process?.kill("SIGSTOP");
  }

  goOn(): void {
    this.#process?.kill("SIGCONT");
  }

  /** A client of a namespace of its own. */
  client(options: ClientOptions = {}): Tenure {
    const namespace = `t${process.pid}-${namespaces++}`;
    const client = new Tenure({ url: this.url, namespace, retryFor: "15s", logger: false, ...options });
    after(() => client.close());
    return client;
  }
}

/** A worker in a process of its own, and what its handlers noted. */
export class Program {
  readonly journal: string;
  readonly process: ChildProcess;
  #log: string;

  constructor(name: string, env: Record<string, string>, journal = join(folder, `journal-${name}-${namespaces++}`)) {
    this.journal = journal;
    this.#log = join(folder, `log-${name}-${namespaces++}`);
    appendFileSync(journal, "");
    const log = openSync(this.#log, "a");
    this.process = spawn(process.execPath, [new URL(`./programs/${name}.js`, import.meta.url).pathname], {
      env: { ...process.env, ...env, JOURNAL: journal },
      stdio: ["ignore", log, log],
    });
    endLater(this.process);
  }

  get log(): string {
    return readFileSync(this.#log, "utf8");
  }

  /** The journal's lines that begin with a word. */
  notes(first = ""): string[][] {
    const lines = readFileSync(this.journal, "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => line.split(" "));
    return first === "" ? lines : lines.filter((words) => words[0] === first);
  }

  async noted(first: string, count = 1, ms = 20_000): Promise<string[][]> {
    await until(
      () => this.notes(first).length >= count,
      ms,
      () => `the journal has ${JSON.stringify(this.notes())}; the log: ${this.log}`,
    );
    return this.notes(first);
  }

  async ended(ms = 20_000): Promise<number | string | null> {
    await until(
      () => this.process.exitCode !== null || this.process.signalCode !== null,
      ms,
      () => this.log,
    );
    return this.process.exitCode ?? this.process.signalCode;
  }
}
