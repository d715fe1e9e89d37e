//! Damage: the unreadable parts of this store, named once in the log and in every audit.
//!
//! It is kept from the opening on. It must never reveal the content of a payload or a result.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tenure_core::names::Namespace;
use tenure_machine::Seq;

/// The error of a job that ended because it is unreadable; the error of a job with an unreadable part begins
/// with it, too.
pub(crate) const UNREADABLE: &str = "unreadable";

/// Number of sentences that are kept; the log has them all.
const KEPT: usize = 1_000;

#[derive(Default)]
struct DamageState {
    found: BTreeMap<Seq, (Option<Namespace>, String)>,
    /// Number of faults that were found and not kept.
    more: u64,
}

#[derive(Default)]
pub(crate) struct Damage {
    inside: Mutex<DamageState>,
}

/// Names a job whose id may be wrong.
pub(crate) fn job_name(seq: Seq, id: Option<&str>) -> String {
    match id {
        Some(id) => format!("job \"{id}\""),
        None => format!("job number {seq} (its id cannot be read)"),
    }
}

/// The sentence that reports a damaged part.
pub(crate) fn damaged(seq: Seq, id: Option<&str>, part: &str) -> String {
    format!("{} is unreadable: its {part} is not what was written", job_name(seq, id))
}

impl Damage {
    /// A job, or the value at its number, is unreadable. `namespace` is where it is reported; without one it is
    /// reported in all of them.
    pub(crate) fn note(&self, namespace: Option<&Namespace>, seq: Seq, sentence: String) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.found.contains_key(&seq) {
            return;
        }
        tracing::error!("{sentence}");
        if inside.found.len() < KEPT {
            inside.found.insert(seq, (namespace.cloned(), sentence));
        } else {
            inside.more += 1;
        }
    }

    /// The sentences for an audit of a namespace.
    pub(crate) fn faults(&self, namespace: &Namespace) -> Vec<String> {
        let inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let here = |of: &Option<Namespace>| of.as_ref().is_none_or(|of| of == namespace);
        let told = inside.found.values().filter(|(of, _)| here(of));
        let mut faults: Vec<String> = told.map(|(_, sentence)| sentence.clone()).collect();
        if inside.more > 0 {
            faults.push(format!("{} more are unreadable: the log names them", inside.more));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once_and_where_it_belongs() {
        let (damage, here) = (Damage::default(), Namespace::main());
        let there = Namespace::parse("there").unwrap();
        damage.note(Some(&here), Seq::new(1), "one".to_owned());
        damage.note(Some(&here), Seq::new(1), "one again".to_owned());
        damage.note(None, Seq::new(2), "two".to_owned());
        assert_eq!(damage.faults(&here), ["one", "two"]);
        assert_eq!(damage.faults(&there), ["two"]);
        for seq in (3..2_000).map(Seq::new) {
            damage.note(Some(&there), seq, "many".to_owned());
        }
        assert_eq!(damage.faults(&here).len(), 3);
    }
}
