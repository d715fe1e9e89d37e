//! Calls that wait for results and flows on both engines: each pair is answered at once by both or by neither, and alike.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use proptest::prelude::TestCaseError;
use tenure_core::requests::{Reply, Request};
use tenure_engine::{CallError, CallFuture};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What one engine has answered is waited for so long on the other.
const PATIENCE: Duration = Duration::from_secs(5);

type Answer = Result<Reply, CallError>;

/// A call that was polled once, so that its engine knows of it.
pub enum Started {
    Answered(Box<Answer>),
    Waits(JoinHandle<Answer>),
}

impl Started {
    pub async fn new(mut call: CallFuture) -> Self {
        let mut once = Some(Pin::new(&mut call));
        let first = poll_fn(|cx| {
            let polled = once.take().map(|call| call.poll(cx));
            Poll::Ready(polled.unwrap_or(Poll::Pending))
        });
        match first.await {
            Poll::Ready(answer) => Started::Answered(Box::new(answer)),
            Poll::Pending => Started::Waits(tokio::spawn(call)),
        }
    }
    pub fn is_answered(&self) -> bool {
        match self {
            Started::Answered(_) => true,
            Started::Waits(waits) => waits.is_finished(),
        }
    }
    pub async fn answer(self) -> Result<Answer, TestCaseError> {
        match self {
            Started::Answered(answer) => Ok(*answer),
            Started::Waits(waits) => match timeout(PATIENCE, waits).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(why)) => Err(TestCaseError::fail(format!("a call panicked: {why}"))),
                Err(_) => Err(TestCaseError::fail("one engine has answered, the other waits")),
            },
        }
    }
}

/// The same call on both.
pub struct Pair {
    pub asked: Request,
    pub machine: Started,
    pub redis: Started,
}

impl Pair {
    pub fn is_answered(&self) -> bool {
        self.machine.is_answered() || self.redis.is_answered()
    }
    /// Both callers go away.
    pub async fn abort(self) {
        for one in [self.machine, self.redis] {
            if let Started::Waits(waits) = one {
                waits.abort();
                // It is gone when its task is.
                drop(waits.await);
            }
        }
    }
}

/// Until `so`, or an error that says what was waited for.
pub async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) -> Result<(), TestCaseError> {
    let begun = Instant::now();
    while !so().await {
        if begun.elapsed() > PATIENCE {
            return Err(TestCaseError::fail(format!("waited in vain: {what}")));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
