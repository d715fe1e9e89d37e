#!/usr/bin/env node
// Writes src/generated.ts, the types of requests and replies, from the OpenAPI document of a server.
//
//   node scripts/generate-types.mjs [--check] [--out FILE] URL|FILE
//
// URL is a running server (http://127.0.0.1:7171), FILE its /openapi.json. With --check nothing is
// written; the exit code is 1 if the file in the tree differs.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: "boolean" }, out: { type: "string" } },
});
const source = positionals[0];
if (source === undefined || positionals.length > 1) {
  console.error("usage: generate-types.mjs [--check] [--out FILE] URL|FILE");
  process.exit(2);
}
const out = options.out ?? fileURLToPath(new URL("../src/generated.ts", import.meta.url));

async function readDocument() {
  if (!/^https?:/.test(source)) return JSON.parse(await readFile(source, "utf8"));
  const url = source.endsWith(".json") ? source : `${source.replace(/\/$/, "")}/openapi.json`;
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} answers ${answer.status}`);
  return await answer.json();
}

const WIDTH = 100;

/** A doc comment, broken into lines. */
function comment(text, indent) {
  if (!text) return "";
  const words = text.replaceAll("*/", "*\\/").split(/\s+/);
  const one = `${indent}/** ${words.join(" ")} */\n`;
  if (one.length <= WIDTH + 1) return one;
  const lines = [];
  let line = "";
  for (const word of words) {
    if (line && indent.length + 3 + line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = "";
    }
    line += (line && " ") + word;
  }
  lines.push(line);
  return `${indent}/**\n${lines.map((each) => `${indent} * ${each}\n`).join("")}${indent} */\n`;
}

const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));
const union = (parts) => [...new Set(parts)].join(" | ");
const literal = (value) => JSON.stringify(value);

/** Several types as one; a union stands in brackets where it is an item. */
const item = (type) => (type.includes(" | ") ? `(${type})` : type);

function typeOf(schema, indent) {
  if (schema === true || schema === undefined) return "unknown";
  if (schema === false) return "never";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  const nullable = schema.nullable === true ? " | null" : "";
  if ("const" in schema) return literal(schema.const) + nullable;
  if (schema.enum) return union(schema.enum.map(literal)) + nullable;
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) {
    const { oneOf, anyOf, ...shared } = schema;
    const either = union(choices.map((each) => typeOf(each, indent)));
    // Fields beside the choice go with each of them.
    const rest = shared.properties ? `${objectOf(shared, indent)} & ` : "";
    return (rest ? `${rest}${item(either)}` : either) + nullable;
  }
  if (schema.allOf) return schema.allOf.map((each) => item(typeOf(each, indent))).join(" & ") + nullable;
  if (Array.isArray(schema.type)) {
    return union(schema.type.map((type) => typeOf({ ...schema, type }, indent)));
  }
  switch (schema.type) {
    case "string":
      return `string${nullable}`;
    case "integer":
    case "number":
      return `number${nullable}`;
    case "boolean":
      return `boolean${nullable}`;
    case "null":
      return "null";
    case "array":
      return `${item(typeOf(schema.items, indent))}[]${nullable}`;
    case "object":
      return objectOf(schema, indent) + nullable;
    default:
      return schema.properties ? objectOf(schema, indent) + nullable : "unknown";
  }
}

function objectOf(schema, indent) {
  const properties = Object.entries(schema.properties ?? {});
  const more = schema.additionalProperties;
  if (properties.length === 0) {
    if (more === false) return "Record<string, never>";
    return `Record<string, ${more === undefined || more === true ? "unknown" : typeOf(more, indent)}>`;
  }
  const inner = `${indent}  `;
  const required = new Set(schema.required ?? []);
  let text = "{\n";
  for (const [name, each] of properties) {
    text += comment(each.description, inner);
    text += `${inner}${key(name)}${required.has(name) ? "" : "?"}: ${typeOf(each, inner)};\n`;
  }
  if (more !== undefined && more !== false) {
    // An index signature must fit the named fields, too.
    text += `${inner}[name: string]: unknown;\n`;
  }
  return `${text}${indent}}`;
}

function generate(document) {
  const schemas = document.components?.schemas ?? {};
  let text =
    "// Made by scripts/generate-types.mjs from the /openapi.json of a server. Do not edit it.\n" +
    "/** Requests and replies of the HTTP API, as the server reads and writes them. */\n\n";
  for (const name of Object.keys(schemas).sort()) {
    const schema = schemas[name];
    const isInterface =
      schema.type === "object" &&
      Object.keys(schema.properties ?? {}).length > 0 &&
      !schema.oneOf &&
      !schema.anyOf &&
      !schema.allOf &&
      schema.nullable !== true;
    text += comment(schema.description, "");
    text += isInterface
      ? `export interface ${name} ${objectOf(schema, "")}\n\n`
      : `export type ${name} = ${typeOf(schema, "")};\n\n`;
  }
  return `${text.trimEnd()}\n`;
}

const made = generate(await readDocument());
if (options.check) {
  const there = await readFile(out, "utf8").catch(() => "");
  if (there !== made) {
    console.error(
      `${out} is not what the server's /openapi.json says; make it anew: node scripts/generate-types.mjs URL`,
    );
    process.exit(1);
  }
} else {
  await writeFile(out, made);
}
