import { CodecError, Invalid, type TenureError } from "./errors.js";
import { describe } from "./failures.js";
import type { Job as JobRecord, Parent } from "./generated.js";
import { Outcome } from "./outcomes.js";

/** Where a value stands: what a codec may bind its bytes to. */
export interface ValuePlace {
  /** Which value of the job it is. */
  readonly part: "payload" | "result" | "progress";
  /** The queue of the job. */
  readonly queue: string;
  /** The kind of the job; `""` if it has none. */
  readonly kind: string;
  /** The place as bytes, the same in all clients: the associated data of an AEAD. */
  readonly associatedData: Uint8Array<ArrayBuffer>;
}

/**
 * Turns values into bytes and back, with keys that the server does not have. What `encode` or `decode` throws is a
 * `CodecError`; in a run it fails the job for good, unless it is an `Outcome` such as `Snooze`.
 */
export interface Codec {
  /** By which a reader knows whether a value is of its codec; not the id of a key. */
  readonly name: string;
  /** Whether values are read, and sent as they are: for the time until all readers have the codec. Default false. */
  readonly readOnly?: boolean;
  /** Seals a value, which is JSON in UTF-8. */
  encode(clear: Uint8Array<ArrayBuffer>, place: ValuePlace): Uint8Array | Promise<Uint8Array>;
  /** Returns the JSON that `encode` was given; throws if it is of another key or place. */
  decode(sealed: Uint8Array<ArrayBuffer>, place: ValuePlace): Uint8Array | Promise<Uint8Array>;
}

interface Sealed {
  readonly $sealed: string;
  readonly codec: string;
  readonly queue: string;
  readonly kind: string;
}

const TEXT = new TextEncoder();

function placeOf(part: ValuePlace["part"], queue: string, kind: string): ValuePlace {
  return { part, queue, kind, associatedData: TEXT.encode(`${part}\0${queue}\0${kind}`) };
}

async function guarded<T>(did: string, hint: string | undefined, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (cause) {
    if (cause instanceof Outcome) throw cause;
    throw new CodecError("codec_failed", `the codec ${did}: ${describe(cause)}`, { hint, cause });
  }
}

function checked(made: unknown): Uint8Array {
  if (made instanceof Uint8Array) return made;
  throw new TypeError("it must return a Uint8Array");
}

/** Whether a value was sealed by a codec. */
export function isSealed(value: unknown): value is Sealed {
  return typeof (value as Partial<Sealed> | null | undefined)?.$sealed === "string";
}

/** What is sent of a value that is JSON, as JSON. @throws `CodecError` */
export async function seal(
  codec: Codec | undefined,
  json: string,
  part: ValuePlace["part"],
  job: { queue?: string; kind?: string },
): Promise<string> {
  if (!codec || codec.readOnly || json === "null") return json;
  const { queue = "default", kind = "" } = job;
  const made = await guarded(`"${codec.name}" did not seal the ${part}`, undefined, async () =>
    checked(await codec.encode(TEXT.encode(json), placeOf(part, queue, kind))),
  );
  return JSON.stringify({ $sealed: Buffer.from(made).toString("base64"), codec: codec.name, queue, kind });
}

/**
 * A value as it was before it was sealed; one that is not sealed is returned as it is. A value of another place than
 * its `job`, if that is known, is refused. @throws `CodecError`
 */
export async function open(
  codec: Codec | undefined,
  value: unknown,
  part: ValuePlace["part"],
  job?: JobRecord,
): Promise<unknown> {
  if (!isSealed(value)) return value;
  const { codec: name, queue, kind } = value;
  if (!codec || name !== codec.name) {
    const [code, has] = codec ? (["wrong_codec", `"${codec.name}"`] as const) : (["no_codec", "no codec"] as const);
    const hint = "give the client the codec, then retry the job or ask again";
    throw new CodecError(code, `the ${part} is sealed by the codec "${name}", and this client has ${has}`, { hint });
  }
  if (job && (job.queue !== queue || job.kind !== kind)) {
    throw new CodecError(
      "codec_failed",
      `the ${part} was sealed for the kind "${kind}" in queue "${queue}", and not for "${job.kind}" in "${job.queue}"`,
      { hint: "push the job again by a client that has the codec" },
    );
  }
  const hint = "look whether it has the key by which the value was sealed";
  return await guarded(`"${name}" did not open the ${part}`, hint, async () => {
    const sealed = new Uint8Array(Buffer.from(value.$sealed, "base64"));
    const clear = Buffer.from(checked(await codec.decode(sealed, placeOf(part, queue, kind)))).toString();
    try {
      return JSON.parse(clear);
    } catch {
      // Its own error quotes the value, and errors are stored in the clear.
      throw new TypeError("it returned no JSON");
    }
  });
}

/** Opens a value that is shown and not worked on; one that cannot be opened stays as it is. */
export async function shown(codec: Codec | undefined, value: unknown, part: ValuePlace["part"]): Promise<unknown> {
  return isSealed(value) && codec ? await open(codec, value, part).catch(() => value) : value;
}

/** Opens the values of a job that is shown. */
export async function shownJob(codec: Codec | undefined, job: JobRecord): Promise<JobRecord> {
  for (const part of ["payload", "result", "progress"] as const) {
    if (isSealed(job[part])) job[part] = await shown(codec, job[part], part);
  }
  return job;
}

/** Opens the result of a parent. */
export async function openParent(
  parent: Parent,
  read: (value: unknown, part: "result") => Promise<unknown>,
): Promise<Parent> {
  if ("result" in parent) parent.result = await read(parent.result, "result");
  return parent;
}

/** Says what to do where the server could not fill needs in from a payload, since that is sealed. */
export function withAdvice(codec: Codec | undefined, error: TenureError): TenureError {
  if (!codec || error.code !== "invalid_field" || !error.pointer?.includes("/payload/")) return error;
  const hint = "the payload is sealed, so the server cannot fill needs in from it; give the job `needs` of its own";
  return new Invalid(error.code, error.detail, { ...error, hint });
}
