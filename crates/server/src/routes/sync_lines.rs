//! `PUT …/resources` with a resource a line: the whole set, of any length.
//!
//! Nothing is asked of the engine before the last line was read: others see the old set or the new
//! one. A bad line refuses the call.

use tenure_core::decode::{self, LineRead, Lines};
use tenure_core::refusal::Refusal;
use tenure_core::requests::SyncResources;
use tenure_core::settings::NewResource;
use tokio::time::Instant;

use super::Asked;
use crate::body::{BodyError, Piece, Reading};
use crate::budget::HeldBytes;
use crate::config::Config;

/// Reads the set.
pub(crate) async fn read(
    asked: Asked<'_>,
    reading: &mut Reading,
    config: &Config,
    held: &mut HeldBytes,
) -> Result<SyncResources, BodyError> {
    let request = decode::sync_resources_from_lines(asked.first(), asked.query, Vec::new());
    let mut request = request.map_err(BodyError::Refused)?;
    let mut lines = Lines::default();
    loop {
        let piece = reading.next(Instant::now() + config.body_pause_max).await?;
        let Piece::Data(data) = piece else { break };
        // All of it is kept, until the whole set is here.
        held.grow(data.len()).map_err(BodyError::Refused)?;
        let mut chunk = &data[..];
        while let Some(line) = lines.next(&mut chunk) {
            request.resources.push(one(line).map_err(BodyError::Refused)?);
        }
    }
    if let Some(line) = lines.finish() {
        request.resources.push(one(line).map_err(BodyError::Refused)?);
    }
    Ok(request)
}

fn one((number, line): (usize, LineRead<'_>)) -> Result<NewResource, Refusal> {
    let resource = match line {
        LineRead::Whole(line) => decode::resource_line(line),
        LineRead::TooLong => Err(decode::line_too_long()),
    };
    resource.map_err(|no| no.on_line(number))
}
