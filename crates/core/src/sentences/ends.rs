//! Notes that Tenure itself writes in place of a holder: in the errors of a job, as the reason of a resource that rests
//! or is banned, and in the error of a gauge.

use crate::words;

words! {
    /// A text that is stored with a job, a resource or a gauge, since its holder gave none.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum StoredNote {
        /// The error of a run that was still going at its deadline.
        TimedOut = "timeout",
        /// The error of a run whose lease expired.
        HolderStopped = "the holder stopped heartbeating",
        /// The error of a run whose worker never received its grant.
        GrantNeverReceived = "the grant was never received",
        /// The error of a job that was cancelled since one of its parents failed.
        ParentFailed = "parent_failed",
        /// The reason of a resource that its holder cooled.
        CooledByHolder = "cooled by its holder",
        /// The reason of a resource that a call cooled.
        CooledByHand = "cooled by hand",
        /// The reason of a resource that its holder banned without a reason.
        BannedByHolder = "banned by its holder",
        /// The error of an attempt to read a gauge whose claim no process took.
        GaugeUnclaimed = "no process that reads gauges is there",
        /// The error of an attempt whose process did not answer.
        GaugeUnanswered = "the process that was to read it did not answer within 5 s",
        /// The error of an answer that does not fit the kind of the gauge.
        GaugeOfOtherKind = "the answer is not of this gauge's kind",
    }
}

/// The error of a job whose run snoozed once more than its retry policy allows.
pub fn snoozed_too_often(most: u32) -> String {
    format!("it snoozed more often than \"max_snoozes\" ({most}) lets it")
}
