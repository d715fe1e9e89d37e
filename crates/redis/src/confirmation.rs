//! Confirmation by replicas: a write of a script counts as done once enough of them have it.

use crate::resp::{RespValue, Words};

/// Time in ms that the replicas have for a confirmation. All later requests on the same connection wait too.
const WITHIN_MS: &str = "1000";

/// Every append, even empty or repeated, writes at least the heartbeat, so there is always something to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Confirmation {
    /// At least one. Only if these are all replicas that may become the primary, no answered write is lost.
    pub replicas: u32,
}

impl Confirmation {
    /// The `WAIT` command, which must follow on the same connection.
    pub fn words(self) -> Words {
        Words::of(&["WAIT", &self.replicas.to_string(), WITHIN_MS])
    }

    /// The answer to the request: an error while too few replicas have the write. A refused script needs no replica.
    pub fn said(self, script: RespValue, have: &RespValue) -> Result<RespValue, String> {
        let is_done = script.text().is_some_and(|said| said.starts_with("done"));
        match have {
            RespValue::Int(have) if !is_done || *have >= i64::from(self.replicas) => Ok(script),
            RespValue::Int(have) => {
                Err(format!("{have} of {} replicas have it so far", self.replicas))
            }
            RespValue::Refused(why) => Err(why.clone()),
            _ => Err("it does not say how many replicas have it".to_owned()),
        }
    }
}

/// Too few replicas have the last write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplicaShortage {
    /// The number of replicas that had it within a second.
    pub have: u32,
    /// The number of replicas that must have it before it counts as done.
    pub wanted: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_counts_once_enough_replicas_have_it() {
        let text = |text: &str| RespValue::Text(text.as_bytes().to_vec());
        let confirmation = Confirmation { replicas: 2 };
        for (script, have, counts) in [
            ("done 7", RespValue::Int(2), true),
            ("done 7", RespValue::Int(3), true),
            ("done 7", RespValue::Int(1), false),
            ("done 7", RespValue::Int(0), false),
            ("done 7", RespValue::Nil, false),
            ("deposed", RespValue::Int(0), true),
            ("at 3", RespValue::Int(0), true),
        ] {
            let said = confirmation.said(text(script), &have);
            assert_eq!(said.is_ok(), counts, "{script}, {have:?}");
            assert!(said.is_err() || said == Ok(text(script)));
        }
    }
}
