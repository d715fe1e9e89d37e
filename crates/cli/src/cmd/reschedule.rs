//! `tenure reschedule`: moves a job to another moment.

use tenure::Client;
use tenure_core::requests::{Patch, PatchJob};

use crate::args::jobs::{RescheduleArgs, when};
use crate::exit::Failure;
use crate::output::Output;
use crate::output::clock::second;

/// Moves the job, and prints its new moment.
pub async fn run(client: &Client, out: Output, args: RescheduleArgs) -> Result<(), Failure> {
    let mut patch = PatchJob::new(args.job);
    patch.when = Patch::Set(when(args.at, args.delay));
    let job = client.run(patch).await?;
    out.answer(&*job, |job| format!("{} is {}, at {}\n", job.id, job.state, second(job.run_at)))
}
