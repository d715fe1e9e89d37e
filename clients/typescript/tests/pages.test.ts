// The pages about this package, run as they stand: each program compiles, ends well, and writes what the page says.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Block, blocks, install, matches, PageShell } from "./pages.js";
import { endLater, folder, freePort, Server } from "./servers.js";

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

test("docs/start/typescript.md can be followed literally", async () => {
  const page = blocks("docs/start/typescript.md");
  assert.ok(page.filter(({ kind }) => kind === "sh").length >= 10);
  const shell = new PageShell(await freePort());
  try {
    await shell.follow(page);
  } finally {
    shell.close();
  }
});

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

const PAGES: Record<string, string[]> = {
  "docs/guides/typescript.md": [],
  "docs/coming-from/bullmq.md": [],
  "docs/guides/fastify.md": ["fastify"],
  "docs/guides/nest.md": ["@nestjs/common", "@nestjs/core"],
  "docs/guides/traces.md": ["@opentelemetry/api", "@opentelemetry/sdk-trace-node"],
};
for (const [page, packages] of Object.entries(PAGES)) {
  test(`the programs of ${page} compile, run and write what it says`, async () => {
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
    const compiled = spawnSync("node_modules/.bin/tsc", { cwd: project, encoding: "utf8" });
    assert.equal(compiled.status, 0, compiled.stdout);
    const server = await Server.start("memory:");
    for (const [n, [{ file }, expected]] of programs.entries()) {
      // Programs that a page gives a name share what they store; each of the others begins with nothing.
      const namespace = file.startsWith("block-") ? `page-${n}` : "page";
      const env = { TENURE_URL: server.url, TENURE_NAMESPACE: namespace, TENURE_LOG: "", PORT: "0" };
      await run(join(project, "built", file.replace(/ts$/, "js")), project, env, expected);
    }
    await server.kill();
  });
}

test("a page that says something else is found", async () => {
  const shell = new PageShell(await freePort());
  try {
    const say = { kind: "sh", code: "echo hello ann\n", file: "" };
    await shell.follow([say, { kind: "text", code: "hello …\n", file: "" }]);
    await assert.rejects(shell.follow([say, { kind: "text", code: "hello bob\n", file: "" }]), /and not\nhello bob/);
    await assert.rejects(shell.follow([{ ...say, code: "false\n" }]), /exit code 1/);
  } finally {
    shell.close();
  }
});

test("expected lines match in order, with free spaces and ellipses", () => {
  assert.ok(matches("hello ann\n", "note\nhello ann\n"));
  assert.ok(!matches("hello ann\nhello bob\n", "hello bob\nhello ann\n"));
  assert.ok(matches("state  cancelled\n", "state     cancelled\n"));
  assert.ok(matches("…\nat …x.js:6:15\n", "hello\n    at /a/x.js:6:15\n"));
  assert.ok(!matches("hello\n", "hello ann\n"));
});
