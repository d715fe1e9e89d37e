//! Tenure hands out scarce work: a job that must run once, a slot under a cap, a call under a rate,
//! an account or a key that only a few may use at once, a lock.
//!
//! This crate is what a Rust program imports. A [`Client`] comes from an address ([`Client::connect`]), and most of its
//! calls read like sentences: [`Client::push`], [`Client::schedule`], [`Client::limit`]. A [`Worker`] takes jobs and runs a
//! handler for each, mostly [`Handlers`] for [`tasks`] of a type. [`Client::acquire`] and [`Client::lock`] hold needs alone,
//! with a guard that carries the fence.
//!
//! | feature | opens |
//! | --- | --- |
//! | `http` (default) | a server: `http://`, `https://`, `tenure://` |
//! | `redis` | a Redis or Valkey, without a server between |
//! | `embedded` | `file:PATH` and `memory:`, in this process |
//! | `testing` | the module `testing`: a store in memory whose clock a test moves |
//! | `jiff`, `chrono` | a [`Moment`] converts from and to those of jiff 1 and chrono 0.4 |
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
//! let worker = client.worker(["crawl"]).concurrency(4);
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
//! A job runs at least once, and at most one holder at a time has its lease. Two things are not promised. A handler
//! that blocks its thread cannot be stopped from here. Work that goes on after its lease was lost may overlap with the
//! next run: hand the [`Job::fence`] to the store that you write to, and let it refuse lower ones. Locks are not
//! re-entrant: a holder that asks again while it holds can deadlock, so such a call should have a time limit
//! ([`Lock::acquire_within`]).
//!
//! This crate must never decide a grant, nor know a key of Redis or a table of SQL: it builds requests and returns the
//! engine's answers, from this process or from a server.

#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

/// Compiles the Rust of the crate's page and of the guides with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../docs/guides/rust.md")]
#[doc = include_str!("../../../docs/guides/encrypted-payloads.md")]
#[doc = include_str!("../../../docs/guides/waiting-for-results.md")]
#[doc = include_str!("../../../docs/guides/watching.md")]
struct Pages;

mod asking;
mod await_end;
mod backoff;
#[doc(hidden)]
pub mod call_off;
mod client;
mod codec;
mod connect;
mod events;
mod flows;
#[cfg(feature = "http")]
#[doc(hidden)]
pub mod gauges;
#[doc(hidden)]
pub mod ids;
#[doc(hidden)]
pub mod keeper;
#[doc(hidden)]
pub mod lease_clock;
mod lock;
mod need;
mod observer;
mod opened;
mod outcome;
mod push;
#[cfg(feature = "http")]
#[doc(hidden)]
pub mod remote;
#[doc(hidden)]
pub mod repeat;
mod sealing;
mod spans;
mod spoken;
pub mod tasks;
#[cfg(feature = "testing")]
pub mod testing;
#[doc(hidden)]
pub mod token_bounds;
#[doc(hidden)]
pub mod until_empty;
#[doc(hidden)]
pub mod url;
mod worker;

pub use self::client::{Client, NotAJob};
pub use self::codec::{Codec, CodecError, ValuePart, ValuePlace};
pub use self::connect::{Connect, ConnectError};
pub use self::events::{EventReader, Told};
pub use self::flows::Flow;
#[cfg(feature = "http")]
pub use self::gauges::read_gauges;
#[doc(hidden)]
pub use self::keeper::Keeper;
pub use self::keeper::{Held, Stop};
pub use self::lock::{Acquire, Lock, LockError, LockEvent, LockGuard};
pub use self::need::Need;
pub use self::outcome::SettleOutcome;
pub use self::push::Pushing;
#[cfg(feature = "http")]
pub use self::remote::{Remote, RemoteError};
#[doc(hidden)]
pub use self::repeat::Repeat;
pub use self::spoken::gauge::Gauge;
pub use self::spoken::limit::Limit;
pub use self::spoken::pool::{Pool, PoolItem, SyncPool};
pub use self::spoken::queue::Queue;
pub use self::spoken::retry::Retry;
pub use self::spoken::schedule::{Schedule, SchedulesOf, SetSchedule, SyncOwner};
pub use self::spoken::stored_job::{NoValue, StoredJob};
pub use self::spoken::unique::Unique;
pub use self::spoken::{ByName, WithSettings};
pub use self::tasks::{Handlers, Task, TaskError};
pub use self::url::{ServerUrl, StoreUrl, UrlError};
pub use self::worker::{
    DRAIN_TIMEOUT, Event, Execute, Executed, Job, NotSettled, Order, Stopper, WorkError, Worked,
    Worker,
};

/// The whole vocabulary. The part that programs need is exported below; the rest is for Tenure's own crates, and
/// changes with them.
#[doc(hidden)]
pub use tenure_core as core;
pub use tenure_core::events::{EventFilter, EventId, EventType, Gap, GapWhy, Happened};
pub use tenure_core::flow::{
    After, ChildView, FlowState, FlowView, OnParentFailure, Parent, ParentView,
};
pub use tenure_core::job::{JobState, JobView, NewJob, ResultView, When};
pub use tenure_core::lease::{
    Explained, Fence, Later, LeaseView, Leased, LeasedResource, Reason, Verdict,
};
pub use tenure_core::names::{
    FlowName, JobId, JobRef, LimitName, Namespace, Owner, PoolName, QueueName, Ref, ResourceId,
    ScheduleId,
};
pub use tenure_core::refusal::{Code, Refusal};
/// Requests to an engine, one for each call of the contract, for [`Client::run`].
pub use tenure_core::requests;
pub use tenure_core::schedule::{
    CatchUp, Overlap, ScheduleSettings, ScheduleView, ScheduledJob, TimingSpec,
};
pub use tenure_core::secret::{Json, NotJson, Secret};
pub use tenure_core::settings::{
    LimitView, Pick, PoolView, QueueView, Rate, ResourceState, ResourceView, Synced,
};
pub use tenure_core::time::{Moment, Span, TimeError};
pub use tenure_engine_api::{CallError, Engine, EngineExt, Fault};
