//! The scripts that were sent whole on one connection, and their shorter calls after that.
//!
//! The text of an append contains the run id of Redis, so a Redis process knows the digest of that text only if the
//! text was sent to it: scripts are neither replicated nor kept on disk. Once Redis has answered the whole text and the
//! run was right, each call by digest proves that it reached the same process, even through a proxy. The script then
//! skips the check of the run, which is a fifth of its work. A text that was not answered on this very connection must
//! never count as proved: another process may have received it, and refused it. The other scripts are rare, and always
//! check.

use sha1::{Digest, Sha1};

use crate::resp::{RespValue, Words};
use crate::scripts::{APPEND, Script, ScriptCall};

/// Replaces the run id once the run is proved. No run id has this value.
const PROVED: &str = "proved";

struct KnownScript {
    script: &'static Script,
    /// The run id in its text; empty if there is no run id in it.
    run: String,
    by_digest: Words,
    is_proved: bool,
}

/// The run id in the text of the called script; empty if the text has no run id.
fn run_in_text(call: &ScriptCall) -> &str {
    if std::ptr::eq(call.script, &APPEND) { call.run() } else { "" }
}

/// All scripts that one connection has sent.
#[derive(Default)]
pub(crate) struct KnownScripts(Vec<KnownScript>);

impl KnownScripts {
    /// Forgets all scripts, for another connection.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn find(&mut self, call: &ScriptCall) -> Option<&mut KnownScript> {
        let run = run_in_text(call);
        let is_of =
            |known: &&mut KnownScript| std::ptr::eq(known.script, call.script) && known.run == run;
        self.0.iter_mut().find(is_of)
    }

    /// Writes a call. Returns true if it contains the whole script.
    pub fn write(&mut self, call: &ScriptCall, out: &mut Vec<u8>) -> bool {
        if let Some(known) = self.find(call) {
            let run = if known.is_proved { PROVED } else { call.run() };
            call.write(&known.by_digest, run, out);
            return false;
        }
        let run = run_in_text(call);
        let text = call.script.text_for(run);
        let digest = data_encoding::HEXLOWER.encode(&Sha1::digest(&text));
        call.write(&Words::of(&["EVAL", &text]), call.run(), out);
        self.0.push(KnownScript {
            script: call.script,
            run: run.to_owned(),
            by_digest: Words::of(&["EVALSHA", &digest]),
            is_proved: false,
        });
        true
    }

    /// Takes the answer to a call that was written whole.
    pub fn answered(&mut self, call: &ScriptCall, reply: &RespValue) {
        // An append gives these two answers only after it has found the run right.
        let is_right = |said: &str| said.starts_with("done ") || said.starts_with("at ");
        if !run_in_text(call).is_empty()
            && reply.text().is_some_and(is_right)
            && let Some(known) = self.find(call)
        {
            known.is_proved = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::StoreKeys;
    use crate::scripts::{AppendCall, HandOver, RunNote, StoreNaming, Term};

    fn append(run: &str) -> ScriptCall {
        let by = Term { store: 7, epoch: 1, leader: 2, run: run.to_owned() };
        let (moment, ttl, note) = (0, 0, RunNote::Stays);
        AppendCall { by, tip: Default::default(), entry: None, moment, ttl, note, beats: false }
            .call(&StoreKeys::of("shop"))
    }

    fn written(known: &mut KnownScripts, call: &ScriptCall) -> String {
        let mut out = Vec::new();
        known.write(call, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_script_is_sent_whole_until_an_answer_proves_it_known() {
        let text = |text: &str| RespValue::Text(text.as_bytes().to_vec());
        for (reply, proves) in
            [("done 7", true), ("at 3", true), ("moved", false), ("deposed", false)]
        {
            let (mut known, call) = (KnownScripts::default(), append("aaaa"));
            assert!(written(&mut known, &call).contains("EVAL\r\n"));
            let next = written(&mut known, &call);
            assert!(next.contains("EVALSHA") && next.contains("aaaa"), "not answered yet");
            known.answered(&call, &text(reply));
            let next = written(&mut known, &call);
            assert_eq!(next.contains("aaaa"), !proves, "{reply}: {next}");
            // Another run is another text, and another connection is another process.
            assert!(written(&mut known, &append("bbbb")).contains("EVAL\r\n"));
            known.clear();
            assert!(written(&mut known, &call).contains("EVAL\r\n"));
        }
    }

    #[test]
    fn other_scripts_are_sent_whole_once_and_ask_each_time() {
        let by = Term { store: 7, epoch: 1, leader: 2, run: "aaaa".to_owned() };
        let keys = StoreKeys::of("shop");
        let give = HandOver { by, tip: Default::default(), to: 3 }.call(&keys);
        let mut known = KnownScripts::default();
        for call in [give, StoreNaming { store: 1, ttl: 0 }.call(&keys)] {
            assert!(written(&mut known, &call).contains("EVAL\r\n"));
            // A repeat of it is done under any run.
            known.answered(&call, &RespValue::Text(b"done 7".to_vec()));
            let next = written(&mut known, &call);
            assert!(next.contains("EVALSHA") && !next.contains(PROVED), "{next}");
        }
    }
}
