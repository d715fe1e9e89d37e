import assert from "node:assert/strict";
import { test } from "node:test";
import { readAddresses, readStore } from "../dist/addresses.js";
import { readServers } from "../dist/discovery.js";
import { durationText, milliseconds, momentText } from "../dist/durations.js";
import { type Hold, Holdings } from "../dist/heartbeats/holdings.js";
import { Records } from "../dist/heartbeats/records.js";
import { FREE, LOST, RUNNING, SETTLING, Words } from "../dist/heartbeats/words.js";
import { encode } from "../dist/json.js";
import { needsJson } from "../dist/needs.js";
import { secretsOf, without } from "../dist/secrets.js";
import { middleCut, oneLine } from "../dist/text.js";

test("durations and moments", () => {
  assert.deepEqual(
    ["500ms", "90s", "1h30m", 250, "5m500ms", "1d2h3m4s5ms", "0s", 1.5].map((each) => milliseconds(each as "1s")),
    [500, 90_000, 5_400_000, 250, 300_500, 93_784_005, 0, 1.5],
  );
  assert.deepEqual([durationText("1h30m"), durationText(250), durationText(0)], ["5400s", "250ms", "0s"]);
  const orders = ["1.5s", "30m1h", "1s1m", "1ms1s", "1m1m", "1h1h", "1s ", "1s\n", "1S", "h"];
  for (const wrong of ["", "5", "5 s", "-1s", -1, Number.NaN, null, {}, ...orders])
    assert.throws(() => milliseconds(wrong as never), { name: "WrongOption" });
  assert.equal(momentText(new Date(0)), "1970-01-01T00:00:00.000Z");
  assert.equal(momentText("2026-12-01T09:55:00+01:00"), "2026-12-01T09:55:00+01:00");
  for (const wrong of ["2026-12-01", "tomorrow", new Date("x"), 5])
    assert.throws(() => momentText(wrong as never), { name: "WrongOption" });
});

test("addresses of servers and stores", () => {
  assert.deepEqual(
    readAddresses("localhost:8080, https://h/tenure/ ,tenure://[::1],http://h").map((each) => each.url),
    ["http://localhost:8080", "https://h:443/tenure", "http://[::1]:7171", "http://h:80"],
  );
  const refusals = {
    "http://me:secret@h": /takes no user and no password/,
    "memory:": /"memory:" is the address of a store/,
    "ftp://h": /the address of a server is HOST:PORT/,
    "http://h?x=1": /takes no "\?"/,
    "http://h:1,": /has an empty part/,
    "http://h:1,nope": /address 2 of 2: the address of a server is/,
    "http://h:99999": /from 1 to 65535/,
  };
  for (const [text, why] of Object.entries(refusals)) {
    assert.throws(
      () => readAddresses(text),
      (error: Error) => why.test(error.message) && !error.message.includes("secret"),
      text,
    );
  }
  const store = readStore("redis-sentinel://me:pass%40word@a:1,b/main/2?name=shop");
  assert.deepEqual(
    [store?.hosts, store?.master, store?.db, store?.user, store?.password, store?.name, store?.shown],
    [
      [
        ["a", 1],
        ["b", 26379],
      ],
      "main",
      2,
      "me",
      "pass@word",
      "shop",
      "redis-sentinel://a:1,b/main/2?name=shop",
    ],
  );
  assert.equal(readStore("http://h"), undefined);
  assert.throws(() => readStore("redis-sentinel://a:1"), /names no master/);
});

test("servers are read from what they wrote of themselves", () => {
  const nowUs = 1e15;
  const found = readServers(
    "b",
    {
      a: `${nowUs - 1e6} 1 1 1 http://a:1`,
      b: `${nowUs - 2e6} 1 1 1 http://b:1`,
      old: `${nowUs - 2e7} 1 1 1 http://old:1`,
      odd: "x",
    },
    nowUs,
  );
  assert.deepEqual(
    found.map((each) => each.url),
    ["http://b:1", "http://a:1"],
  );
});

test("JSON that would lose a part is refused with its place", () => {
  const loop: unknown[] = [];
  loop.push(loop);
  const deep = JSON.parse("[".repeat(62) + "]".repeat(62));
  const cases: [unknown, RegExp][] = [
    [{ a: [{ b: Number.NaN }] }, /^p\.a\[0\]\.b: NaN is not JSON/],
    [{ f: () => 1 }, /^p\.f: a function is not JSON/],
    [1n, /^p: a bigint is not JSON/],
    [new Map(), /^p: a Map is not JSON/],
    [[undefined], /^p\[0\]: undefined in an array/],
    [new Date("x"), /^p: an invalid Date/],
    [loop, /nested deeper than 61/],
    [deep, /nested deeper than 61/],
  ];
  for (const [value, why] of cases)
    assert.throws(
      () => encode(value, "p"),
      (error: { detail: string }) => why.test(error.detail),
    );
  assert.equal(
    encode({ a: undefined, d: new Date(0), u: "\ud800 \\ud800" }, "p", true),
    `{"d":"1970-01-01T00:00:00.000Z","u":"\ufffd \\\\ud800"}`,
  );
  assert.equal(encode(undefined, "p"), "null");
});

test("needs as text and as objects", () => {
  assert.deepEqual(needsJson(["limit:site:a,weight=2", "pool:p#cn,prefer=x", { limit: "l", cost: 0 }]), [
    { limit: "site:a", weight: 2 },
    { pool: "p", tag: "cn", prefer: "x" },
    { limit: "l", cost: 0 },
  ]);
  const refusals: [unknown, RegExp][] = [
    ["limit:a", /needs must be an array such as/],
    [["site:a"], /needs\[0\] is "site:a"; a need is text such as "limit:NAME"/],
    [[{ limit: "a", wieght: 2 }], /needs\[0\] has no option "wieght".*did you mean "weight"\?/],
    [[{ limit: "a", weight: 0 }], /weight of needs\[0\] must be a whole number from 1 on, not 0/],
    [[{}], /needs\[0\] must have "limit" or "pool"/],
  ];
  for (const [value, why] of refusals) assert.throws(() => needsJson(value), why);
});

test("secrets, bounds and single lines", () => {
  const secrets = secretsOf([{ a: "hunter-2", b: ["short", "http://me:pass-word@h"] }]);
  assert.equal(
    without('login hunter-2 as me:pass-word "hunter-2" http://x:y@z', secrets),
    'login ••• as ••• "•••" http://•••@z',
  );
  const cut = middleCut(`a${"é".repeat(100)}z`, 50);
  assert.match(cut, /^aé+ … é+z$/);
  assert.ok(Buffer.byteLength(cut) <= 50 && Buffer.byteLength(cut) > 44);
  assert.equal(middleCut("abc", 50), "abc");
  assert.equal(oneLine("a\nb\u001b[0m\u202e"), "a\\nb\\u001b[0m\\u202e");
});

const hold = (slot: number, generation: number, more: Partial<Hold> = {}): Hold => ({
  slot,
  generation,
  lease: `l${slot}`,
  name: "job j",
  ttl: 1000,
  goodSince: 10_000,
  deadline: undefined,
  deadlineAt: undefined,
  ...more,
});

test("a word of an earlier use changes nothing of the next", () => {
  const words = Words.of(2);
  const first = words.begin(0, 1000);
  assert.ok(words.change(0, first, [RUNNING], SETTLING));
  assert.ok(words.change(0, first, [SETTLING], FREE));
  const second = words.begin(0, 2000);
  assert.equal(words.change(0, first, [RUNNING], LOST), false);
  assert.equal(words.prolong(0, first, 9000), false);
  assert.deepEqual(words.read(0), { generation: second, stopAt: 2000, state: RUNNING });
  assert.ok(words.prolong(0, second, 1500));
  assert.equal(words.read(0).stopAt, 2000);
});

test("a thread takes in the leases of shared memory that are held, and no torn record", () => {
  const [words, records] = [Words.of(4), Records.of(4)];
  const holdings = new Holdings(words);
  const record = { lease: "l", name: 'lock "a\nb"', ttl: 1000, deadline: 10_500.25, deadlineAt: undefined };
  for (const slot of [0, 1, 2]) records.write(slot, { ...record, lease: `l${slot}` });
  const generations = [0, 1].map((slot) => words.begin(slot, 10_800));
  words.change(1, generations[1] as number, [RUNNING], FREE);
  assert.deepEqual([holdings.adopt(records), holdings.adopt(records)], [true, false]);
  assert.deepEqual(
    holdings.due(10_200).map(({ lease, name, deadline, goodSince }) => [lease, name, deadline, goodSince]),
    [["l0", 'lock "a\nb"', 10_500.25, 10_000]],
  );
  // The slot gets its next lease while its record is read.
  words.begin(1, 20_800);
  const read = records.read;
  records.read = (slot) => {
    const of = read.call(records, slot);
    words.change(1, words.read(1).generation, [RUNNING], FREE);
    words.begin(1, 30_800);
    records.read = read;
    return of;
  };
  assert.equal(holdings.adopt(records), false);
  assert.equal(holdings.adopt(records), true);
  // A name that is too long is cut, and its lease is whole.
  records.write(3, { ...record, name: "é".repeat(300) });
  const { lease, name } = records.read(3);
  assert.ok(lease === "l" && name.startsWith("éé") && name.length < 300);
  assert.equal(records.nextLook, 0);
  records.nextLook = Number.POSITIVE_INFINITY;
  assert.ok(records.nextLook > 1e15);
  records.nextLook = Number.NEGATIVE_INFINITY;
  assert.equal(records.nextLook, 0);
});

test("leases are extended each fifth of the ttl, all in one call", () => {
  const words = Words.of(4);
  const holdings = new Holdings(words);
  holdings.add(hold(0, words.begin(0, 10_800)));
  holdings.add(hold(1, words.begin(1, 10_900), { goodSince: 10_100 }));
  assert.equal(holdings.next(), 10_200);
  assert.deepEqual(holdings.due(10_199), []);
  const due = holdings.due(10_200);
  assert.deepEqual(
    due.map((each) => each.lease),
    ["l0", "l1"],
  );
  const at = new Date(0).toISOString();
  assert.deepEqual(
    holdings
      .answered(due, 10_200, 10_210, {
        extended: due.map(({ lease }) => ({ lease, expires_at: at })),
        lost: [],
        cancel: ["l1"],
      })
      .map(([held, why]) => [held.lease, why]),
    [["l1", "cancelled"]],
  );
  assert.equal(words.read(0).stopAt, 11_000);
  assert.equal(holdings.next(), 10_400);
});

test("of two answers that come in the wrong order, the later heartbeat counts", () => {
  const words = Words.of(4);
  const holdings = new Holdings(words);
  holdings.add(hold(0, words.begin(0, 10_800)));
  const due = holdings.due(10_200);
  const answer = { extended: [{ lease: "l0", expires_at: new Date(0).toISOString() }], lost: [], cancel: [] };
  holdings.answered(due, 10_500, 10_600, answer);
  holdings.answered(due, 10_200, 10_650, answer);
  holdings.failed(due, 10_200, 10_660);
  assert.equal(words.read(0).stopAt, 11_300);
  assert.equal(holdings.next(), 10_700);
});

test("a lease is lost 0.8 ttl after the last answered extend was sent, and told once", () => {
  const words = Words.of(4);
  const holdings = new Holdings(words);
  holdings.add(hold(0, words.begin(0, 10_800)));
  assert.deepEqual(holdings.overdue(10_799), []);
  assert.deepEqual(
    holdings.overdue(10_800).map(([, why]) => why),
    ["lost"],
  );
  assert.equal(words.read(0).state, LOST);
  assert.deepEqual(holdings.overdue(10_900), []);
});

test("a settling lease is never stopped, and extended only if its settle is not answered soon", () => {
  const words = Words.of(4);
  const holdings = new Holdings(words);
  const generation = words.begin(0, 10_800);
  holdings.add(hold(0, generation));
  words.change(0, generation, [RUNNING], SETTLING);
  holdings.sweep(10_190);
  assert.deepEqual(holdings.due(10_200), []);
  assert.equal(holdings.due(10_390).length, 1);
  assert.deepEqual(holdings.overdue(20_000), []);
  const [held] = holdings.due(10_390);
  assert.deepEqual(
    holdings.answered(held ? [held] : [], 10_390, 10_400, { extended: [], lost: ["l0"], cancel: [] }),
    [],
  );
  words.change(0, generation, [SETTLING], FREE);
  holdings.sweep(10_500);
  assert.equal(holdings.next(), undefined);
});

test("a deadline is told once, and counts by the server's clock from the first extend on", () => {
  const words = Words.of(4);
  const holdings = new Holdings(words);
  holdings.add(hold(0, words.begin(0, 10_800), { deadline: 10_500, deadlineAt: 5_000_000 }));
  const due = holdings.due(10_200);
  // The server answered at 4,999,800 by its clock: 200 ms are left.
  holdings.answered(due, 10_200, 10_210, {
    extended: [{ lease: "l0", expires_at: new Date(5_000_800).toISOString() }],
    lost: [],
    cancel: [],
  });
  assert.deepEqual(holdings.overdue(10_399), []);
  assert.deepEqual(
    holdings.overdue(10_400).map(([, why]) => why),
    ["timed_out"],
  );
  assert.deepEqual(holdings.overdue(10_401), []);
});

test("reports go with extends of their own, once in 0.9 s", () => {
  const words = Words.of(4);
  const holdings = new Holdings(words);
  const generation = words.begin(0, 90_000);
  holdings.add(hold(0, generation, { ttl: 100_000 }));
  holdings.report(0, generation, "1");
  const due = holdings.due(10_010);
  assert.equal(due[0]?.progress, "1");
  holdings.report(0, generation, "2");
  assert.deepEqual(holdings.due(10_500), []);
  assert.equal(holdings.due(10_910)[0]?.progress, "2");
});

test("an answer that is no JSON, or a token that cannot be had, is no end of a worker", async () => {
  const { Transport } = await import("../dist/transport.js");
  const { SILENT } = await import("../dist/log.js");
  const [address] = readAddresses("http://h:1");
  const settings = {
    addresses: address ? [address] : [],
    store: undefined,
    namespace: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
    secret: false,
  };
  const html = { send: async () => ({ status: 200, header: () => undefined, text: "<html>" }), close() {} };
  const call = { method: "GET", path: "stats" } as const;
  const none = { get: () => undefined };
  await assert.rejects(new Transport(settings, none, html, SILENT, 0).once(call, 100), {
    name: "Error",
    message: /is no Tenure server/,
    sent: true,
  });
  const vault = { get: () => Promise.reject(new Error("the vault is sealed")) };
  await assert.rejects(new Transport(settings, vault, html, SILENT, 0).once(call, 100), {
    message: "the vault is sealed",
  });
});
