//! The faults that an audit finds.

use tenure_core::requests::Audited;

/// The most faults in one answer; the first is the important one.
const FAULTS_SHOWN: usize = 100;

#[derive(Default)]
pub(crate) struct Findings(Audited);

impl Findings {
    pub(crate) fn check(&mut self, right: bool, fault: impl FnOnce() -> String) {
        self.0.checked += 1;
        if !right && self.0.faults.len() < FAULTS_SHOWN {
            self.0.faults.push(fault());
        }
    }

    /// The findings; `ok` if there are none.
    pub(crate) fn done(self) -> Audited {
        Audited { ok: self.0.faults.is_empty(), ..self.0 }
    }
}
