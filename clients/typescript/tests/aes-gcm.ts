// The codec of docs/guides/encrypted-payloads.md, as it stands there.
import type { Codec } from "tenure";

export async function aesGcm(keys: string): Promise<Codec> {
  const read = async (each: string) => {
    const [number, text = ""] = each.split(":");
    const raw = Buffer.from(text, "base64");
    const key = await crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt", "decrypt"]);
    return [Number(number), key] as const;
  };
  const ring = new Map(await Promise.all(keys.split(",").map(read)));
  const find = (number: number | undefined) => {
    const key = ring.get(number ?? 0);
    if (!key) throw new Error(`there is no key ${number} here`);
    return key;
  };
  const [newest] = ring.keys();
  return {
    name: "aes-gcm",
    async encode(clear, { associatedData: additionalData }) {
      const iv = crypto.getRandomValues(new Uint8Array(12));
      const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData }, find(newest), clear);
      return Buffer.concat([Uint8Array.of(newest ?? 0), iv, new Uint8Array(sealed)]);
    },
    async decode(sealed, { associatedData: additionalData }) {
      const iv = sealed.slice(1, 13);
      const key = find(sealed[0]);
      const clear = await crypto.subtle.decrypt({ name: "AES-GCM", iv, additionalData }, key, sealed.slice(13));
      return new Uint8Array(clear);
    },
  };
}
