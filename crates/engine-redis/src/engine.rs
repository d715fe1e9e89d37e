//! The engine itself: opened, asked, drained, closed.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tenure_core::gauge::Reading;
use tenure_core::names::Namespace;
use tenure_core::requests::Request;
use tenure_core::sentences::clock_behind;
use tenure_core::time::Span;
use tenure_engine::ids;
use tenure_engine::joining::{Joining, MakesCalls};
use tenure_engine::{
    CallError, CallFuture, Clock, Engine, GaugeFeed, Health, ReadingFuture, StoreWork,
};
use tokio::runtime::Handle;

use crate::answer::answer;
use crate::by_itself;
use crate::copy::RedisCopy;
use crate::encode::UndoArgs;
use crate::function::UNDO;
use crate::gauges;
use crate::link::{Link, OpenError};
use crate::options::{Options, Time};
use crate::shared::Shared;
use crate::waiting::{self, Space};

/// How long a test waits until what was given up is told.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

/// An engine over Redis or Valkey. Any number of processes may have one over the same servers; all
/// are equal. Dropping it ends its connections and its tasks; who waits for a lease is told that
/// nothing comes.
///
/// Calls may be made from any thread and any executor, as long as the runtime that it was opened in
/// runs.
pub struct RedisEngine {
    shared: Arc<Shared>,
    joining: Joining<Calling>,
}

/// Calls made by the engine itself, one by one.
#[derive(Clone)]
struct Calling(Arc<Shared>);

impl MakesCalls for Calling {
    fn make(&self, namespace: &Namespace, request: Request) -> CallFuture {
        Box::pin(answer(self.0.caller(namespace), request))
    }
}

impl RedisEngine {
    /// Begins to connect, and does not wait for it: calls are refused as unavailable as long as the
    /// servers are not there. Must be called inside of a tokio runtime.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let link = Link::open(options.address.clone(), options.link())?;
        let now = tenure_engine::Clock::now(&tenure_engine::SystemClock);
        let proc = ids::fresh("p_", now)?;
        let shared = Arc::new(Shared::new(link, proc, &options, runtime));
        if shared.time == Time::Server {
            shared.runtime.spawn(waiting::keep_looking(Arc::downgrade(&shared)));
            shared.runtime.spawn(by_itself::find(Arc::downgrade(&shared), shared.closing()));
        }
        let joining = Joining::new(Calling(shared.clone()));
        Ok(RedisEngine { shared, joining })
    }

    /// The link to the servers, for what is not about jobs: to look at them, to take a library out.
    pub fn link(&self) -> &Link {
        &self.shared.link
    }

    /// The store in the hands of a copy: see [`tenure_engine::copy`].
    pub fn copying(&self) -> RedisCopy {
        RedisCopy::new(self.shared.clone())
    }

    /// Leaves nothing of this process behind: calls that wait are answered with nothing, and those that
    /// were given up are taken out of the lines that they stood in, so that what frees is told to others
    /// at once. Returns when that is done, or after `within`; then signals and ticks end too. Only to be
    /// dropped afterwards.
    ///
    /// An engine that is dropped without this is found out: who is told of a job and does not take it
    /// costs the next one some 20 ms, a place in a line is kept for 5 s.
    pub async fn close(&self, within: Duration) {
        self.shared.drain();
        self.shared.quiet(within).await;
        self.shared.close();
    }

    /// Sets the clock of these namespaces, and this process's watch, to what `clock` shows, and returns when all that is due by it is
    /// done and all who were woken have asked again. Only for an engine that was opened for tests:
    /// any other refuses.
    pub async fn testing_set_clock(
        &self,
        clock: &dyn Clock,
        namespaces: &[Namespace],
    ) -> Result<(), CallError> {
        self.only_testing()?;
        waiting::set_clock(&self.shared, clock, namespaces).await
    }

    /// Sets this process's watch to what `clock` shows, and nothing else: the test sets the server's. Only for an engine
    /// that was opened for tests.
    pub fn testing_set_watch(&self, clock: &dyn Clock) -> Result<(), CallError> {
        self.only_testing()?;
        self.shared.set_moved(clock.now(), clock.monotonic());
        Ok(())
    }

    /// Returns when what was given up is told, nothing is due by the test's clock and all who were woken
    /// have asked again. Only for an engine that was opened for tests.
    pub async fn testing_settle(&self, namespace: &Namespace) -> Result<(), CallError> {
        self.only_testing()?;
        // What was given up is told without anybody waiting for it.
        self.shared.quiet(TOLD_WITHIN).await;
        waiting::settle_all(&self.shared.caller(namespace)).await
    }

    /// Ticks once; whether something is due still. Only for an engine that was opened for tests.
    pub async fn testing_tick(&self, namespace: &Namespace) -> Result<bool, CallError> {
        self.only_testing()?;
        waiting::tick(&self.shared.caller(namespace)).await
    }

    /// Which namespace recovers, and for how long, if one does.
    fn recovery(&self) -> Option<String> {
        let spaces = self.shared.spaces();
        let recovering =
            spaces.iter().filter_map(|space| Some((space.known.recovers_for()?, space)));
        let (left, space) = recovering.max_by_key(|(left, _)| *left)?;
        let left = Span::from_s(left.as_secs() + 1);
        Some(format!(
            "redis was started anew or replaced and may have forgotten its last writes: in namespace \
             {:?} nothing exclusive is granted for another {left}, while holders claim what they hold",
            space.name.as_str()
        ))
    }

    fn only_testing(&self) -> Result<(), CallError> {
        match self.shared.time {
            Time::Testing | Time::TestingByHand => Ok(()),
            Time::Server => {
                let why = "the clock of this engine is the server's: open it for tests to move it";
                Err(tenure_engine::Fault::Unavailable(why.to_owned()).into())
            }
        }
    }
}

impl Engine for RedisEngine {
    fn call(&self, namespace: &Namespace, request: Request) -> CallFuture {
        let runtime = self.shared.runtime.clone();
        Box::pin(InRuntime { runtime, call: self.joining.call(namespace, request) })
    }

    fn health(&self) -> Health {
        let behind = self.shared.spaces().iter().filter_map(|space| space.timer.behind()).max();
        let degraded = match (self.shared.link.down(), behind) {
            (Some(why), _) => Some(why.to_string()),
            (None, Some(us)) => Some(clock_behind("the clock of redis", Span::from_us(us))),
            (None, None) => None,
        };
        Health { degraded, store: "redis" }
    }

    fn notice(&self) -> Option<String> {
        let clock = || self.shared.last_leap.notice("the clock of redis");
        let channels = self.shared.link.channels();
        let notices = [
            self.recovery().or_else(clock),
            self.shared.denied.notice(channels),
            self.shared.signals.refused(channels),
        ];
        let notices: Vec<String> = notices.into_iter().flatten().collect();
        (!notices.is_empty()).then(|| notices.join("; "))
    }

    fn store_work(&self) -> StoreWork {
        let recovers = |space: Arc<Space>| space.known.recovers_for();
        StoreWork {
            calls: self.shared.times.seen(),
            failed: self.shared.failed.seen(),
            recovers_for: self
                .shared
                .spaces()
                .into_iter()
                .filter_map(recovers)
                .max()
                .or(Some(Duration::ZERO)),
            ..StoreWork::default()
        }
    }

    fn undo(&self, namespace: &Namespace, leases: Vec<String>) {
        let args = UndoArgs::of(&leases);
        if args.leases.is_empty() {
            return;
        }
        let (caller, owing) = (self.shared.caller(namespace), self.shared.owing());
        self.shared.runtime.spawn(async move {
            let _owing = owing;
            // A hint: the leases end with their ttl if it is lost.
            let _ = caller.reply::<serde::de::IgnoredAny>(UNDO, &args).await;
        });
    }

    fn gauges(&self) -> Option<GaugeFeed> {
        let feed = self.shared.gauge_readers.add(&self.shared.proc);
        // Somebody may wait for one to be read: ticks tell from now on that this process reads.
        for space in self.shared.spaces() {
            space.timer.look();
        }
        Some(feed)
    }

    fn answer_gauge(&self, namespace: &Namespace, reading: Reading) -> ReadingFuture {
        let runtime = self.shared.runtime.clone();
        let call = Box::pin(gauges::answer(self.shared.caller(namespace), reading));
        Box::pin(InRuntime { runtime, call })
    }

    fn drain(&self) {
        self.shared.drain();
    }
}

impl Drop for RedisEngine {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl fmt::Debug for RedisEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisEngine").field("link", &self.shared.link).finish_non_exhaustive()
    }
}

/// A call that finds the engine's runtime around it, whoever polls it.
struct InRuntime<T> {
    runtime: Handle,
    call: Pin<Box<dyn Future<Output = T> + Send>>,
}

impl<T> Future for InRuntime<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let _inside = this.runtime.enter();
        this.call.as_mut().poll(cx)
    }
}
