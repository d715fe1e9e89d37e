//! `tenure reschedule`: moves a job to another moment.

use tenure_core::requests::{Patch, PatchJob};

use crate::args::jobs::{RescheduleArgs, when};
use crate::exit::Failure;
use crate::output::Output;
use crate::output::table::second;
use crate::store::Store;

/// Moves it.
pub async fn run(store: &Store, out: Output, args: RescheduleArgs) -> Result<(), Failure> {
    let mut patch = PatchJob::new(args.job);
    patch.when = Patch::Set(when(args.at, args.delay));
    let job = store.run(patch).await?;
    out.answer(&*job, |job| format!("{} is {}, at {}\n", job.id, job.state, second(job.run_at)))
}
