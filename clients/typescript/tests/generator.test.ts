import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { folder } from "./servers.js";

test("the generator knows what an OpenAPI document may say about types", () => {
  const document = {
    components: {
      schemas: {
        Whole: {
          description:
            "A thing */ with a description that is long enough to be broken into several lines, since no line is longer than a hundred letters.",
          type: "object",
          required: ["id"],
          properties: {
            id: { type: "string", description: "Its id." },
            "odd-name": { type: ["integer", "null"] },
            old: { type: "string", nullable: true },
            other: { $ref: "#/components/schemas/Choice" },
            list: { type: "array", items: { oneOf: [{ type: "string" }, { type: "null" }] } },
            counts: { type: "object", additionalProperties: { type: "integer" } },
            any: { description: "Any JSON." },
          },
        },
        Choice: {
          oneOf: [
            { type: "object", required: ["kind"], properties: { kind: { const: "a" } } },
            {
              type: "object",
              required: ["kind", "n"],
              properties: { kind: { enum: ["b", "c"] }, n: { type: "number" } },
            },
          ],
        },
        Both: {
          allOf: [
            { $ref: "#/components/schemas/Whole" },
            { type: "object", properties: { more: { type: "boolean" } } },
          ],
        },
        Open: { type: "object" },
        Shut: { type: "object", additionalProperties: false },
      },
    },
  };
  const [from, to] = [join(folder, "openapi.json"), join(folder, "generated.ts")];
  writeFileSync(from, JSON.stringify(document));
  const run = (...args: string[]) =>
    execFileSync(process.execPath, ["scripts/generate-types.mjs", ...args, "--out", to, from], { stdio: "pipe" });
  run();
  const made = readFileSync(to, "utf8");
  for (const part of [
    "  /** Its id. */\n  id: string;\n",
    '  "odd-name"?: number | null;\n',
    "  old?: string | null;\n",
    "  other?: Choice;\n",
    "  list?: (string | null)[];\n",
    "  counts?: Record<string, number>;\n",
    "  /** Any JSON. */\n  any?: unknown;\n",
    'export type Choice = {\n  kind: "a";\n} | {\n  kind: "b" | "c";\n  n: number;\n};\n',
    "export type Both = Whole & {\n  more?: boolean;\n};\n",
    "export type Open = Record<string, unknown>;\n",
    "export type Shut = Record<string, never>;\n",
    "/**\n * A thing *\\/ with a description",
  ]) {
    assert.ok(made.includes(part), `${part}\n is not in\n${made}`);
  }
  run("--check");
  writeFileSync(to, `${made}// changed\n`);
  assert.throws(() => run("--check"), /is not what the server's \/openapi.json says/);
});
