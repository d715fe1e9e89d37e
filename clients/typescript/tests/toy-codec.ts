// A codec for tests: it hides a value from a reader of JSON, and from nobody else. Its bytes are those of the same codec
// in the tests of the other clients, and `VECTOR` stands there too.
import type { Codec, ValuePlace } from "tenure";

export const CLEAR = { to: "ann@example.com", wörter: [1, 2.5, null, true] };
/** `CLEAR`, sealed for a job of the kind "send" in the queue "mail" with the second key. */
export const VECTOR = {
  $sealed: "Am90NGxoJiwCZ2p+TQtkcGtxbiQ8anltKEM7fs+oUmxlZSckVTwoOD1xR2ZtZG5Dc39+cw13",
  codec: "toy",
  queue: "mail",
  kind: "send",
};
export const OLD: Key = [1, "the first key"];
export const NEW: Key = [2, "another key"];

type Key = readonly [number: number, key: string];

const sum = (...parts: Uint8Array[]) => parts.reduce((all, part) => part.reduce((a, b) => a + b, all), 0) % 256;

function mixed(data: Uint8Array, key: Uint8Array, { associatedData: bound }: ValuePlace): Uint8Array {
  return data.map((each, n) => each ^ (key[n % key.length] as number) ^ (bound[n % bound.length] as number));
}

/** Each byte with one of the key and one of the place; the first key seals, all of them open. */
export function toy(...keys: Key[]): Codec {
  const ring = new Map(keys.map(([number, key]) => [number, new TextEncoder().encode(key)]));
  const [newest] = keys[0] as Key;
  return {
    name: "toy",
    encode(clear, place) {
      const data = Uint8Array.of(sum(clear, place.associatedData), ...clear);
      return Uint8Array.of(newest, ...mixed(data, ring.get(newest) as Uint8Array, place));
    },
    decode(sealed, place) {
      const key = ring.get(sealed[0] as number);
      if (!key) throw new Error(`there is no key ${sealed[0]} here`);
      const [check, ...clear] = mixed(sealed.slice(1), key, place);
      if (check !== sum(Uint8Array.from(clear), place.associatedData)) throw new Error("the sum is wrong");
      return Uint8Array.from(clear);
    },
  };
}
