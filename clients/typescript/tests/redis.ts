import { spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, openSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { endLater, folder, freePort } from "./servers.js";
import { until } from "./waiting.js";

function programOf(name: string): string | undefined {
  const found = process.env["PATH"]?.split(delimiter).map((place) => join(place, name));
  return found?.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Redis or Valkey as the beginning of a command; undefined if there is none, or the tests are to do without. */
function redisCommand(): string[] | undefined {
  if (process.env["TENURE_WITHOUT"]?.split(",").includes("redis")) return undefined;
  const server = programOf("redis-server") ?? programOf("valkey-server");
  if (server) return [server];
  // Debian's redis-tools has the server under the name of a checker: it is what it is called.
  const checker = programOf("redis-check-rdb");
  return checker === undefined ? undefined : ["bash", "-c", 'exec -a redis-server "$0" "$@"', checker];
}

const command = redisCommand();
/** For the option `skip` of a test. */
export const WITHOUT_REDIS = command ? false : "there is no Redis here; apt-get install redis-tools brings one";

/** Starts a Redis with a password, until the tests of this file are over; returns its port. */
export async function startRedis(password: string, tls?: { cert: string; key: string; ca: string }): Promise<number> {
  const port = await freePort();
  const [program = "", ...first] = command ?? [];
  const log = join(folder, `redis-${port}.log`);
  const ports = tls
    ? ["--port", "0", "--tls-port", `${port}`, "--tls-cert-file", tls.cert, "--tls-key-file", tls.key]
    : ["--port", `${port}`];
  const more = tls ? ["--tls-ca-cert-file", tls.ca, "--tls-auth-clients", "no"] : [];
  const output = openSync(log, "a");
  const child = spawn(
    program,
    [
      ...[...first, ...ports, ...more, "--bind", "127.0.0.1", "--requirepass", password],
      ...["--save", "", "--appendonly", "no", "--dir", mkdtempSync(join(folder, "redis-"))],
    ],
    { stdio: ["ignore", output, output] },
  );
  endLater(child);
  await until(() => {
    const lines = readFileSync(log, "utf8");
    if (child.exitCode !== null) throw new Error(lines);
    return lines.includes("Ready to accept connections");
  }, 20_000);
  return port;
}
