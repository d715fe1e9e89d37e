//! Builder for a limit: set, pause, view.

use std::marker::PhantomData;
use std::time::Duration;

use tenure_core::decode::Decode;
use tenure_core::lease::Later;
use tenure_core::names::LimitName;
use tenure_core::requests::{
    DeleteLimit, GetLimit, ObserveLimit, PatchLimit, PauseLimit, ResumeLimit,
};
use tenure_core::secret::Json;
use tenure_core::settings::{LimitView, Rate};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::CallError;

use crate::client::Client;
use crate::spoken::gauge::Gauge;
use crate::spoken::{ByName, Spoken, WithSettings};

/// A limit, as [`Client::limit`] names it. [`Limit::set`] changes the settings that you state and leaves the others as they
/// are. Without a setting you can view, pause or delete the limit.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::Duration;
///
/// let second = Duration::from_secs(1);
/// client.limit("api").concurrency(8).rate(10, second).burst(20).gap(second).set().await?;
/// client.limit("api").without_rate().quarantine(Duration::from_secs(5)).set().await?;
///
/// // The service asks for a rest.
/// client.limit("api").pause_for(Duration::from_secs(60)).await?;
/// let api = client.limit("api").resume().await?;
/// assert_eq!((api.in_use, api.paused_until), (0, None));
/// client.limit("api").delete().await?;
/// # Ok(()) });
/// ```
#[derive(Debug)]
#[must_use = "nothing is done until `set` or another call of it is awaited"]
pub struct Limit<S = ByName> {
    client: Client,
    name: String,
    rate: Option<Rate>,
    said: Spoken,
    stage: PhantomData<S>,
}

impl Client {
    /// A limit: `gpu`, `site:example.com`, or the template `site:*` for all sites without settings of their own.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::Duration;
    ///
    /// client.limit("site:*").concurrency(2).rate(10, Duration::from_secs(1)).set().await?;
    /// let site = client.limit("site:example.com").view().await?;
    /// assert_eq!(site.settings.concurrency, Some(2));
    /// # Ok(()) });
    /// ```
    pub fn limit(&self, name: &str) -> Limit {
        let (client, name) = (self.clone(), name.to_owned());
        Limit { client, name, rate: None, said: Spoken::default(), stage: PhantomData }
    }
}

impl<S> Limit<S> {
    /// How many permits may be held at once; 0 closes the limit for now. A higher number lets waiters in at once, a
    /// lower one takes a permit from nobody.
    pub fn concurrency(self, permits: u32) -> Limit<WithSettings> {
        self.say(|said| said.say("concurrency", permits))
    }
    /// How many are granted per `per`, evenly spaced: one may go at once after a rest. [`Limit::burst`] allows more.
    pub fn rate(self, count: u32, per: Duration) -> Limit<WithSettings> {
        let rate = Rate { count, per: per.into(), burst: 1 };
        Limit { rate: Some(rate), ..self.say(|said| said.say("rate", rate)) }
    }
    /// How long each permit rests after its release.
    pub fn gap(self, gap: Duration) -> Limit<WithSettings> {
        self.say(|said| said.say("gap", Span::from(gap)))
    }
    /// How long each permit rests after its holder died: work that this holder started may still run.
    pub fn quarantine(self, rest: Duration) -> Limit<WithSettings> {
        self.say(|said| said.say("quarantine", Span::from(rest)))
    }
    /// Counts work that others started, as read from an address. A limit with a gauge needs a concurrency, and a name
    /// of its own: a template has no gauge.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use tenure::Gauge;
    ///
    /// let spiders = client.limit("scrapy").concurrency(8);
    /// spiders.gauge(Gauge::scrapyd("http://127.0.0.1:6800")).set().await?;
    /// client.limit("scrapy").without_gauge().set().await?;
    /// # Ok(()) });
    /// ```
    pub fn gauge(self, gauge: Gauge) -> Limit<WithSettings> {
        self.say(|said| gauge.said_in(said))
    }
    /// Removes the gauge: work outside counts no more.
    pub fn without_gauge(self) -> Limit<WithSettings> {
        self.say(|said| said.json("gauge", Json::null()))
    }
    /// Removes the rate: grants are no longer spaced.
    pub fn without_rate(self) -> Limit<WithSettings> {
        Limit { rate: None, ..self.say(|said| said.json("rate", Json::null())) }
    }

    fn say(self, say: impl FnOnce(Spoken) -> Spoken) -> Limit<WithSettings> {
        let Limit { client, name, rate, said, stage: _ } = self;
        Limit { client, name, rate, said: say(said), stage: PhantomData }
    }
}

impl Limit<WithSettings> {
    /// How much of the rate may go at once after a rest, 1 or more. Call it after [`Limit::rate`]; alone it changes
    /// nothing.
    pub fn burst(self, burst: u32) -> Limit<WithSettings> {
        match self.rate {
            Some(rate) => self.say(|said| said.say("rate", Rate { burst, ..rate })),
            None => self,
        }
    }

    /// Applies these settings for the whole namespace, from now on. Creates the limit if it is missing.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// let gpu = client.limit("gpu").concurrency(4).set().await?;
    /// assert_eq!(gpu.settings.concurrency, Some(4));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Client::run`]; `invalid_field` for an invalid name, or for a limit that bounds nothing.
    pub async fn set(self) -> Result<LimitView, CallError> {
        let change = PatchLimit::of(&[&self.name], &self.said.end()?)?;
        Ok(self.client.set(change).await?.view)
    }
}

impl Limit {
    /// Shows its settings, its holders and its waiters.
    ///
    /// # Errors
    /// As [`Client::run`]; `limit_not_found`.
    pub async fn view(self) -> Result<LimitView, CallError> {
        let limit = LimitName::parse(&self.name)?;
        self.client.run(GetLimit { limit }).await
    }
    /// Grants nothing of it for this long; leases stay held. If a present pause lasts longer, that one holds.
    ///
    /// # Errors
    /// As [`Limit::view`].
    pub async fn pause_for(self, rest: Duration) -> Result<LimitView, CallError> {
        self.pause(Later::For(rest.into())).await
    }
    /// Grants nothing of it before this moment.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::{Duration, SystemTime};
    ///
    /// client.limit("api").concurrency(8).set().await?;
    /// client.limit("api").pause_until(SystemTime::now() + Duration::from_secs(60)).await?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Limit::view`].
    pub async fn pause_until(self, moment: impl Into<Moment>) -> Result<LimitView, CallError> {
        let until = Later::Until(moment.into());
        self.pause(until).await
    }
    async fn pause(self, until: Later) -> Result<LimitView, CallError> {
        let limit = LimitName::parse(&self.name)?;
        self.client.run(PauseLimit { limit, until }).await
    }
    /// Ends a pause; without one it changes nothing.
    ///
    /// # Errors
    /// As [`Limit::view`].
    pub async fn resume(self) -> Result<LimitView, CallError> {
        let limit = LimitName::parse(&self.name)?;
        self.client.run(ResumeLimit { limit }).await
    }
    /// Counts this many permits as taken by work outside, for `hold`, or with `None` until the next such call.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::Duration;
    ///
    /// client.limit("gpu").concurrency(4).set().await?;
    /// let gpu = client.limit("gpu").observe(1, Some(Duration::from_secs(60))).await?;
    /// assert_eq!(gpu.external, 1);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Limit::view`]; `wrong_state` for a limit with a gauge.
    pub async fn observe(
        self,
        external: u32,
        hold: Option<Duration>,
    ) -> Result<LimitView, CallError> {
        let limit = LimitName::parse(&self.name)?;
        self.client.run(ObserveLimit { limit, external, hold: hold.map(Span::from) }).await
    }
    /// Deletes its settings; the template of its family applies, if there is one.
    ///
    /// # Errors
    /// As [`Limit::view`].
    pub async fn delete(self) -> Result<(), CallError> {
        let limit = LimitName::parse(&self.name)?;
        self.client.run(DeleteLimit { limit }).await
    }
}
