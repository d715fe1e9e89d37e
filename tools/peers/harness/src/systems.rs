//! Systems: how each is obtained, what it supports, and where it is measured differently.

/// The source of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Got {
    /// A program on Node, with packages from npm; ours is built from this tree.
    Node {
        /// Its file in `node/`, without `.mjs`, and its package.
        name: &'static str,
    },
    /// A program on Python, with packages from PyPI.
    Python {
        /// Its folder in `python/`.
        name: &'static str,
        /// Its package in `requirements.txt`; empty for ours.
        package: &'static str,
    },
    /// A program of this folder's cargo workspace.
    Cargo {
        /// The package of the program.
        package: &'static str,
        /// The measured crate; its version is in the lock. Empty: a server in front is measured.
        of: &'static str,
    },
}

/// A server that programs connect to in place of Redis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Front {
    /// `tenure serve` on the Redis of the measurement.
    TenureOnRedis,
    /// `tenure serve` on a folder.
    TenureOnFolder,
    /// beanstalkd, which syncs its log at every write.
    Beanstalkd,
}

/// A system to be measured.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// The name for `--only`.
    pub name: &'static str,
    /// The title in the table.
    pub title: &'static str,
    pub got: Got,
    /// The workloads that it supports.
    pub can: &'static [&'static str],
    /// The variant to run, for programs that have several.
    pub way: &'static str,
    /// Another variant for bulk pushes; the faster one counts.
    pub push_too: &'static str,
    /// Jobs of a drain, if it cannot handle more.
    pub drain_max: u64,
    /// Jobs at once in a drain: the fastest number.
    pub concurrency: u64,
    /// Delayed jobs, if it cannot handle more in reasonable time.
    pub delayed_max: u64,
    /// Whether one program pushes and handles when latency is measured, as its server is in it.
    pub one_program: bool,
    /// The server that the program connects to, if that is not Redis.
    pub front: Option<Front>,
    /// A note for the reader of the table.
    pub note: &'static str,
}

impl System {
    /// Whether the Redis of the measurement has its jobs.
    pub fn is_on_redis(&self) -> bool {
        match self.front {
            Some(Front::TenureOnFolder | Front::Beanstalkd) => false,
            Some(Front::TenureOnRedis) => true,
            None => !self.way.ends_with("folder"),
        }
    }
}

const BASIC: &[&str] = &["bulk", "single", "latency", "delayed"];
const LIMITS: &[&str] = &["bulk", "single", "latency", "delayed", "keyed", "blocked"];
/// The workloads that compare Python's task queues. Most have neither bulk pushes nor limits.
const PYTHON: &[&str] = &["noop", "io", "quiet"];
const MANY: u64 = u64::MAX;

const PLAIN: System = System {
    name: "",
    title: "",
    got: Got::Cargo { package: "peer-tenure", of: "tenure-server" },
    can: LIMITS,
    way: "",
    push_too: "",
    drain_max: MANY,
    concurrency: 100,
    delayed_max: MANY,
    one_program: false,
    front: None,
    note: "",
};

const TENURE_PYTHON: System =
    System { got: Got::Python { name: "tenure", package: "" }, can: PYTHON, ..PLAIN };

/// All systems, in the order of the table.
pub const SYSTEMS: &[System] = &[
    System {
        name: "tenure",
        title: "Tenure, `tenure::Worker` with a server in the program",
        can: &["bulk", "single", "latency", "delayed", "keyed", "three", "blocked"],
        one_program: true,
        note: "Finished jobs are kept for an hour, the default. Heartbeats, handlers as tasks, panics caught. Latency: the \
               program that handles also pushes; of all others one pushes and another handles.",
        ..PLAIN
    },
    System {
        name: "tenure-pipelined",
        title: "Tenure, own loop",
        can: &["bulk", "latency", "delayed", "keyed", "three", "blocked", "lifecycle"],
        way: "pipelined",
        note: "A loop on the engine's calls that leases ahead while others are handled and \
               settled; no heartbeats.",
        ..PLAIN
    },
    System {
        name: "tenure-http",
        title: "Tenure, `tenure::Worker` over HTTP",
        can: &["bulk", "single", "latency", "delayed", "keyed", "three", "blocked"],
        way: "http",
        front: Some(Front::TenureOnRedis),
        note: "A `tenure serve` owns the store in Redis; its processor time is apart, and not in the worker's.",
        ..PLAIN
    },
    System {
        name: "tenure-folder",
        title: "Tenure, `tenure::Worker` with a server in the program, folder",
        // One process opens a folder at a time, so none can push while another handles.
        can: &["bulk", "single", "latency", "keyed", "three", "blocked", "lifecycle"],
        way: "folder",
        one_program: true,
        note: "Every change is on the disk before it is answered, the default.",
        ..PLAIN
    },
    System {
        name: "tenure-folder-http",
        title: "Tenure, `tenure::Worker` over HTTP, folder",
        can: &["bulk", "single", "latency", "delayed", "keyed", "three", "blocked"],
        way: "http",
        front: Some(Front::TenureOnFolder),
        note: "The same; the processor time of the `tenure serve` is apart, and not in the worker's.",
        ..PLAIN
    },
    System {
        name: "beanstalkd",
        title: "beanstalkd, synced",
        got: Got::Cargo { package: "peer-beanstalkd", of: "" },
        can: BASIC,
        front: Some(Front::Beanstalkd),
        note: "`-b` with `-f 0`: every change is on the disk before it is answered. It has no bulk call: 1,000 puts are \
               written at once, and then their answers read. Delays are cut to whole seconds, so jobs run early.",
        ..PLAIN
    },
    System {
        name: "tenure-node",
        title: "Tenure (Node) over HTTP",
        got: Got::Node { name: "tenure" },
        can: BASIC,
        front: Some(Front::TenureOnRedis),
        note: "The TypeScript package; its server as for `tenure::Worker` over HTTP.",
        ..PLAIN
    },
    System {
        name: "bullmq",
        title: "BullMQ (Node)",
        got: Got::Node { name: "bullmq" },
        can: BASIC,
        push_too: "bulk",
        note: "Push: the faster of 64 add() in flight and addBulk of 1,000. Groups are not in the free version.",
        ..PLAIN
    },
    System {
        name: "bee-queue",
        title: "bee-queue (Node)",
        got: Got::Node { name: "bee-queue" },
        can: BASIC,
        ..PLAIN
    },
    System {
        name: "rusty-sidekiq",
        title: "rusty-sidekiq",
        got: Got::Cargo { package: "peer-rusty-sidekiq", of: "rusty-sidekiq" },
        can: BASIC,
        delayed_max: 50,
        note: "At most once: a job in flight is lost with its worker. Push: 64 at once, it has no \
               bulk call. Delayed: 50 jobs, since it starts at most 10 per 5 s.",
        ..PLAIN
    },
    System {
        name: "oxana",
        title: "oxana",
        got: Got::Cargo { package: "peer-oxana", of: "oxana" },
        can: LIMITS,
        concurrency: 10,
        note: "Drained 10 at once, which is faster than 100. For latency and lateness it \
               looks for jobs every 5 ms, not every 10 s. A limit is a queue for each key.",
        ..PLAIN
    },
    System {
        name: "apalis-redis",
        title: "apalis-redis",
        got: Got::Cargo { package: "peer-apalis-redis", of: "apalis-redis" },
        can: BASIC,
        drain_max: 7_000,
        note: "7,000 jobs drained: above 8,000 due ones its worker ends with an error. It looks for \
               jobs every 10 ms; delays are cut to whole seconds, so jobs run early.",
        ..PLAIN
    },
    System {
        name: "bullmq-official",
        title: "BullMQ (Rust crate)",
        got: Got::Cargo { package: "peer-bullmq-official", of: "bullmq-official" },
        can: BASIC,
        note: "add_bulk of 1,000 jobs, 4 calls in flight.",
        ..PLAIN
    },
    System {
        name: "tenure-py-threads",
        title: "Tenure, 8 threads",
        way: "threads",
        concurrency: 8,
        note: "Over HTTP to a `tenure serve` on the Redis of the run, whose processor time is not in the \
               worker's. At least once, with heartbeats.",
        ..TENURE_PYTHON
    },
    System {
        name: "tenure-py-threads-folder",
        title: "Tenure, 8 threads, folder",
        way: "threads-folder",
        concurrency: 8,
        note: "Every outcome is on the disk before it is answered.",
        ..TENURE_PYTHON
    },
    System {
        name: "celery-threads",
        title: "Celery, 8 threads",
        got: Got::Python { name: "celery", package: "celery" },
        can: PYTHON,
        way: "threads",
        concurrency: 8,
        note: "No results and events, 64 messages ahead for each thread. Jobs are acknowledged before they \
               run, its default: one in flight is lost with its worker.",
        ..PLAIN
    },
    System {
        name: "dramatiq-threads",
        title: "dramatiq, 8 threads",
        got: Got::Python { name: "dramatiq", package: "dramatiq" },
        can: PYTHON,
        way: "threads",
        concurrency: 8,
        note: "128 messages ahead for each process.",
        ..PLAIN
    },
    System {
        name: "tenure-py-asyncio",
        title: "Tenure, asyncio, 100 at once",
        way: "asyncio",
        ..TENURE_PYTHON
    },
    System {
        name: "tenure-py-asyncio-folder",
        title: "Tenure, asyncio, 100 at once, folder",
        way: "asyncio-folder",
        ..TENURE_PYTHON
    },
    System {
        name: "arq",
        title: "arq, 100 at once",
        got: Got::Python { name: "arq", package: "arq" },
        can: PYTHON,
        drain_max: 5_000,
        note: "It looks for jobs every 5 ms, not every 500.",
        ..PLAIN
    },
    System {
        name: "tenure-py-processes",
        title: "Tenure, 4 processes",
        way: "processes",
        concurrency: 4,
        ..TENURE_PYTHON
    },
    System {
        name: "tenure-py-processes-folder",
        title: "Tenure, 4 processes, folder",
        way: "processes-folder",
        concurrency: 4,
        ..TENURE_PYTHON
    },
    System {
        name: "celery-prefork",
        title: "Celery, 4 processes",
        got: Got::Python { name: "celery", package: "celery" },
        can: PYTHON,
        way: "prefork",
        concurrency: 4,
        drain_max: 5_000,
        ..PLAIN
    },
    System {
        name: "dramatiq-processes",
        title: "dramatiq, 4 processes",
        got: Got::Python { name: "dramatiq", package: "dramatiq" },
        can: PYTHON,
        way: "processes",
        concurrency: 4,
        note: "One thread in each process.",
        ..PLAIN
    },
    System {
        name: "rq-simple",
        title: "RQ, 4 simple workers",
        got: Got::Python { name: "rq", package: "rq" },
        can: PYTHON,
        way: "simple",
        concurrency: 4,
        drain_max: 2_000,
        note: "Jobs run in the worker's own process, and a job that hangs or crashes takes it along.",
        ..PLAIN
    },
    System {
        name: "rq-fork",
        title: "RQ, 4 workers",
        got: Got::Python { name: "rq", package: "rq" },
        can: PYTHON,
        way: "fork",
        concurrency: 4,
        drain_max: 300,
        note: "Its default: a process for each job.",
        ..PLAIN
    },
];
