//! Two namespaces that are asked the same, one by the direct way and one by the usual way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::LazyLock;

use proptest::test_runner::TestCaseError;
use redis::{Connection, Value};
use serde_json::{Value as Json, json};
use tenure_engine_redis::library::Library;
use tenure_testkit::redis::RedisServer;

use crate::dump::{Stored, bytes, dump};
use crate::step::{Asked, Odd, Step};

/// When a program begins, in µs.
const BEGIN: u64 = 1_700_000_000_000_000;
const PROCESSES: [&str; 2] = ["p1", "p2"];
/// Keys of tests in a namespace: which way it goes, and how often it went the direct way.
const USUAL: &str = "usual";
const COUNT: &str = "directly";
/// The last of the messages that are there.
const END: &[u8] = b"end";

/// A server with the library of tests.
#[derive(Clone, Copy)]
pub struct Store<'a> {
    server: &'a RedisServer,
    subscribe: &'static str,
    publish: &'static str,
}

impl<'a> Store<'a> {
    /// A server alone.
    pub fn alone(server: &'a RedisServer) -> Self {
        Store { server, subscribe: "SUBSCRIBE", publish: "PUBLISH" }.loaded()
    }

    /// The only node of a cluster.
    pub fn clustered(server: &'a RedisServer) -> Self {
        Store { server, subscribe: "SSUBSCRIBE", publish: "SPUBLISH" }.loaded()
    }

    fn loaded(self) -> Self {
        self.server.must(&["FUNCTION", "LOAD", Library::testing().text()]);
        self
    }
}

/// The name of the function of an operation.
fn function(operation: &str) -> String {
    static LIBRARY: LazyLock<Library> = LazyLock::new(Library::testing);
    LIBRARY.function(operation)
}

fn connect(server: &RedisServer) -> Connection {
    let client = redis::Client::open(server.url()).expect("the address of the fixture is one");
    client.get_connection().expect("a connection")
}

/// The answer of one side: its parts without the nonce, or the error.
type Answer = Result<Vec<Vec<u8>>, String>;

/// What an answer says: the fields of its header have no order.
fn said(answer: &Answer) -> Result<(Json, &[Vec<u8>]), &String> {
    let parts = answer.as_ref()?;
    let (header, blobs) = parts.split_first().expect("an answer has a header");
    Ok((header_of(header), blobs))
}

/// The part of an answer that has this number, if it is one.
fn blob<'a>(blobs: &'a [Vec<u8>], number: &Json) -> Option<&'a [u8]> {
    let at = usize::try_from(number.as_u64()?.checked_sub(1)?).ok()?;
    blobs.get(at).map(Vec::as_slice)
}

struct Side<'a> {
    prefix: &'static str,
    store: Store<'a>,
    commands: Connection,
    messages: Connection,
}

impl<'a> Side<'a> {
    fn begin(store: Store<'a>, prefix: &'static str) -> Self {
        let (commands, messages) = (connect(store.server), connect(store.server));
        let mut side = Side { prefix, store, commands, messages };
        let keys: Vec<String> =
            redis::cmd("KEYS").arg(format!("{prefix}*")).query(&mut side.commands).expect("keys");
        for key in keys {
            redis::cmd("DEL").arg(key).exec(&mut side.commands).expect("a key goes");
        }
        side
    }

    fn call(&mut self, operation: &str, args: &Json, text: Option<&[u8]>) -> Answer {
        let mut command = redis::cmd("FCALL");
        command.arg(function(operation)).arg(1).arg(format!("{}m", self.prefix));
        command.arg(rmp_serde::to_vec(args).expect("arguments"));
        if let Some(text) = text {
            command.arg(text);
        }
        let answer = command.arg("").arg("nonce").query(&mut self.commands);
        match answer {
            Ok(Value::Array(mut parts)) => {
                parts.pop();
                Ok(parts.iter().map(bytes).collect())
            }
            Ok(other) => Err(format!("{other:?}")),
            Err(why) => Err(why.to_string()),
        }
    }

    /// What all keys hold, without the namespace in their names.
    fn dump(&mut self) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
        let mut all = dump(&mut self.commands, self.prefix);
        all.retain(|name, _| name != USUAL.as_bytes() && name != COUNT.as_bytes());
        all.into_iter().map(|(name, stored)| (name, held(stored))).collect()
    }

    /// Listens for the processes.
    fn listen(&mut self) {
        for process in PROCESSES {
            let channel = format!("{}w:{process}", self.prefix);
            self.messages
                .send_packed_command(
                    &redis::cmd(self.store.subscribe).arg(channel).get_packed_command(),
                )
                .expect("it subscribes");
            self.messages.recv_response().expect("it has subscribed");
        }
    }

    /// The messages to a process since it was last asked.
    fn heard(&mut self, process: &str) -> Vec<Vec<u8>> {
        let channel = format!("{}w:{process}", self.prefix);
        redis::cmd(self.store.publish)
            .arg(channel)
            .arg(END)
            .exec(&mut self.commands)
            .expect("it is sent");
        let mut all = Vec::new();
        loop {
            let message = match self.messages.recv_response().expect("a message") {
                Value::Array(parts) => bytes(parts.last().expect("a message has parts")),
                Value::Push { data, .. } => bytes(data.last().expect("a message has parts")),
                other => panic!("no message: {other:?}"),
            };
            if message == END {
                return all;
            }
            all.push(message);
        }
    }
}

/// The content of a key. Records of groups are left out: a time below the time of its priority is as good as that, and
/// only the usual way raises it.
fn held(stored: Stored) -> Vec<Vec<u8>> {
    const GROUP: u8 = 0x99;
    const VERSION: std::ops::Range<usize> = 1..7;
    if stored.kind != "hash" {
        return stored.items;
    }
    let pairs = stored.items.chunks_exact(2).map(|pair| (&pair[0], pair[1].clone()));
    let pairs = pairs.filter(|(_, value)| value.first() != Some(&GROUP));
    let joined = pairs.map(|(field, mut value)| {
        if field == b"s" && value.len() > VERSION.end {
            value.drain(VERSION);
        }
        [field.as_slice(), b" ", value.as_slice()].concat()
    });
    joined.collect()
}

/// A waiting call: its name, and its request id.
type Waits = (String, String);

pub struct Pair<'a> {
    direct: Side<'a>,
    usual: Side<'a>,
    now: u64,
    jobs: u64,
    calls: u64,
    /// The leases that are held: fence and row number.
    held: VecDeque<(u64, u64)>,
    waits: Vec<Waits>,
    read: [u64; 2],
    /// How many parcels came to either of them.
    pub parcels: u64,
    /// The store as the replies tell of it.
    stamp: Json,
}

impl<'a> Pair<'a> {
    pub fn begin(store: Store<'a>) -> Self {
        let mut pair = Pair {
            direct: Side::begin(store, "tenure:{a}"),
            usual: Side::begin(store, "tenure:{b}"),
            now: BEGIN,
            jobs: 0,
            calls: 0,
            held: VecDeque::new(),
            waits: Vec::new(),
            read: [0; 2],
            parcels: 0,
            stamp: json!(false),
        };
        store.server.must(&["SET", &format!("{}{USUAL}", pair.usual.prefix), "1"]);
        pair.set_clock();
        pair.direct.listen();
        pair.usual.listen();
        pair
    }

    /// How many calls went the direct way.
    pub fn gone_directly(&mut self) -> u64 {
        let key = format!("{}{COUNT}", self.direct.prefix);
        let count: Option<u64> =
            redis::cmd("GET").arg(key).query(&mut self.direct.commands).expect("a count");
        count.unwrap_or(0)
    }

    fn set_clock(&mut self) {
        for side in [&mut self.direct, &mut self.usual] {
            let key = format!("{}now", side.prefix);
            redis::cmd("SET")
                .arg(key)
                .arg(self.now)
                .exec(&mut side.commands)
                .expect("the clock is set");
        }
    }

    fn knows(&self) -> Json {
        json!([false, false, 0, self.stamp, 0])
    }

    /// Asks both, and compares all.
    fn both(
        &mut self,
        operation: &str,
        args: Json,
        text: Option<&[u8]>,
    ) -> Result<(), TestCaseError> {
        let (one, other) =
            (self.direct.call(operation, &args, text), self.usual.call(operation, &args, text));
        if said(&one) != said(&other) {
            return Err(TestCaseError::fail(format!(
                "{operation} {args}\ndirect: {one:?}\nusual:  {other:?}"
            )));
        }
        self.are_alike(operation, &args)?;
        let parts = one.unwrap_or_default();
        if let Some(header) = parts.first() {
            let header = header_of(header);
            if let Some(stamp) = header["b"].get(1) {
                self.stamp = stamp.clone();
            }
            self.granted(&header["r"], &parts);
            self.granted(&header["r"]["leased"], &parts);
        }
        self.hear()
    }

    /// Compares what both have stored.
    fn are_alike(&mut self, operation: &str, args: &Json) -> Result<(), TestCaseError> {
        let (left, right) = (self.direct.dump(), self.usual.dump());
        for key in left.keys().chain(right.keys()) {
            if left.get(key) != right.get(key) {
                let name = String::from_utf8_lossy(key);
                let told = |side: Option<&Vec<Vec<u8>>>| {
                    side.map(|held| {
                        held.iter().map(|item| item.escape_ascii().to_string()).collect::<Vec<_>>()
                    })
                };
                return Err(TestCaseError::fail(format!(
                    "{operation} {args}\n{name}\ndirect: {:?}\nusual:  {:?}",
                    told(left.get(key)),
                    told(right.get(key))
                )));
            }
        }
        Ok(())
    }

    /// A push whose job is shown in the answer leaves what any push leaves, and shows what a look shows.
    fn push_shown(
        &mut self,
        id: &str,
        part: &str,
        mut args: Json,
        text: &[u8],
    ) -> Result<(), TestCaseError> {
        args["whole"] = json!(true);
        let direct = self.direct.call("push", &args, Some(text));
        let usual = self.usual.call("push", &args, Some(text));
        if said(&direct) != said(&usual) {
            return Err(TestCaseError::fail(format!("{args}\n{direct:?}\n{usual:?}")));
        }
        self.are_alike("push", &args)?;
        let looked = self.direct.call("get_job", &json!({"id": id, "b": part}), None);
        let (pushed, shown) = (said(&direct), said(&looked));
        let (Ok((pushed, blobs)), Ok((shown, found))) = (&pushed, &shown) else {
            return Err(TestCaseError::fail(format!("{args}\n{direct:?}\n{looked:?}")));
        };
        let (stored, job) = (&pushed["r"]["stored"], &shown["r"]);
        let life = blob(blobs, &stored["lives"][0]);
        // Whoever has been granted no lease waits, and the answer says how.
        let waits = life.is_none().then_some(&stored["state"]);
        let is_known = pushed["r"]["known"] == json!(true);
        if !is_known
            && (waits.is_some_and(|state| *state != job[1]) || life != blob(found, &job[3]))
        {
            return Err(TestCaseError::fail(format!("{args}\n{pushed}\n{shown}")));
        }
        self.hear()
    }

    /// Takes what a reply grants.
    fn granted(&mut self, reply: &Json, parts: &[Vec<u8>]) {
        for run in reply["runs"].as_array().into_iter().flatten() {
            let (many, at) = (run[1][4].as_u64().unwrap_or(0), run[1][5].as_u64().unwrap_or(0));
            let names = &parts[at as usize];
            let number =
                |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
            if names.len() == 21 {
                let (fence, seq) = (number(&names[..8]), number(&names[8..14]));
                self.held.extend((0..many).map(|n| (fence + n, seq + n)));
            } else {
                self.held.extend(
                    names.chunks_exact(14).map(|name| (number(&name[..8]), number(&name[8..]))),
                );
            }
        }
        for lease in reply["leases"].as_array().into_iter().flatten() {
            let name = (lease[0].as_u64().unwrap_or(0), lease[1].as_u64().unwrap_or(0));
            if !self.held.contains(&name) {
                self.held.push_back(name);
            }
        }
    }

    /// Compares the messages, and takes what they bring.
    fn hear(&mut self) -> Result<(), TestCaseError> {
        for (at, process) in PROCESSES.iter().enumerate() {
            let (one, other) = (self.direct.heard(process), self.usual.heard(process));
            if one != other {
                return Err(TestCaseError::fail(format!(
                    "messages\ndirect: {one:?}\nusual:  {other:?}"
                )));
            }
            for message in one {
                let end = message.iter().position(|byte| *byte == b'\n').unwrap_or(message.len());
                let head = String::from_utf8_lossy(&message[..end]).into_owned();
                let call = head.rsplit(' ').next().unwrap_or_default().to_owned();
                self.waits.retain(|(taker, _)| *taker != call);
                let Some((number, _)) =
                    head.strip_prefix('+').and_then(|rest| rest.split_once(' '))
                else {
                    continue;
                };
                self.parcels += 1;
                self.read[at] = number.parse().expect("the number of a parcel");
                let (mut parts, mut rest) = (Vec::new(), &message[end + 1..]);
                while let Some((length, after)) = rest.split_first_chunk::<4>() {
                    let length = u32::from_be_bytes(*length) as usize;
                    parts.push(after[..length].to_vec());
                    rest = &after[length..];
                }
                if let Some(header) = parts.first() {
                    let reply = header_of(header)["r"].clone();
                    self.granted(&reply, &parts);
                }
            }
        }
        Ok(())
    }

    fn asks(&mut self, asked: &Asked) -> Json {
        self.calls += 1;
        let proc = PROCESSES[usize::from(asked.proc)];
        let taker = format!("{proc}:{}", self.calls);
        let request =
            asked.shared.map_or_else(|| taker.clone(), |shared| format!("shared{shared}"));
        let queues = if asked.both { json!(["q", "r"]) } else { json!(["q"]) };
        let worker = asked
            .worker
            .map_or_else(|| json!({}), |worker| json!({"id": format!("w{worker}"), "pid": 7}));
        if asked.waits {
            self.waits.push((taker.clone(), request.clone()));
        }
        json!({
            "queues": queues, "max": asked.max, "wait": if asked.waits { 20_000_000 } else { 0 },
            "ttl": 30_000_000, "worker": worker, "taker": taker, "proc": proc,
            "read": self.read[usize::from(asked.proc)], "rq": request,
        })
    }

    fn push(&mut self, other: bool, many: u8, odd: Odd) -> Result<(), TestCaseError> {
        let mut spec = json!({"q": if other { "r" } else { "q" }});
        match odd {
            Odd::Priority => spec["pr"] = json!(1),
            Odd::Group => spec["g"] = json!("a"),
            Odd::Limit => spec["needs"] = json!([["l", "site:1", 1, 1]]),
            Odd::Timeout => spec["timeout"] = json!(60_000_000),
            Odd::GoesAtOnce => spec["retain"] = json!(0),
            Odd::KeptShortly => spec["retain"] = json!(1_000_000),
            Odd::Nothing | Odd::Delayed | Odd::At | Odd::Key | Odd::DelayedKey | Odd::Known => {}
        }
        let retry = json!([20, 3, "e", 1_000_000, 3_600_000_000_u64, true]);
        let mut ids = Vec::new();
        for _ in 0..many {
            self.jobs += 1;
            let number = if odd == Odd::Known { self.jobs / 2 } else { self.jobs };
            ids.push((format!("j{number:04}"), (number % 256).to_string()));
        }
        let body = "kind\n{\"n\":1}";
        // Few keys, so that some are held.
        let key = format!("k{}", self.jobs * 7 % 5);
        let until = if self.jobs.is_multiple_of(11) { "s" } else { "e" };
        let conflict = ["k", "x", "r"][self.jobs as usize % 3];
        let unique = json!([key, until, false, conflict]);
        let more = match odd {
            Odd::Delayed => json!({"dl": 1_000_000}),
            Odd::At => json!({"at": self.now + [0, 1, 5_000_000][self.jobs as usize % 3]}),
            Odd::Key => json!({"u": unique}),
            Odd::DelayedKey => json!({"u": unique, "dl": 1_000_000}),
            _ => Json::Null,
        };
        if let ([(id, part)], true) = (ids.as_slice(), more.is_null()) {
            let text = format!("{id}\n{part}\n\n{body}");
            let index = [(text.len() as u32).to_be_bytes(), 100_u32.to_be_bytes()].concat();
            let args =
                json!({"spec": spec, "blocks": [[[id], [part, 1]]], "dr": retry, "fresh": false});
            let text = [&index, text.as_bytes()].concat();
            if self.jobs.is_multiple_of(3) {
                return self.push_shown(id, part, args, &text);
            }
            return self.both("push", args, Some(&text));
        }
        let jobs: Vec<Json> = ids
            .iter()
            .map(|(id, part)| match &more {
                Json::Null => json!([id, part, body, 100, 1]),
                more => json!([id, part, body, 100, 1, more]),
            })
            .collect();
        let whole = self.jobs.is_multiple_of(3);
        let args = json!({"shapes": [spec], "jobs": jobs, "dr": retry, "whole": whole});
        self.both("push", args, None)
    }

    /// One of the leases that are held.
    fn lease(&mut self, which: u8, forgets: bool) -> Option<(u64, u64)> {
        let at = usize::from(which) % self.held.len().max(1);
        if forgets { self.held.remove(at) } else { self.held.get(at).copied() }
    }

    pub fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Pass(ms) => {
                self.now += u64::from(*ms) * 1_000;
                self.set_clock();
                Ok(())
            }
            Step::Push { other, many, odd } => self.push(*other, *many, *odd),
            Step::Lease(asked) => {
                let mut args = self.asks(asked);
                args["kn"] = self.knows();
                self.both("lease", args, None)
            }
            Step::SettleAndLease(asked, many, result) => {
                let mut leases: Vec<_> = (0..*many).filter_map(|_| self.lease(0, true)).collect();
                leases.sort_unstable();
                let runs: Vec<u64> =
                    leases.iter().flat_map(|(fence, seq)| [*fence, *seq, 1]).collect();
                let mut settle = json!({"runs": runs, "ordered": true});
                if *result && !leases.is_empty() {
                    settle["results"] = json!(["{\"ok\":1}"]);
                }
                let lease = self.asks(asked);
                let args = json!({"settle": settle, "lease": lease, "kn": self.knows()});
                self.both("settle_and_lease", args, None)
            }
            Step::Settle { which, result, forgets } => {
                let Some((fence, seq)) = self.lease(*which, *forgets) else { return Ok(()) };
                let mut args =
                    json!({"runs": [fence, seq, 1], "ordered": true, "kn": self.knows()});
                if *result {
                    args["results"] = json!(["{\"ok\":1}"]);
                }
                self.both("settle", args, None)
            }
            Step::End { which, outcome } => {
                let Some((fence, seq)) = self.lease(*which, true) else { return Ok(()) };
                let outcome = ["F", "R", "Z"][usize::from(*outcome)];
                let item =
                    json!({"f": fence, "s": seq, "o": outcome, "error": "x", "for": 1_000_000});
                let args = json!({"items": [item], "shapes": [], "kn": self.knows()});
                self.both("settle", args, None)
            }
            Step::Drop(which) => {
                if self.waits.is_empty() {
                    return Ok(());
                }
                let (taker, request) = self.waits.remove(usize::from(*which) % self.waits.len());
                self.both("drop_wait", json!({"taker": taker, "rq": request}), None)
            }
            Step::Tick(proc) => {
                let proc = usize::from(*proc);
                let args = json!({
                    "waiters": 1, "sight": [BEGIN, self.now], "proc": PROCESSES[proc],
                    "read": self.read[proc], "kn": self.knows(),
                });
                self.both("tick", args, None)
            }
            Step::Limit(cap) => {
                let name = ["queue:q", "site:*"][usize::from(*cap % 2)];
                self.both("put_limit", json!({"name": name, "concurrency": cap + 1}), None)
            }
            Step::DeleteQueue => self.both("delete_queue", json!({"name": "r"}), None),
            Step::Learn => {
                let args = json!({"leases": [], "kn": [false, "lost", 2_000_000, self.stamp, 0]});
                self.both("extend", args, None)
            }
            Step::Extend(which) => {
                let Some((fence, seq)) = self.lease(*which, false) else { return Ok(()) };
                self.both("extend", json!({"leases": [[fence, seq]], "kn": self.knows()}), None)
            }
        }
    }
}

fn header_of(bytes: &[u8]) -> Json {
    rmp_serde::from_slice(bytes).unwrap_or(Json::Null)
}
