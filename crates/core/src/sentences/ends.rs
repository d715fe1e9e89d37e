//! Notes that Tenure itself writes in place of a holder: in the errors of a job, as the reason of a resource that rests
//! or is banned, and in the error of a gauge.

use std::fmt;

/// A text that is stored with a job, a resource or a gauge, since its holder gave none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredNote {
    /// The error of a run that was still going at its deadline.
    TimedOut,
    /// The error of a run whose lease expired.
    HolderStopped,
    /// The error of a run whose worker never received its grant.
    GrantNeverReceived,
    /// The error of a job that was cancelled since one of its parents failed.
    ParentFailed,
    /// The reason of a resource that its holder cooled.
    CooledByHolder,
    /// The reason of a resource that a call cooled.
    CooledByHand,
    /// The reason of a resource that its holder banned without a reason.
    BannedByHolder,
    /// The error of an attempt to read a gauge whose claim no process took.
    GaugeUnclaimed,
    /// The error of an attempt whose process did not answer.
    GaugeUnanswered,
    /// The error of an answer that does not fit the kind of the gauge.
    GaugeOfOtherKind,
}

/// The error of a job whose run snoozed once more than its retry policy allows.
pub fn snoozed_too_often(most: u32) -> String {
    format!("it snoozed more often than \"max_snoozes\" ({most}) lets it")
}

impl StoredNote {
    /// The text that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            StoredNote::TimedOut => "timeout",
            StoredNote::HolderStopped => "the holder stopped heartbeating",
            StoredNote::GrantNeverReceived => "the grant was never received",
            StoredNote::ParentFailed => "parent_failed",
            StoredNote::CooledByHolder => "cooled by its holder",
            StoredNote::CooledByHand => "cooled by hand",
            StoredNote::BannedByHolder => "banned by its holder",
            StoredNote::GaugeUnclaimed => "no process that reads gauges is there",
            StoredNote::GaugeUnanswered => {
                "the process that was to read it did not answer within 5 s"
            }
            StoredNote::GaugeOfOtherKind => "the answer is not of this gauge's kind",
        }
    }
}

impl fmt::Display for StoredNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
