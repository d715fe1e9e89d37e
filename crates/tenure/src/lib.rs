//! Tenure hands out scarce work: a job that must run once, a slot under a cap, a call under a rate,
//! an account or a key that only so many may use at once, a lock.
//!
//! This crate is what a Rust program imports. A [`Client`] is an engine and a namespace, from an address
//! ([`Client::connect`]); a [`Worker`] takes jobs and runs a handler for each; a [`Lock`] holds needs
//! alone, with a guard that carries the fence. All engines are asked through [`Engine`].
//!
//! Which engines there are is chosen by cargo features: `http` (a server, by default), `redis` (a Redis
//! or Valkey without a server between), `embedded` (a folder, or memory, in this process).
//! [`tasks`] has handlers for jobs of a type. The module `testing`, a feature of that name, has a store in memory whose clock
//! a test moves.
//!
//! ```no_run
//! use tenure::{Client, Job, SettleOutcome, Span};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("http://127.0.0.1:7171").await?;
//!
//! // Stored once, however often it is repeated on the way.
//! let pushed = client.push("crawl").payload(&["https://example.com/"])?.await?;
//! println!("{}", pushed.id);
//!
//! // One at a time in the whole fleet, for as long as this process lives and says so.
//! let guard = client.lock("deploy")?.acquire().await?;
//! println!("writing with fence {}", guard.fence());
//! guard.release().await?;
//!
//! // Four at once; heartbeats come from a thread that the handlers cannot block.
//! let worker = client.worker(vec!["crawl".parse()?]).concurrency(4);
//! let stopper = worker.stopper();
//! tokio::spawn(async move {
//!     // Wait for a signal here.
//!     stopper.drain();
//! });
//! worker
//!     .run(|job: Job| async move {
//!         let urls: Vec<String> = job.payload().map_err(|why| why.to_string())?;
//!         if urls.is_empty() {
//!             return Ok(SettleOutcome::snoozed(Span::from_s(30)));
//!         }
//!         Ok::<_, String>(SettleOutcome::succeeded_with(&urls.len()))
//!     })
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! What it promises: a job runs at least once, and at most one holder at a time has its lease. What
//! it does not: a handler that blocks its thread cannot be stopped from here, and work that goes on
//! after its lease was lost may overlap with the next run; hand the [`Job::fence`] to the store that
//! you write to, and let it refuse lower ones. Locks are not re-entrant: a holder that asks again
//! while it holds can deadlock, so such a call should wait for a time
//! ([`Lock::acquire_within`]).

/// The Rust of the README and of the guide is compiled with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/guides/rust.md")]
struct Pages;

mod asking;
mod await_end;
pub mod call_off;
mod client;
mod connect;
#[cfg(feature = "redis")]
mod driven_redis;
mod events;
mod flows;
#[cfg(feature = "http")]
pub mod gauges;
pub mod ids;
pub mod keeper;
mod lock;
mod need;
mod observer;
mod outcome;
mod push;
#[cfg(feature = "http")]
pub mod remote;
pub mod repeat;
mod set_limit;
mod spans;
pub mod tasks;
#[cfg(feature = "testing")]
pub mod testing;
pub mod until_empty;
pub mod url;
mod worker;

pub use self::client::Client;
pub use self::connect::{Connect, ConnectError};
pub use self::events::{EventReader, Told};
#[cfg(feature = "http")]
pub use self::gauges::read_gauges;
pub use self::keeper::{Held, Keeper, Stop};
pub use self::lock::{Acquire, Lock, LockError, LockEvent, LockGuard};
pub use self::need::Need;
pub use self::outcome::SettleOutcome;
pub use self::push::Pushing;
#[cfg(feature = "http")]
pub use self::remote::{Remote, RemoteError};
pub use self::repeat::Repeat;
pub use self::set_limit::SetLimit;
pub use self::tasks::{Handlers, Task, TaskError};
pub use self::url::{ServerUrl, StoreUrl, UrlError};
pub use self::worker::{
    DRAIN_TIMEOUT, Event, Execute, Executed, Job, NotSettled, Order, Stopper, WorkError, Worked,
    Worker,
};

pub use tenure_core as core;
pub use tenure_core::flow::{After, FlowView, OnParentFailure, Parent, ParentView};
pub use tenure_core::job::{JobView, NewJob, ResultView, When};
pub use tenure_core::lease::{Later, LeaseView, Verdict};
pub use tenure_core::names::{
    FlowName, JobId, JobRef, LimitName, Namespace, Owner, PoolName, QueueName, Ref, ResourceId,
    ScheduleId,
};
pub use tenure_core::refusal::{Code, Refusal};
pub use tenure_core::schedule::{ScheduleSettings, ScheduleView, ScheduledJob, TimingSpec};
pub use tenure_core::secret::{Json, Secret};
pub use tenure_core::time::{Moment, Span};
pub use tenure_engine::{CallError, Engine, EngineExt, Fault};
