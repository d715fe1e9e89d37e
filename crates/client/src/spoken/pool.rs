//! Builder for a pool and its resources: set, sync, cool and ban.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use serde::Serialize;
use tenure_core::bounds::LIST_MAX;
use tenure_core::decode::{self, Decode};
use tenure_core::lease::Later;
use tenure_core::names::{PoolName, ResourceId};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{
    AddResources, BanResource, CoolResource, DeletePool, DeleteResource, GetPool, GetResource,
    ListResources, Meant, Page, PatchPool, RestoreResource, SyncResources,
};
use tenure_core::secret::{Json, NotJson};
use tenure_core::settings::{NewResource, Pick, PoolView, Rate, ResourceView, Synced};
use tenure_core::time::{Moment, Span};
use tenure_engine_api::CallError;

use crate::client::Client;
use crate::spoken::{ByName, Spoken, WithSettings};

/// A resource of a pool: an account, a key, a proxy.
///
/// ```
/// use tenure::PoolItem;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ann = PoolItem::new("ann").tag("cn").slots(2).data(&[("password", "geheim")])?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct PoolItem {
    tags: Vec<String>,
    said: Spoken,
}

impl PoolItem {
    /// Without data and tags, for one holder at a time.
    pub fn new(id: &str) -> Self {
        PoolItem { tags: Vec::new(), said: Spoken::default().say("id", id) }
    }
    /// The data that only its holder gets: anything that serde writes as JSON.
    ///
    /// # Errors
    /// A value that cannot be written as JSON.
    pub fn data(self, data: &impl Serialize) -> Result<Self, NotJson> {
        let data = Json::of(data)?;
        Ok(PoolItem { said: self.said.json("data", data), ..self })
    }
    /// One more tag by which a need may ask for it; at most 16.
    pub fn tag(mut self, tag: &str) -> Self {
        self.tags.push(tag.to_owned());
        PoolItem { said: self.said.say("tags", &self.tags), ..self }
    }
    /// How many may hold it at once: 1 by default.
    pub fn slots(self, holders: u32) -> Self {
        PoolItem { said: self.said.say("slots", holders), ..self }
    }

    fn checked(self) -> Result<NewResource, Refusal> {
        decode::resource_line(&self.said.end()?)
    }
}

/// A pool, as [`Client::pool`] names it. [`Pool::set`] changes the settings that you state and leaves the others as they are.
/// Without a setting you can fill, view or delete the pool.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::Duration;
/// use tenure::Pick;
/// use tenure::PoolItem;
///
/// let minute = Duration::from_secs(60);
/// let pool = client.pool("accounts").quarantine(minute).cooldown(Duration::from_secs(5));
/// pool.rate(10, minute).burst(3).max_uses(1_000).pick(Pick::Random).set().await?;
///
/// client.pool("accounts").add([PoolItem::new("ann"), PoolItem::new("bob")]).await?;
/// client.pool("accounts").cool_for("ann", minute).await?;
/// client.pool("accounts").ban("bob", "captcha").await?;
/// assert_eq!(client.pool("accounts").view().await?.available, 0);
///
/// client.pool("accounts").restore("bob").await?;
/// client.pool("accounts").remove("ann").await?;
/// let bob = client.pool("accounts").item("bob").await?;
/// assert_eq!(client.pool("accounts").items().await?, [bob]);
/// client.pool("accounts").remove("bob").await?;
/// client.pool("accounts").delete().await?;
/// # Ok(()) });
/// ```
#[derive(Debug)]
#[must_use = "nothing is done until `set` or another call of it is awaited"]
pub struct Pool<S = ByName> {
    client: Client,
    name: String,
    rate: Option<Rate>,
    said: Spoken,
    stage: PhantomData<S>,
}

impl Client {
    /// A pool: accounts, keys, proxies, devices.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use tenure::{Need, PoolItem};
    ///
    /// client.pool("accounts").sync([PoolItem::new("ann").tag("cn")]).await?;
    /// let guard = client.acquire([Need::pool("accounts").tag("cn")]).await?;
    /// assert_eq!(guard.lease().resources[0].id.as_str(), "ann");
    /// guard.release().await?;
    /// # Ok(()) });
    /// ```
    pub fn pool(&self, name: &str) -> Pool {
        let (client, name) = (self.clone(), name.to_owned());
        Pool { client, name, rate: None, said: Spoken::default(), stage: PhantomData }
    }
}

impl<S> Pool<S> {
    /// How long a resource rests after its holder died: the service behind it may still consider it in use.
    pub fn quarantine(self, rest: Duration) -> Pool<WithSettings> {
        self.say(|said| said.say("quarantine", Span::from(rest)))
    }
    /// How long a resource rests after every use.
    pub fn cooldown(self, rest: Duration) -> Pool<WithSettings> {
        self.say(|said| said.say("cooldown", Span::from(rest)))
    }
    /// How often one resource is granted in each `per`, evenly spaced. [`Pool::burst`] allows more at once.
    pub fn rate(self, count: u32, per: Duration) -> Pool<WithSettings> {
        let rate = Rate { count, per: per.into(), burst: 1 };
        Pool { rate: Some(rate), ..self.say(|said| said.say("rate", rate)) }
    }
    /// After how many grants a resource is banned.
    pub fn max_uses(self, grants: u32) -> Pool<WithSettings> {
        self.say(|said| said.say("max_uses", grants))
    }
    /// How a free resource is chosen: by default the one that rested longest.
    pub fn pick(self, pick: Pick) -> Pool<WithSettings> {
        self.say(|said| said.say("pick", pick))
    }

    fn say(self, say: impl FnOnce(Spoken) -> Spoken) -> Pool<WithSettings> {
        let Pool { client, name, rate, said, stage: _ } = self;
        Pool { client, name, rate, said: say(said), stage: PhantomData }
    }
}

impl Pool<WithSettings> {
    /// How often a resource may be granted at once after a rest. It follows [`Pool::rate`],
    /// and changes nothing without it.
    pub fn burst(self, burst: u32) -> Pool<WithSettings> {
        match self.rate {
            Some(rate) => self.say(|said| said.say("rate", Rate { burst, ..rate })),
            None => self,
        }
    }
    /// Applies these settings from now on. Creates the pool if it is missing.
    ///
    /// # Errors
    /// As [`Client::run`]; `invalid_field` for an invalid name.
    pub async fn set(self) -> Result<PoolView, CallError> {
        let change = PatchPool::of(&[&self.name], &self.said.end()?)?;
        Ok(self.client.set(change).await?.view)
    }
}

impl Pool {
    /// Shows its settings, and the number of its resources that are available, leased, cooling and banned.
    ///
    /// # Errors
    /// As [`Client::run`]; `pool_not_found`.
    pub async fn view(self) -> Result<PoolView, CallError> {
        let (client, pool) = self.named()?;
        client.run(GetPool { pool }).await
    }
    /// Makes these the whole set of the pool, in step with your database, once it is awaited. It changes data, tags and
    /// slots, adds new resources, and retires missing ones as soon as they are free; holders, rests and bans stay.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use tenure::PoolItem;
    ///
    /// let rows = [("ann", "geheim"), ("bob", "secret")];
    /// let accounts = rows.map(|(name, password)| PoolItem::new(name).data(&password));
    /// let accounts: Vec<PoolItem> = accounts.into_iter().collect::<Result<_, _>>()?;
    /// let synced = client.pool("accounts").sync(accounts).version(1).await?;
    /// assert_eq!(synced.added, 2);
    ///
    /// // An empty set is refused unless it is meant: a query may have failed.
    /// assert!(client.pool("accounts").sync([]).await.is_err());
    /// client.pool("accounts").sync([]).meant().await?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// When it is awaited: as [`Client::run`]; without [`SyncPool::meant`] `empty_set` and `retires_most`;
    /// `stale_sync`.
    pub fn sync(self, items: impl IntoIterator<Item = PoolItem>) -> SyncPool {
        let resources = items.into_iter().enumerate();
        let resources = resources.map(|(at, item)| item.checked().map_err(|no| no.item(at)));
        let set = resources.collect::<Result<Vec<_>, _>>().and_then(|resources| {
            let pool = PoolName::parse(&self.name)?;
            Ok(SyncResources { pool, resources, meant: Meant::Ask, version: None })
        });
        SyncPool { client: self.client, set }
    }
    /// Adds resources to it, 1 to 1,000, and leaves all others. An existing one gets the new data, tags and slots.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub async fn add(
        self,
        items: impl IntoIterator<Item = PoolItem>,
    ) -> Result<Vec<ResourceView>, CallError> {
        let items: Result<Vec<_>, Refusal> = items.into_iter().map(PoolItem::checked).collect();
        let add = AddResources { resources: items?, pool: decode::pool_path(&self.name)? };
        self.client.run(add).await
    }
    /// All its resources, by their ids, without their data.
    ///
    /// # Errors
    /// As [`Pool::view`].
    pub async fn items(self) -> Result<Vec<ResourceView>, CallError> {
        let (client, pool) = self.named()?;
        let (mut page, mut all) = (Page { max: LIST_MAX, cursor: None }, Vec::new());
        loop {
            let list = ListResources { pool: pool.clone(), page: page.clone() };
            let listed = client.run(list).await?;
            all.extend(listed.items);
            match listed.next {
                Some(next) => page.cursor = Some(next),
                None => return Ok(all),
            }
        }
    }
    /// One resource, without its data.
    ///
    /// # Errors
    /// As [`Pool::view`]; `resource_not_found`.
    pub async fn item(self, id: &str) -> Result<ResourceView, CallError> {
        let (client, pool, resource) = self.one(id)?;
        client.run(GetResource { pool, resource }).await
    }
    /// Lets a resource rest for this long. Its holders keep it.
    ///
    /// # Errors
    /// As [`Pool::item`].
    pub async fn cool_for(self, id: &str, rest: Duration) -> Result<ResourceView, CallError> {
        self.cool(id, Later::For(rest.into())).await
    }
    /// Lets a resource rest until this moment. Its holders keep it.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use std::time::{Duration, SystemTime};
    /// use tenure::PoolItem;
    ///
    /// client.pool("keys").add([PoolItem::new("k1")]).await?;
    /// client.pool("keys").cool_until("k1", SystemTime::now() + Duration::from_secs(60)).await?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Pool::item`].
    pub async fn cool_until(
        self,
        id: &str,
        moment: impl Into<Moment>,
    ) -> Result<ResourceView, CallError> {
        let until = Later::Until(moment.into());
        self.cool(id, until).await
    }
    async fn cool(self, id: &str, until: Later) -> Result<ResourceView, CallError> {
        let (client, pool, resource) = self.one(id)?;
        client.run(CoolResource { pool, resource, until }).await
    }
    /// Bans a resource: it is not handed out until [`Pool::restore`]. Its holders keep it.
    ///
    /// # Errors
    /// As [`Pool::item`].
    pub async fn ban(self, id: &str, reason: &str) -> Result<ResourceView, CallError> {
        let (client, pool, resource) = self.one(id)?;
        client.run(BanResource { pool, resource, reason: Some(reason.to_owned()) }).await
    }
    /// Ends a rest or a ban.
    ///
    /// # Errors
    /// As [`Pool::item`].
    pub async fn restore(self, id: &str) -> Result<ResourceView, CallError> {
        let (client, pool, resource) = self.one(id)?;
        client.run(RestoreResource { pool, resource }).await
    }
    /// Removes a resource as soon as it is free.
    ///
    /// # Errors
    /// As [`Pool::item`].
    pub async fn remove(self, id: &str) -> Result<(), CallError> {
        let (client, pool, resource) = self.one(id)?;
        client.run(DeleteResource { pool, resource }).await
    }
    /// Deletes the pool.
    ///
    /// # Errors
    /// As [`Pool::view`]; `in_use`.
    pub async fn delete(self) -> Result<(), CallError> {
        let (client, pool) = self.named()?;
        client.run(DeletePool { pool }).await
    }

    fn named(self) -> Result<(Client, PoolName), Refusal> {
        Ok((self.client, PoolName::parse(&self.name)?))
    }
    fn one(self, id: &str) -> Result<(Client, PoolName, ResourceId), Refusal> {
        let (client, pool) = self.named()?;
        Ok((client, pool, ResourceId::known(id)?))
    }
}

/// A whole set, from [`Pool::sync`]; it is compared and applied when this is awaited.
#[derive(Debug)]
#[must_use = "nothing is synced until this is awaited"]
pub struct SyncPool {
    client: Client,
    set: Result<SyncResources, Refusal>,
}

impl SyncPool {
    /// Applies the set even if it is empty, or retires most of the present one.
    pub fn meant(mut self) -> Self {
        if let Ok(set) = &mut self.set {
            set.meant = Meant::Yes;
        }
        self
    }
    /// The version of the set: one older than the last is refused as `stale_sync`.
    pub fn version(mut self, version: u64) -> Self {
        if let Ok(set) = &mut self.set {
            set.version = Some(version);
        }
        self
    }
}

impl IntoFuture for SyncPool {
    type Output = Result<Synced, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.client.run(self.set?).await })
    }
}
