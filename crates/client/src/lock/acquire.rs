//! Acquires needs without a job, by a builder.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use tenure_core::job::Need as CheckedNeed;
use tenure_core::refusal::Refusal;
use tenure_engine_api::CallError;

use super::{Lock, LockError, LockGuard};
use crate::client::Client;
use crate::need::Need;

/// An acquisition that waits without an end unless [`Acquire::within`] bounds it; from [`Client::acquire`].
#[derive(Debug)]
#[must_use = "nothing is acquired until this is awaited"]
pub struct Acquire {
    client: Client,
    needs: Result<Vec<CheckedNeed>, Refusal>,
    ttl: Option<Duration>,
    within: Option<Duration>,
}

impl Client {
    /// Acquires needs, 1 to 16, all together or none, once it is awaited. The guard keeps them alive, and gives them
    /// back when it is released or dropped.
    ///
    /// ```no_run
    /// # async fn example(client: tenure::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tenure::Need;
    ///
    /// let needs = [Need::limit("gpu"), Need::pool("accounts").tag("cn")];
    /// let guard = client.acquire(needs).within(Duration::from_secs(30)).await?;
    /// println!("fence {}", guard.fence());
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When it is awaited: [`LockError`].
    pub fn acquire(&self, needs: impl IntoIterator<Item = Need>) -> Acquire {
        let needs = needs.into_iter().map(Need::checked).collect();
        Acquire { client: self.clone(), needs, ttl: None, within: None }
    }
}

impl Acquire {
    /// How long the needs stay held after this process died: 1 s to 1 h, 30 s by default.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }
    /// Gives up after this long, with [`LockError::Busy`]; zero takes free needs only and never waits.
    pub fn within(mut self, longest: Duration) -> Self {
        self.within = Some(longest);
        self
    }

    async fn run(self) -> Result<LockGuard, LockError> {
        let mut lock = Lock::new(self.client, self.needs.map_err(CallError::from)?);
        if let Some(ttl) = self.ttl {
            lock = lock.ttl(ttl);
        }
        match self.within {
            Some(longest) => lock.acquire_within(longest).await,
            None => lock.acquire().await,
        }
    }
}

impl IntoFuture for Acquire {
    type Output = Result<LockGuard, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
