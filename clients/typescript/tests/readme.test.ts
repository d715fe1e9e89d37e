// The programs of the README: each compiles, and those that need no network run.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { Server } from "./servers.js";

const blocks = [...readFileSync("README.md", "utf8").matchAll(/^```ts\n(.*?)^```/gms)].map(
  (found) => found[1] as string,
);

test("the programs of the README compile and run", async () => {
  mkdirSync("readme", { recursive: true });
  // It pushes 100,000 jobs; a tenth of them shows the same.
  for (const [n, block] of blocks.entries()) {
    writeFileSync(`readme/block-${n}.ts`, block.replace("100_000", "10_000"));
  }
  const options = {
    extends: "../tsconfig.json",
    compilerOptions: { rootDir: ".", outDir: "../readme-dist", declaration: false, noUnusedLocals: false },
    include: ["."],
  };
  writeFileSync("readme/tsconfig.json", JSON.stringify(options));
  execFileSync("node_modules/.bin/tsc", ["-p", "readme/tsconfig.json"], { stdio: "pipe" });
  const server = await Server.start();
  const env = { ...process.env, TENURE_URL: server.url };
  const run = (n: number) =>
    execFileSync(process.execPath, [`readme-dist/block-${n}.js`], {
      env,
      encoding: "utf8",
      timeout: 60_000,
      stdio: "pipe",
    });
  assert.equal(blocks.length, 4);
  assert.throws(() => run(2), { stderr: /TimeoutError/ });
  assert.equal((await server.client({ namespace: "default" }).stats()).jobs["ready"], 10_000);
  run(3);
});
