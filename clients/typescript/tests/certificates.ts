import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { folder } from "./servers.js";

const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: "pipe", cwd: folder });
const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

function isThere(): boolean {
  try {
    openssl("version");
    return true;
  } catch {
    return false;
  }
}

/** For the option `skip` of a test. */
export const WITHOUT_OPENSSL = isThere() ? false : "openssl is missing";

/** The path of a file that `certificates` made. */
export const at = (name: string): string => join(folder, name);

/** Makes `ca.pem`, an authority of this file's tests, and for each name `NAME.pem` and `NAME.key`. */
export function certificates(...names: string[]): void {
  openssl("req", "-x509", ...KEY, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca");
  for (const name of names) {
    const files = ["-keyout", `${name}.key`, "-out", `${name}.csr`];
    openssl("req", ...KEY, ...files, "-subj", `/CN=${name}`);
    writeFileSync(at(`${name}.ext`), "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
    const signed = ["-in", `${name}.csr`, "-out", `${name}.pem`, "-extfile", `${name}.ext`, "-days", "2"];
    openssl("x509", "-req", ...signed, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial");
  }
}
