//! An engine in memory whose time is moved by a test.
//!
//! Jobs, leases, schedules and limits live in the time of its clock. The wait of a call is also
//! measured in real time, since a waiting caller is a real process: a clock that stands still must not hold
//! it forever.

use std::fmt;
use std::sync::Arc;

use tenure_core::access::TokenName;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{GetFlow, GetResult, Lease, ReadEvents, Request, Settle};
use tenure_core::sentences::ValueRefusal;
use tenure_core::time::{Moment, Span};
use tenure_engine_api::{
    AroundEngine, CallFuture, Clock, Engine, MovedFuture, MovedTime, TestClock,
};

use crate::engine::Embedded;
use crate::error::OpenError;
use crate::options::{Location, Options};

/// The sentence for an operator who meets such an engine by accident.
const NOTICE: &str = "the clock of this store stands still until a test moves it";

/// An engine in memory on a test clock. Its calls need a tokio runtime with a timer.
pub struct MovedEngine {
    engine: Arc<Embedded>,
    clock: Arc<TestClock>,
}

impl MovedEngine {
    /// Opens a store in memory whose time is `start`. The location and the clock of `options` are not used.
    pub fn open(start: Moment, options: Options) -> Result<Self, OpenError> {
        let clock = Arc::new(TestClock::at(start));
        let options = Options { location: Location::Memory, clock: clock.clone(), ..options };
        Ok(MovedEngine { engine: Arc::new(Embedded::open(options)?), clock })
    }

    /// Closes it, as [`Embedded::close`].
    pub fn close(&self) {
        self.engine.close();
    }
}

impl MovedTime for MovedEngine {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn advance(&self, span: Span) -> MovedFuture {
        let (engine, clock) = (self.engine.clone(), self.clock.clone());
        Box::pin(async move {
            let to = clock.now().plus(span);
            if to > Moment::LAST {
                let no = Refusal::from(ValueRefusal::MomentTooFar { shown: to.to_string() });
                return Err(no.at("/advance").into());
            }
            engine.pass_time(&clock, span).await?;
            Ok(clock.now())
        })
    }
}

/// The field with the wait of a request that may wait.
fn wait_of(request: &mut Request) -> Option<&mut Span> {
    match request {
        Request::Lease(Lease { wait, .. })
        | Request::GetResult(GetResult { wait, .. })
        | Request::GetFlow(GetFlow { wait, .. })
        | Request::ReadEvents(ReadEvents { wait, .. }) => Some(wait),
        Request::Settle(Settle { lease: Some(lease), .. }) => Some(&mut lease.wait),
        _ => None,
    }
    .filter(|wait| **wait > Span::ZERO)
}

impl AroundEngine for MovedEngine {
    fn inner(&self) -> &dyn Engine {
        &*self.engine
    }

    fn call_around(
        &self,
        by: Option<&TokenName>,
        namespace: &Namespace,
        request: Request,
    ) -> CallFuture {
        let mut at_once = request.clone();
        let Some(wait) = wait_of(&mut at_once).map(std::mem::take) else {
            return self.engine.call_by(by, namespace, request);
        };
        let (engine, namespace) = (self.engine.clone(), namespace.clone());
        let waiting = engine.call(&namespace, request);
        Box::pin(async move {
            match tokio::time::timeout(wait.std(), waiting).await {
                Ok(answer) => answer,
                // The same call without a wait: grants to the dropped call are undone, and settles
                // are known by their leases.
                Err(_) => engine.call(&namespace, at_once).await,
            }
        })
    }

    fn notice_around(&self) -> Option<String> {
        self.engine.notice().or_else(|| Some(NOTICE.to_owned()))
    }
}

impl fmt::Debug for MovedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MovedEngine").field("clock", &self.clock).finish_non_exhaustive()
    }
}
