//! The plan of a push, made before any change, and its result.

use crate::rows::Archived;
use crate::state::{LiveJobId, Seq};
use tenure_core::flow::Kinship;
use tenure_core::job::{JobView, NewJob};
use tenure_core::names::JobId;

/// Jobs of a call, and their dependencies.
pub(crate) type JobsAndKinship = (Vec<NewJob>, Kinship);

/// The result of one pushed job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushedOne {
    /// The row number of the stored job.
    pub seq: Seq,
    /// The id of the stored job; a duplicate has the existing one's.
    pub id: JobId,
    /// True if the job existed before.
    pub duplicate: bool,
    /// True if the job existed before, and got the new content.
    pub replaced: bool,
    /// True if no worker asked for its queue within the last minute.
    pub unasked: bool,
    /// For an existing job: its view in case its row is gone when it is read. It may end, or be deleted, between this
    /// step and the read.
    pub known: Option<Box<JobView>>,
}

/// The plan of a push for one job, made before any change.
pub(crate) enum PushPlan {
    /// A new job. A finished job of the same id whose time is over is deleted with it.
    Store(Option<Box<Archived>>),
    /// A job with this id exists, or holds the key.
    Duplicate(Seq, JobId),
    /// An earlier job of the same call has the key.
    Earlier(usize),
    /// An earlier item of the same call has the id: it is the same push.
    Again(usize),
    Replace(LiveJobId),
    /// The holder of the key is finished, but still holds it for a time.
    Revive(Seq),
}

/// A job that this step finishes without keeping it: its id is free for jobs stored after it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Goes {
    pub seq: Seq,
    pub id: JobId,
}
