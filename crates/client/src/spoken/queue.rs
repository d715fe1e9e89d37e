//! Builder for a queue: set, pause, view.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

use tenure_core::decode::Decode;
use tenure_core::job::Need as CheckedNeed;
use tenure_core::lease::Later;
use tenure_core::names::QueueName;
use tenure_core::requests::{DeleteQueue, GetQueue, PatchQueue, PauseQueue, ResumeQueue};
use tenure_core::settings::QueueView;
use tenure_core::time::{Moment, Span};
use tenure_engine_api::CallError;

use crate::client::Client;
use crate::need::Need;
use crate::spoken::retry::Retry;
use crate::spoken::{ByName, Spoken, WithSettings};

/// A queue, as [`Client::queue`] names it. [`Queue::set`] changes the settings that you state and leaves the others as they
/// are. They are the defaults of its jobs, copied into each job at its push. Without a setting you can view, pause or delete
/// the queue.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::Duration;
/// use tenure::{Need, Retry};
///
/// let hour = Duration::from_secs(3_600);
/// client.limit("smtp").concurrency(2).set().await?;
/// client
///     .queue("mail")
///     .need(Need::limit("smtp"))
///     .retry(Retry::new().attempts(5))
///     .timeout(Duration::from_secs(60))
///     .retain(24 * hour)
///     .max_waiting(100_000)
///     .lost_delay(Duration::ZERO)
///     .share("tenant-7", 3)
///     .show_payload(false)
///     .set()
///     .await?;
///
/// client.queue("mail").no_needs().set().await?;
/// client.queue("mail").pause_for(hour).await?;
/// client.queue("mail").pause().await?;
/// assert!(client.queue("mail").view().await?.paused);
/// client.queue("mail").resume().await?;
/// client.queue("mail").delete().await?;
/// # Ok(()) });
/// ```
#[derive(Debug)]
#[must_use = "nothing is done until `set` or another call of it is awaited"]
pub struct Queue<S = ByName> {
    client: Client,
    name: String,
    needs: Vec<CheckedNeed>,
    shares: BTreeMap<String, u32>,
    said: Spoken,
    stage: PhantomData<S>,
}

impl Client {
    /// A queue. It needs no settings: the first pushed job creates it.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::Duration;
    ///
    /// client.queue("mail").timeout(Duration::from_secs(60)).set().await?;
    /// client.push("mail").await?;
    /// assert_eq!(client.queue("mail").view().await?.counts.ready, 1);
    /// # Ok(()) });
    /// ```
    pub fn queue(&self, name: &str) -> Queue {
        let (client, name, stage) = (self.clone(), name.to_owned(), PhantomData);
        let (needs, shares, said) = (Vec::new(), BTreeMap::new(), Spoken::default());
        Queue { client, name, needs, shares, said, stage }
    }
}

impl<S> Queue<S> {
    /// One more need that its jobs hold while they run, unless the job states needs of its own. The first one replaces
    /// the needs that were set before.
    pub fn need(mut self, need: Need) -> Queue<WithSettings> {
        let mut needs = std::mem::take(&mut self.needs);
        let queue = self.say(|said| said.need(need, &mut needs));
        Queue { needs, ..queue }
    }
    /// Sets that its jobs need nothing.
    pub fn no_needs(self) -> Queue<WithSettings> {
        Queue { needs: Vec::new(), ..self.say(|said| said.say("needs", [(); 0])) }
    }
    /// How often a failed run is retried, and after which pause.
    pub fn retry(self, retry: Retry) -> Queue<WithSettings> {
        self.say(|said| said.say("retry", retry.checked()))
    }
    /// A run that takes longer is ended, and counts as a failed attempt.
    pub fn timeout(self, timeout: Duration) -> Queue<WithSettings> {
        self.say(|said| said.say("timeout", Span::from(timeout)))
    }
    /// How long a finished job is kept.
    pub fn retain(self, retain: Duration) -> Queue<WithSettings> {
        self.say(|said| said.say("retain", Span::from(retain)))
    }
    /// How many jobs may wait in it; a push beyond that is refused as `queue_full`.
    pub fn max_waiting(self, jobs: u32) -> Queue<WithSettings> {
        self.say(|said| said.say("max_waiting", jobs))
    }
    /// The pause before a job runs again after its worker died. By default 2 s, and twice as long each further time, at
    /// most a minute. Zero is for workers that find their work again.
    pub fn lost_delay(self, delay: Duration) -> Queue<WithSettings> {
        self.say(|said| said.say("lost_delay", Span::from(delay)))
    }
    /// How many turns this group has while each other one has 1. The first one replaces the shares set before.
    pub fn share(mut self, group: &str, turns: u32) -> Queue<WithSettings> {
        let mut shares = std::mem::take(&mut self.shares);
        shares.insert(group.to_owned(), turns);
        Queue { shares: shares.clone(), ..self.say(|said| said.say("shares", shares)) }
    }

    /// Whether the dashboard's lists show one line of each job's payload; yes by default.
    pub fn show_payload(self, is_shown: bool) -> Queue<WithSettings> {
        self.say(|said| said.say("show_payload", is_shown))
    }

    fn say(self, say: impl FnOnce(Spoken) -> Spoken) -> Queue<WithSettings> {
        let Queue { client, name, needs, shares, said, stage: _ } = self;
        Queue { client, name, needs, shares, said: say(said), stage: PhantomData }
    }
}

impl Queue<WithSettings> {
    /// Applies these settings to all jobs that are pushed from now on. Creates the queue if it is missing.
    ///
    /// # Errors
    /// As [`Client::run`]; `invalid_field` for an invalid name, `limit_not_found` and similar codes for a need without
    /// settings.
    pub async fn set(self) -> Result<QueueView, CallError> {
        let change = PatchQueue::of(&[&self.name], &self.said.end()?)?;
        Ok(self.client.set(change).await?.view)
    }
}

impl Queue {
    /// Shows its settings, the number of its jobs by state, and the number of workers that ask for its jobs.
    ///
    /// # Errors
    /// As [`Client::run`]; `queue_not_found`.
    pub async fn view(self) -> Result<QueueView, CallError> {
        let queue = QueueName::parse(&self.name)?;
        self.client.run(GetQueue { queue }).await
    }
    /// Grants none of its jobs until [`Queue::resume`]. It accepts pushes, and running jobs go on.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn pause(self) -> Result<QueueView, CallError> {
        self.pause_until_later(None).await
    }
    /// Grants none of its jobs for this long.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn pause_for(self, rest: Duration) -> Result<QueueView, CallError> {
        self.pause_until_later(Some(Later::For(rest.into()))).await
    }
    /// Grants none of its jobs before this moment.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::{Duration, SystemTime};
    ///
    /// client.queue("mail").pause_until(SystemTime::now() + Duration::from_secs(60)).await?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn pause_until(self, moment: impl Into<Moment>) -> Result<QueueView, CallError> {
        let until = Later::Until(moment.into());
        self.pause_until_later(Some(until)).await
    }
    async fn pause_until_later(self, until: Option<Later>) -> Result<QueueView, CallError> {
        let queue = QueueName::parse(&self.name)?;
        self.client.run(PauseQueue { queue, until }).await
    }
    /// Ends a pause; without one it changes nothing.
    ///
    /// # Errors
    /// As [`Queue::view`].
    pub async fn resume(self) -> Result<QueueView, CallError> {
        let queue = QueueName::parse(&self.name)?;
        self.client.run(ResumeQueue { queue }).await
    }
    /// Deletes its settings. A queue that has jobs, or that a schedule pushes into, may be `in_use`.
    ///
    /// # Errors
    /// As [`Queue::view`]; `in_use`.
    pub async fn delete(self) -> Result<(), CallError> {
        let queue = QueueName::parse(&self.name)?;
        self.client.run(DeleteQueue { queue }).await
    }
}
