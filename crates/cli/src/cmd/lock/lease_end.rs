//! Ends the lease of `lock` and `lease` after CMD: by CMD's verdict, or as after the death of a holder if CMD was cut
//! off. The reasons: `docs/decisions/082-*`.

use nix::sys::signal::Signal;
use tenure::{CallError, LockGuard, SettleOutcome};
use tenure_core::refusal::Code;

use crate::child::environment::Environment;
use crate::child::outcome::{self, How};
use crate::child::signals::ENDING;
use crate::exit::{Failure, NO};
use crate::output::tell;

const RESTS: &str = "its resources rest for their quarantine, if one is set";

/// How the lease ends.
pub enum LeaseEnd {
    /// By the verdict of CMD, otherwise released.
    Settled(Box<SettleOutcome>),
    /// CMD was cut off by this signal, and had no chance to log out wherever it was logged in.
    CutOff(i32),
    /// CMD left a verdict that cannot be used.
    Unusable(String),
}

impl LeaseEnd {
    /// The end of the lease after CMD; `forwarded` is the first signal that this process received and forwarded.
    pub fn after(how: How, forwarded: Option<Signal>, environment: &Environment) -> Self {
        match outcome::verdict(&environment.verdict) {
            Ok(Some(item)) => return LeaseEnd::Settled(Box::new(item)),
            Ok(None) => {}
            Err(why) => return LeaseEnd::Unusable(why),
        }
        // These are forwarded: a caller that sends them to this process ends CMD in order.
        let passed_on = |signal: &i32| ENDING.iter().any(|passed| *passed as i32 == *signal);
        match how.signal().filter(|signal| forwarded.is_none() || !passed_on(signal)) {
            Some(signal) => LeaseEnd::CutOff(signal),
            None => LeaseEnd::Settled(Box::new(SettleOutcome::released())),
        }
    }

    /// Ends the lease in this way.
    ///
    /// # Errors
    /// The verdict of CMD cannot be used: the lease ended as after the death of its holder.
    pub async fn bring_about(self, guard: LockGuard) -> Result<(), Failure> {
        match self {
            LeaseEnd::Settled(item) => match guard.settle_or_force(*item).await {
                Err(CallError::Refused(no)) if !is_over(no.code) => {
                    return Err(unusable(&no.to_string()));
                }
                settled => tell_kept(settled),
            },
            LeaseEnd::CutOff(signal) => {
                if !guard.lease().resources.is_empty() {
                    tell(&format!("CMD was ended by signal {signal}: {RESTS}"));
                }
                tell_kept(guard.force().await);
            }
            LeaseEnd::Unusable(why) => {
                tell_kept(guard.force().await);
                return Err(unusable(&why));
            }
        }
        Ok(())
    }
}

fn unusable(why: &str) -> Failure {
    Failure::new(NO, format!("the verdict of CMD cannot be used: {why}; {RESTS}"))
        .hint("TENURE_VERDICT_FILE takes a settle item; see `tenure lease --help`")
}

/// Tells people about a lease that is not known to have ended.
pub fn tell_kept(ended: Result<(), CallError>) {
    match ended {
        Ok(()) => {}
        // A loss at the very end changes nothing: CMD had ended.
        Err(CallError::Refused(no)) if is_over(no.code) => {}
        Err(error) => tell(&format!("cannot give the lease back; it expires by itself: {error}")),
    }
}

/// The lease was over when it was to be ended.
fn is_over(code: Code) -> bool {
    matches!(code, Code::LeaseLost | Code::AlreadySettled | Code::LeaseNotFound)
}
