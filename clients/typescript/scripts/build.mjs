#!/usr/bin/env node
import { spawnSync } from "node:child_process";
// Builds dist/: types by tsc, and code that is bundled and minified, with source maps.
//
// The code is made of some forty modules. Bundled, a program that uses the package opens four files.
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = `${root}dist`;
rmSync(dist, { recursive: true, force: true });
const tsc = spawnSync("node_modules/.bin/tsc", ["-p", "tsconfig.json", "--emitDeclarationOnly", "--stripInternal"], {
  cwd: root,
  stdio: "inherit",
});
if (tsc.status !== 0) process.exit(tsc.status ?? 1);
const options = {
  absWorkingDir: root,
  outdir: dist,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  minify: true,
  legalComments: "none",
  sourcemap: "linked",
  sourcesContent: false,
  logLevel: "warning",
};
await build({
  ...options,
  entryPoints: [
    { in: "src/index.ts", out: "index" },
    { in: "src/testing/index.ts", out: "testing/index" },
    // Beside the chunk that starts it by its address.
    { in: "src/heartbeats/thread.ts", out: "thread" },
  ],
  splitting: true,
  chunkNames: "[name]-[hash]",
});
// Adapters open the same `index.js` as their users: an error of the package has one class.
await build({
  ...options,
  entryPoints: ["src/fastify.ts", "src/nest.ts", "src/otel.ts"],
  packages: "external",
  // Nest shows the names of modules.
  keepNames: true,
  plugins: [
    {
      name: "core",
      setup: ({ onResolve }) => onResolve({ filter: /^\.\/index\.js$/ }, ({ path }) => ({ path, external: true })),
    },
  ],
});
