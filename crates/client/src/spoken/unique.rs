//! The unique key of a job: "there is one of these".

use std::time::Duration;

use tenure_core::job::{OnConflict, Until};
use tenure_core::time::Span;

/// A unique key of a job. By default it is held until the job is finished, and a push of the same key returns the
/// existing job.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use std::time::Duration;
/// use tenure::Unique;
///
/// let minute = Duration::from_secs(60);
/// // A reminder: one for each meeting, and a push moves it.
/// let reminder = Unique::key("meeting-42").until_start().replace();
/// client.push("reminders").unique(reminder).delay(10 * minute).await?;
///
/// // At most one answer an hour to everybody who asks the same.
/// client.push("questions").unique(Unique::key("how many?").hold_for(60 * minute)).await?;
///
/// // When it is quiet for a minute, and after ten in any case.
/// let index = Unique::key("index").until_start().replace().within(10 * minute);
/// client.push("index").unique(index).delay(minute).await?;
///
/// // A second one is an error.
/// client.push("deploy").unique(Unique::key("deploy").reject()).await?;
/// let second = client.push("deploy").unique(Unique::key("deploy").reject()).await;
/// assert!(second.is_err());
/// # Ok(()) });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unique {
    pub(crate) key: String,
    pub(crate) until: Until,
    pub(crate) hold: Option<Span>,
    pub(crate) on_conflict: OnConflict,
    pub(crate) within: Option<Span>,
}

impl Unique {
    /// A key that is unique in the namespace.
    pub fn key(key: impl Into<String>) -> Self {
        let (until, on_conflict) = (Until::default(), OnConflict::default());
        Unique { key: key.into(), until, hold: None, on_conflict, within: None }
    }
    /// The job holds it only until its first run begins.
    pub fn until_start(mut self) -> Self {
        self.until = Until::Start;
        self
    }
    /// The job holds it this long after the push in any case.
    pub fn hold_for(mut self, hold: Duration) -> Self {
        self.hold = Some(hold.into());
        self
    }
    /// A push of the same key gives the existing job its own payload, needs, priority and moment, unless that job runs.
    pub fn replace(mut self) -> Self {
        self.on_conflict = OnConflict::Replace;
        self
    }
    /// A push of the same key is refused as `unique_conflict`.
    pub fn reject(mut self) -> Self {
        self.on_conflict = OnConflict::Reject;
        self
    }
    /// With [`Unique::replace`]: the job is moved at most this far beyond the push that began its wait.
    pub fn within(mut self, longest: Duration) -> Self {
        self.within = Some(longest.into());
        self
    }
}

impl<K: Into<String>> From<K> for Unique {
    fn from(key: K) -> Self {
        Unique::key(key)
    }
}
