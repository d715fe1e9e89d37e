// Pages of the documentation: their blocks, as files and as commands that a reader runs in one shell.
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { binary, endLater, folder, Server } from "./servers.js";
import { until } from "./waiting.js";

const FENCE = /^```(\w+)\n(.*?)^```$/gms;
/** A program says in its first line which file it is, or the words before it name the file last. */
const FIRST_LINE = /^\/\/ (\S+\.ts)\n/;
const WORDS_BEFORE = /`([\w.-]+\.(?:ts|json))`[^`]*$/;
const BLOCK_ENDS_MS = 60_000;

/** What stands between two fences. */
export interface Block {
  readonly kind: string;
  readonly code: string;
  /** The name of the file that it is; empty for commands and their output. */
  readonly file: string;
}

/** The folder of the repository. The check runs a copy of the package, and came from the original. */
function clone(): string {
  for (const from of [process.env["TENURE_CLONE"], process.env["OLDPWD"], process.cwd()]) {
    for (let at = from; at && at !== dirname(at); at = dirname(at)) {
      if (existsSync(join(at, "docs/start/README.md"))) return at;
    }
  }
  throw new Error("the pages are not here; name the folder of the repository in TENURE_CLONE");
}

/** All blocks of a page of the repository. */
export function blocks(page: string): Block[] {
  const text = readFileSync(join(clone(), page), "utf8");
  return [...text.matchAll(FENCE)].map((found, n) => {
    const [, kind = "", code = ""] = found;
    const before = text.slice(0, found.index).trimEnd();
    const file = kind === "ts" || kind === "json" ? (FIRST_LINE.exec(code) ?? WORDS_BEFORE.exec(before))?.[1] : "";
    return { kind, code, file: file ?? `block-${n}.${kind}` };
  });
}

/** Whether the lines came in this order; `…` stands for anything, others may come between. */
export function matches(expected: string, output: string): boolean {
  const lines = output.split("\n");
  let at = 0;
  for (const line of expected.split("\n").filter((each) => each.trim() !== "" && each.trim() !== "…")) {
    const quoted = line.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const pattern = new RegExp(`^\\s*${quoted.replace(/ +/g, "\\s+").replaceAll("…", ".*")}\\s*$`);
    while (at < lines.length && !pattern.test(lines[at] as string)) at++;
    if (at++ >= lines.length) return false;
  }
  return true;
}

/** Links this package and what the check has installed into a project, as `npm install` would. */
function install(project: string, names: readonly string[]): void {
  const modules = join(project, "node_modules");
  mkdirSync(join(modules, ".bin"), { recursive: true });
  for (const name of names) {
    const from = name === "tenure" ? process.cwd() : join(process.cwd(), "node_modules", name);
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(from, join(modules, name));
  }
  symlinkSync("../typescript/bin/tsc", join(modules, ".bin/tsc"));
}

/** Declarations of packages are checked once, by `check packed`. */
const TSC = ["--skipLibCheck", "--singleThreaded"];

// Without a registry: links what is installed already, and builds nothing that is built already.
const NPM = (tools: string, own: string) => `#!/bin/bash
set -e
case "$1 $2" in
"init --yes" | "ci --silent" | "run --silent") ;;
"pkg set") echo '{ "type": "module" }' >package.json ;;
"install --silent")
  mkdir -p node_modules/.bin node_modules/@types
  for name in "\${@:3}"; do
    case "$name" in
    */clients/typescript) ln -s ${own} node_modules/tenure ;;
    *) test -d ${tools}/$name && ln -s ${tools}/$name node_modules/$name ;;
    esac
  done
  ln -s ../typescript/bin/tsc node_modules/.bin/tsc ;;
*) echo "npm $*: unknown here" >&2; exit 1 ;;
esac
`;

/** A bash that runs blocks one after the other, with a port of its own for the page's 7171. */
export class PageShell {
  readonly #bash: ChildProcess;
  readonly #folder: string;
  readonly #port: number;
  #count = 0;

  constructor(port: number) {
    this.#folder = mkdtempSync(join(folder, "page-"));
    this.#port = port;
    const at = (name: string) => join(this.#folder, name);
    for (const name of ["work", "out", "bin", "clone/clients", "clone/target/release"]) {
      mkdirSync(at(name), { recursive: true });
    }
    symlinkSync(process.cwd(), at("clone/clients/typescript"));
    symlinkSync(binary(), at("clone/target/release/tenure"));
    const programs = {
      // The page starts its server on the usual port.
      tenure: `#!/bin/bash\n[[ "$1" == serve ]] && set -- serve --listen 127.0.0.1:${port} "\${@:2}"\nexec ${binary()} "$@"\n`,
      npm: NPM(join(process.cwd(), "node_modules"), process.cwd()),
      npx: `#!/bin/sh\n[ "$1" = tsc ] && shift && exec node_modules/.bin/tsc ${TSC.join(" ")} "$@"\nexit 1\n`,
    };
    for (const [name, text] of Object.entries(programs)) {
      writeFileSync(at(`bin/${name}`), text);
      chmodSync(at(`bin/${name}`), 0o755);
    }
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(TENURE|NODE)_/.test(name)));
    this.#bash = spawn("bash", ["--norc"], {
      cwd: at("work"),
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
      env: {
        ...env,
        PATH: `${at("bin")}:${env["PATH"]}`,
        TENURE_CLONE: at("clone"),
        TENURE_URL: `http://127.0.0.1:${port}`,
      },
    });
    endLater(this.#bash);
  }

  /** Runs all blocks of a page, and compares what they write with what the page says. */
  async follow(page: readonly Block[]): Promise<void> {
    for (const [n, { kind, code, file }] of page.entries()) {
      const after = page[n + 1];
      if (kind === "ts" || kind === "json") writeFileSync(join(this.#folder, "work", file), code);
      else if (kind === "sh") await this.#one(code, after?.kind === "text" ? after.code : "");
      if (kind === "sh" && /^tenure serve/m.test(code)) await until(() => this.#listens(), 20_000);
    }
  }

  async #listens(): Promise<boolean> {
    return await fetch(`http://127.0.0.1:${this.#port}/readyz`).then(
      (answer) => answer.ok,
      () => false,
    );
  }

  async #one(code: string, expected: string): Promise<void> {
    const at = join(this.#folder, "out", `${this.#count++}`);
    writeFileSync(`${at}.sh`, code.replaceAll("7171", `${this.#port}`));
    this.#bash.stdin?.write(`. ${at}.sh </dev/null >${at}.out 2>&1; echo $? >${at}.part; mv ${at}.part ${at}.code\n`);
    const output = () => (existsSync(`${at}.out`) ? readFileSync(`${at}.out`, "utf8") : "");
    await until(
      () => existsSync(`${at}.code`),
      BLOCK_ENDS_MS,
      () => `it does not end:\n${code}\n${output()}`,
    );
    const exit = readFileSync(`${at}.code`, "utf8").trim();
    const fits = exit === "0" && matches(expected, output());
    assert.ok(fits, `exit code ${exit} of\n${code}\nwrites\n${output()}\nand not\n${expected}`);
  }

  /** Ends all that the page has started. */
  close(): void {
    if (this.#bash.pid !== undefined && this.#bash.exitCode === null) process.kill(-this.#bash.pid, "SIGKILL");
  }
}

const RUN_ENDS_MS = 40_000;
const OPTIONS = {
  target: "es2022",
  lib: ["es2023", "esnext.disposable"],
  module: "nodenext",
  types: ["node"],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  rewriteRelativeImportExtensions: true,
  // For Nest.
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  outDir: "built",
};

/** Runs a program; one that does not end by itself gets SIGTERM when it has written what the page says. */
function run(program: string, cwd: string, env: Record<string, string>, expected: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program], { cwd, env: { ...process.env, ...env } });
    endLater(child);
    let output = "";
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`${program} does not end; it wrote\n${output}and not\n${expected}`));
    }, RUN_ENDS_MS);
    const read = (text: Buffer) => {
      output += text;
      if (expected !== "" && matches(expected, output)) child.kill("SIGTERM");
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("close", (code) => {
      clearTimeout(late);
      const isRight = (code === 0 || (code === null && expected !== "")) && matches(expected, output);
      if (isRight) resolve(output);
      else reject(new Error(`exit code ${code} of ${program}; it wrote\n${output}and not\n${expected}`));
    });
  });
}

/** Compiles and runs all programs of a page, with these packages beside the usual ones. */
export async function runPrograms(page: string, packages: readonly string[] = []): Promise<void> {
  const all = blocks(page);
  const project = mkdtempSync(join(folder, "project-"));
  install(project, ["tenure", "zod", "typescript", "@types/node", ...packages]);
  writeFileSync(join(project, "package.json"), '{ "type": "module" }');
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: OPTIONS, include: ["*.ts"] }));
  const programs = all.flatMap((block, n): [Block, string][] => {
    const after = all[n + 1];
    return block.kind === "ts" && !block.code.startsWith("// BullMQ")
      ? [[block, after?.kind === "text" ? after.code : ""]]
      : [];
  });
  for (const [{ file, code }] of programs) writeFileSync(join(project, file), code);
  const compiled = spawnSync("node_modules/.bin/tsc", TSC, { cwd: project, encoding: "utf8" });
  assert.equal(compiled.status, 0, compiled.stdout);
  const server = await Server.start("memory:");
  for (const [n, [{ file }, expected]] of programs.entries()) {
    // Programs that a page gives a name share what they store; each of the others begins with nothing.
    const namespace = file.startsWith("block-") ? `page-${n}` : "page";
    const env = { TENURE_URL: server.url, TENURE_NAMESPACE: namespace, TENURE_LOG: "", PORT: "0" };
    await run(join(project, "built", file.replace(/ts$/, "js")), project, env, expected);
  }
  await server.kill();
}
