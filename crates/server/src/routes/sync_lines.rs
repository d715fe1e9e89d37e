//! A whole set of any length, one item per line: resources of a pool, schedules of an owner.
//!
//! The engine is called after the last line was read: others see the old set or the new one. A bad
//! line refuses the call, and the refusal names it as a line, whether the reader or the engine
//! refuses.

use tenure_core::decode::{Decode, LineRead, Lines, RawCall, ResourceLines, ScheduleLines};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{SyncResources, SyncSchedules};
use tokio::time::Instant;

use super::Call;
use crate::body::{BodyError, Piece, Reading};
use crate::budget::HeldBytes;
use crate::config::Config;

/// Reads the set of a pool: a call that syncs its resources.
pub(crate) async fn resources(
    call: RawCall<'_>,
    reading: &mut Reading,
    config: &Config,
    held: &mut HeldBytes,
) -> Result<Call, BodyError> {
    let mut request: SyncResources = without_items(call)?;
    let mut lines = ResourceLines::default();
    let numbers;
    (request.resources, numbers) = items(reading, config, held, |line| lines.read(line)).await?;
    Ok(Call { lines: Some(numbers), ..request.into() })
}

/// Reads the set of an owner: a call that syncs its schedules.
pub(crate) async fn schedules(
    call: RawCall<'_>,
    reading: &mut Reading,
    config: &Config,
    held: &mut HeldBytes,
) -> Result<Call, BodyError> {
    let mut request: SyncSchedules = without_items(call)?;
    let mut lines = ScheduleLines::of(request.owner.clone());
    let numbers;
    (request.schedules, numbers) = items(reading, config, held, |line| lines.read(line)).await?;
    Ok(Call { lines: Some(numbers), ..request.into() })
}

/// The request with an empty set.
fn without_items<R: Decode>(call: RawCall<'_>) -> Result<R, BodyError> {
    R::decode(RawCall { body: b"[]", ..call }).map_err(BodyError::Refused)
}

/// The items, and the number of each one's line.
async fn items<T>(
    reading: &mut Reading,
    config: &Config,
    held: &mut HeldBytes,
    mut read: impl FnMut((usize, LineRead<'_>)) -> Result<T, Refusal>,
) -> Result<(Vec<T>, Vec<usize>), BodyError> {
    let (mut lines, mut items, mut numbers) = (Lines::default(), Vec::new(), Vec::new());
    loop {
        let piece = reading.next(Instant::now() + config.body_pause_max).await?;
        let Piece::Data(data) = piece else { break };
        // All lines stay in memory until the whole set is here.
        held.grow(data.len()).map_err(BodyError::Refused)?;
        let mut chunk = &data[..];
        while let Some(line) = lines.next(&mut chunk) {
            numbers.push(line.0);
            items.push(read(line).map_err(BodyError::Refused)?);
        }
    }
    if let Some(line) = lines.finish() {
        numbers.push(line.0);
        items.push(read(line).map_err(BodyError::Refused)?);
    }
    Ok((items, numbers))
}
