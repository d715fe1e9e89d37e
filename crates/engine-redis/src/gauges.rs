//! Gauges: which feeds of this process read, what a tick has them claim, and the answers that they bring.
//!
//! Nothing here reads a gauge or decides when one is read. A gauge has secrets in its address: nothing here shows one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use tenure_core::gauge::{GaugeClaim, Reading};
use tenure_core::names::LimitName;
use tenure_core::time::Moment;
use tenure_engine::{CallError, GaugeFeed, GaugeReader};

use crate::call::{Caller, malformed};
use crate::decode::stored_gauge;
use crate::encode::{ClaimGaugesArgs, ReadingArgs};
use crate::function::{CLAIM_GAUGES, TAKE_READING};

/// The feeds of this process. Each is a reader of its own, so that one that cannot read leaves a gauge to another.
#[derive(Default)]
pub(crate) struct GaugeReaders {
    state: Mutex<ReadersState>,
}

#[derive(Default)]
struct ReadersState {
    /// With their names in the store; the first is asked first the next time.
    readers: Vec<(String, GaugeReader)>,
    added: u64,
}

impl GaugeReaders {
    fn lock(&self) -> MutexGuard<'_, ReadersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more feed of the process with this name.
    pub(crate) fn add(&self, proc: &str) -> GaugeFeed {
        let (reader, feed) = GaugeFeed::new();
        let mut state = self.lock();
        state.added += 1;
        let name = format!("{proc}:{}", state.added);
        state.readers.push((name, reader));
        feed
    }

    /// The names of those that read now.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut state = self.lock();
        state.readers.retain(|(_, reader)| reader.reads());
        state.readers.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Whether any reads.
    pub(crate) fn are_there(&self) -> bool {
        self.lock().readers.iter().any(|(_, reader)| reader.reads())
    }

    /// Those that read, the one first that waits longest.
    fn in_turn(&self) -> Vec<(String, GaugeReader)> {
        let mut state = self.lock();
        state.readers.retain(|(_, reader)| reader.reads());
        let all = state.readers.clone();
        if !all.is_empty() {
            state.readers.rotate_left(1);
        }
        all
    }
}

/// What a reader claimed: `[limit, number, moment, the gauge's JSON]` each.
#[derive(Deserialize)]
struct ClaimsReply {
    #[serde(default)]
    claims: Vec<(LimitName, u64, u64, String)>,
}

/// Claims what is due, for the reader first that waits longest, and hands it on.
pub(crate) async fn claim(caller: &Caller) -> Result<(), CallError> {
    let readers = caller.shared.gauge_readers.in_turn();
    let names: Vec<&str> = readers.iter().map(|(name, _)| name.as_str()).collect();
    for (name, reader) in &readers {
        let args = ClaimGaugesArgs { reader: name, readers: &names };
        let reply: ClaimsReply = caller.reply(CLAIM_GAUGES, &args).await?;
        for (limit, number, asked_at, said) in reply.claims {
            let gauge = stored_gauge(&said).map_err(malformed(CLAIM_GAUGES))?;
            let asked_at = Moment::from_us(asked_at);
            let claim = GaugeClaim { limit, number, asked_at, gauge };
            // A feed that was dropped in this moment answers nothing: the attempt fails, and others come.
            let _ = reader.claimed(&caller.space.name, claim);
        }
    }
    Ok(())
}

/// Brings the answer to a claim.
pub(crate) async fn answer(caller: Caller, reading: Reading) -> Result<(), CallError> {
    let _: bool = caller.reply(TAKE_READING, &ReadingArgs::of(&reading)).await?;
    Ok(())
}
