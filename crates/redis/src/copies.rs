//! The mark of a copy, which lies beside the id of the store: a text that the owner of the store alone writes, and every server
//! sees.
//!
//! It must never read the text: its writer decides which store may be served.

use crate::keys::StoreKeys;
use crate::line::RedisCommand;
use crate::scripts::{DROP, MARK, ScriptCall, ScriptReply, SnapshotName, Term, flag};
use crate::store::{RedisStore, StoreError};

/// Writes or takes away the mark of a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyMark {
    /// The process that calls, and what it knows of the store.
    pub by: Term,
    /// The mark as the caller saw it; empty: none.
    pub seen: String,
    /// The new mark; empty: none.
    pub says: String,
    /// Refused if the journal has an entry: the store is to be filled.
    pub must_be_empty: bool,
}

impl CopyMark {
    fn call(&self, keys: &StoreKeys) -> ScriptCall {
        ScriptCall::new(&MARK, &[keys.own(), keys.log(), keys.store()]).by(&self.by).args([
            self.seen.as_str(),
            &self.says,
            flag(self.must_be_empty),
        ])
    }
}

impl RedisStore {
    /// Writes or takes away the mark of a copy. Blocks. `NotAsSeen`: there is another mark; `At`: the store has entries, and must
    /// not have any.
    ///
    /// # Errors
    /// Redis cannot be reached; it may have happened.
    pub fn mark_copy(&self, mark: &CopyMark) -> Result<ScriptReply, StoreError> {
        self.run(self.confirmed(mark.call(self.keys())))
    }

    /// Takes the whole store away, if it has this mark. Blocks. Servers that are registered stay so.
    ///
    /// # Errors
    /// Redis cannot be reached; it may have happened.
    pub fn drop_store(&self, by: &Term, mark: &str) -> Result<ScriptReply, StoreError> {
        let keys = self.keys();
        let mut all = vec![keys.own(), keys.log(), keys.store()];
        if let Some(own) = self.look()?.own {
            for SnapshotName { generation, pieces, .. } in own.snapshot.iter().chain(&own.before) {
                all.extend((0..*pieces).map(|index| keys.piece(*generation, index)));
            }
            if let Some(left) = own.writing {
                all.extend((0..self.pieces_from(left, 0)?).map(|index| keys.piece(left, index)));
            }
        }
        self.run(RedisCommand::Script(ScriptCall::new(&DROP, &all).by(by).args([mark])))
    }
}
