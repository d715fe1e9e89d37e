//! Short calls on a bench: each has its expectation, and panics at the sentence's own line.

pub(crate) mod events;
pub(crate) mod flows;
pub(crate) mod gauges;
mod jobs;
mod leases;
pub(crate) mod schedules;
mod settings;
pub(crate) mod waits;

use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use tenure_core::names::Namespace;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::*;
use tenure_engine_api::{CallError, EngineExt};

use crate::bench::Bench;

/// Longest real time until the answer of a call that need not wait.
const PROMPT: Duration = Duration::from_secs(20);
/// Longest real time for the effect of many calls together, also on a machine with other work.
const EVENTUALLY: Duration = Duration::from_secs(60);
/// The pause between two looks at a state that has no event.
const LOOK: Duration = Duration::from_millis(2);

impl Bench {
    /// Any call, in any namespace; a call that is not answered at all fails the sentence.
    #[track_caller]
    pub(crate) fn call_in<O: Operation>(
        &self,
        namespace: &Namespace,
        request: O,
    ) -> impl Future<Output = Result<O::Reply, CallError>> + Send + use<O> {
        let at = Location::caller();
        let engine = self.engine();
        let namespace = namespace.clone();
        async move {
            let answer = tokio::time::timeout(PROMPT, engine.run(&namespace, request)).await;
            answer.unwrap_or_else(|_| panic!("{at}: {} was not answered", O::NAME))
        }
    }

    /// A call that must be answered.
    #[track_caller]
    pub(crate) fn ok<O: Operation>(
        &self,
        request: O,
    ) -> impl Future<Output = O::Reply> + Send + use<O> {
        let at = Location::caller();
        let call = self.call_in(&self.namespace, request);
        async move { call.await.unwrap_or_else(|no| panic!("{at}: {} failed: {no}", O::NAME)) }
    }

    /// A call that must be refused, with this code.
    #[track_caller]
    pub(crate) fn refused<O: Operation>(
        &self,
        code: Code,
        request: O,
    ) -> impl Future<Output = Refusal> + Send + use<O> {
        let at = Location::caller();
        let call = self.call_in(&self.namespace, request);
        async move {
            match call.await {
                Ok(_) => panic!("{at}: {} was answered, not refused as {code}", O::NAME),
                Err(CallError::Fault(fault)) => panic!("{at}: {}: {fault}", O::NAME),
                Err(CallError::Refused(no)) => {
                    assert_eq!(no.code, code, "{at}: {} was refused otherwise: {no}", O::NAME);
                    no
                }
            }
        }
    }

    /// Looks until it is true; fails the sentence if that takes too long in real time.
    pub(crate) async fn eventually(&self, what: &str, mut is_true: impl AsyncFnMut() -> bool) {
        let look = async {
            while !is_true().await {
                tokio::time::sleep(LOOK).await;
            }
        };
        assert!(tokio::time::timeout(EVENTUALLY, look).await.is_ok(), "this never was so: {what}");
    }
}
