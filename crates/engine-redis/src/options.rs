//! What an engine is opened with.

use std::time::Duration;

use tenure_core::time::Span;

use crate::encode::SpaceArg;
use crate::library::Library;
use crate::link::{Address, LinkOptions};

/// How long a test waits for a server that stalls.
const STALL_MAX: Duration = Duration::from_secs(10);

/// By which clock the server decides, and who makes time pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Time {
    /// The server's own clock; the engine ticks at the due moments. What users run.
    #[default]
    Server,
    /// A key of each namespace, which the test sets; the engine ticks when something is due by it.
    /// Only for tests: the functions have other names, and a store that was used by the one is never
    /// used by the other.
    Testing,
    /// As [`Time::Testing`], and the engine ticks only when it is told to.
    TestingByHand,
}

/// What an engine is opened with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the servers are, and what every key begins with.
    pub address: Address,
    /// How it is connected. Its library is chosen by `time`.
    pub link: LinkOptions,
    /// By which clock it runs.
    pub time: Time,
    /// Whether this store never forgets a write that it answered: every write is synced
    /// (`appendfsync always`), and no replica ever takes the primary's place. Without it a namespace
    /// grants nothing exclusive, after another run of a server took it over, for as long as the
    /// longest ttl that it granted. Starts as the address says it ([`Address::forgets_never`]).
    pub forgets_never: bool,
    /// How long a job may be blocked before it reserves what it needs, in all namespaces that are used
    /// here. Who says it last has a say for all who use the store; `None`: as it is there, at first 10 s.
    pub patience: Option<Span>,
    /// How many bytes the finished jobs of a namespace may take, by its payloads and results; said as
    /// `patience` is. At first 1 GiB.
    pub retain_bytes: Option<u64>,
    /// How many bytes the events of a namespace may take; 0: none are kept. Said as `patience` is. At first 16 MiB.
    pub events_bytes: Option<u64>,
}

impl Options {
    /// The defaults for an address: the server's clock.
    pub fn new(address: Address) -> Self {
        let forgets_never = address.forgets_never();
        Options {
            address,
            link: LinkOptions::default(),
            time: Time::Server,
            forgets_never,
            patience: None,
            retain_bytes: None,
            events_bytes: None,
        }
    }

    /// For tests that move the clock. They test rules, so a machine with other work, or a disk that stalls, takes no
    /// connection from them.
    pub fn testing(address: Address) -> Self {
        let link = LinkOptions {
            answer_within: STALL_MAX,
            connect_within: STALL_MAX,
            patience: STALL_MAX,
            ping_within: STALL_MAX,
            ..LinkOptions::default()
        };
        Options { time: Time::Testing, link, ..Options::new(address) }
    }

    /// What is said of the namespaces, if anything is.
    pub(crate) fn of_spaces(&self) -> Option<SpaceArg> {
        let Options { patience, retain_bytes, events_bytes, .. } = *self;
        let says = patience.is_some() || retain_bytes.is_some() || events_bytes.is_some();
        says.then_some(SpaceArg { patience, retain_bytes, events_bytes, first: true })
    }

    pub(crate) fn link(&self) -> LinkOptions {
        let library = match self.time {
            Time::Server => Library::release(),
            Time::Testing | Time::TestingByHand => Library::testing(),
        };
        LinkOptions { library, ..self.link.clone() }
    }
}
