//! Builders: the body of a call, field by field, or the first refusal of a value.
//!
//! The body is read by a server's own reader, so names and bounds are checked by the same rules whether the engine is a
//! server or in this process. An invalid value does not end the chain of calls: the call at its end returns the
//! refusal.

pub(crate) mod gauge;
pub(crate) mod limit;
pub(crate) mod pool;
pub(crate) mod queue;
pub(crate) mod retry;
pub(crate) mod schedule;
pub(crate) mod stored_job;
pub(crate) mod unique;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use tenure_core::job::Need as CheckedNeed;
use tenure_core::refusal::Refusal;
use tenure_core::secret::Json;

use crate::need::Need;

/// The fields of a body being built.
#[derive(Clone, Default)]
pub(crate) struct Spoken {
    fields: BTreeMap<&'static str, Json>,
    wrong: Option<Refusal>,
}

impl Spoken {
    /// Sets a field; the last value counts.
    pub(crate) fn say(self, field: &'static str, value: impl Serialize) -> Self {
        self.json(field, written(&value))
    }

    /// Sets a field whose value is JSON already.
    pub(crate) fn json(mut self, field: &'static str, value: Json) -> Self {
        self.fields.insert(field, value);
        self
    }

    /// Adds a need to those of the builder, which the caller keeps in `said`.
    pub(crate) fn need(mut self, need: Need, said: &mut Vec<CheckedNeed>) -> Self {
        match need.checked() {
            Ok(need) => said.push(need),
            Err(no) => self.wrong = self.wrong.or(Some(no)),
        }
        self.say("needs", &*said)
    }

    /// Sets a field that is a body of its own.
    pub(crate) fn part(self, field: &'static str, part: Spoken) -> Result<Self, Refusal> {
        let part = part.checked()?;
        Ok(self.say(field, part))
    }

    /// The same, or the refusal of the first invalid value.
    pub(crate) fn checked(mut self) -> Result<Self, Refusal> {
        self.wrong.take().map_or(Ok(self), Err)
    }

    /// The body, in the form of one that came over HTTP.
    pub(crate) fn end(self) -> Result<Vec<u8>, Refusal> {
        Ok(written(&self.checked()?).text().into())
    }

    /// A body that is an array of such bodies.
    pub(crate) fn array(all: &[Spoken]) -> Vec<u8> {
        written(&all).text().into()
    }
}

/// Writes text, numbers and finished JSON, which can all be written as JSON.
fn written(value: &impl Serialize) -> Json {
    match Json::of(value) {
        Ok(json) => json,
        Err(why) => unreachable!("a word of a sentence can always be written: {why}"),
    }
}

impl Serialize for Spoken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields.serialize(serializer)
    }
}

/// Values may be secret, so only the names of the fields are shown.
impl fmt::Debug for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.fields.keys()).finish()
    }
}

/// Type state of a limit, a queue or a pool: it has a name and no setting yet.
#[derive(Clone, Copy, Debug)]
pub enum ByName {}

/// Type state of a limit, a queue or a pool: it has settings, which `set` applies.
#[derive(Clone, Copy, Debug)]
pub enum WithSettings {}
