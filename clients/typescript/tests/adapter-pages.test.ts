// The pages about the adapters, run as they stand.
import { test } from "node:test";
import { runPrograms } from "./pages.js";

const PAGES: Record<string, string[]> = {
  "docs/guides/fastify.md": ["fastify"],
  "docs/guides/nest.md": ["@nestjs/common", "@nestjs/core"],
  "docs/guides/traces.md": ["@opentelemetry/api", "@opentelemetry/sdk-trace-node"],
};
for (const [page, packages] of Object.entries(PAGES)) {
  test(`the programs of ${page} compile, run and write what it says`, () => runPrograms(page, packages));
}
