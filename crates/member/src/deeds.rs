//! Runs the effects (`Deed`) that the election returns, without its lock. Outcomes go back to `Hands` as inputs.
//!
//! Nothing here blocks except the threads that are started for one task: a load, a question to a server, a snapshot.

use std::sync::Arc;
use std::time::Duration;
use tenure_journal::threads::spawn_or_die;

use tenure_core::bounds::TTL_US_MAX;
use tenure_core::time::Span;
use tenure_journal::Appended;
use tenure_journal_redis::{ScriptReply, StoreCall, StoreError};
use tenure_owner::ids::ServerId;
use tenure_owner::owner::{Input, ServerWord};

use crate::appends::tell;
use crate::hands::{Errand, Hands, begin};
use crate::lent_snapshots;
use crate::loading;
use crate::options::AskedServer;
use crate::snapshots;
use crate::state::Deed;

/// A server that does not answer for this long is silent.
const ASK_WITHIN: Duration = Duration::from_millis(500);

/// Runs one effect of the election.
pub(crate) fn do_deed(hands: &Arc<Hands>, deed: Deed) {
    match deed {
        Deed::Call { number, call } => begin_call(hands, number, &call),
        Deed::Done(waiting) => tell(waiting, &Appended::Done),
        Deed::Prove(proof) => tell(proof.into_iter().collect(), &Appended::Done),
        Deed::Drop { engine, waiting } => {
            tell(waiting, &Appended::Deposed);
            if let Some(engine) = engine {
                start(hands, "tenure-drop", move |_| engine.close());
            }
        }
        Deed::Look => drop(hands.errands.send(Errand::Look)),
        Deed::Name(store, ttl) => drop(hands.errands.send(Errand::Name(store, ttl))),
        Deed::Ask { id, server } => ask(hands, id, server),
        Deed::Unknown(id) => hands.tell(Input::Heard { from: id, word: ServerWord::Silent }),
        Deed::Load { term, recovers } => {
            start(hands, "tenure-load", move |hands| loading::load(&hands, term, recovers));
        }
        Deed::Recover(engine, span) => begin(engine.recover(span)),
        // The duration of the questions is unknown, but no lease lasts longer than this. The election ends the doubt.
        Deed::Doubt(engine) => begin(engine.doubt(Span::from_us(TTL_US_MAX))),
        Deed::EndRecovery(engine) => begin(engine.end_recovery()),
        Deed::Write { term, by, generation, has: None } => {
            start(hands, "tenure-snapshot", move |hands| {
                snapshots::write(&hands, term, &by, generation);
            });
        }
        Deed::Write { term, by, generation, has: Some(standby) } => {
            start(hands, "tenure-snapshot", move |hands| {
                lent_snapshots::have(&hands, term, (&by, generation), &standby);
            });
        }
        Deed::Unlink { by, snapshot } => {
            start(hands, "tenure-unlink", move |hands| snapshots::unlink(&hands, &by, snapshot));
        }
        Deed::Nothing => {}
    }
}

/// Starts a thread for one task. Without a thread the server cannot lead a store.
fn start(hands: &Arc<Hands>, name: &str, does: impl FnOnce(Arc<Hands>) + Send + 'static) {
    let its = hands.clone();
    let started = spawn_or_die(name, move || does(its));
    if let Err(why) = started {
        tracing::error!("could not start a thread: {why}");
        hands.cannot_serve();
    }
}

fn begin_call(hands: &Arc<Hands>, number: u64, call: &StoreCall) {
    let told = Arc::downgrade(hands);
    hands.store.begin_call(call, move |reply| {
        if let Some(hands) = told.upgrade() {
            replied(&hands, number, reply);
        }
    });
}

fn replied(hands: &Arc<Hands>, call: u64, reply: Result<ScriptReply, StoreError>) {
    let mut state = hands.lock();
    let was_cut_off = state.owner.is_cut_off(hands.clock.at());
    let input = match reply {
        Ok(reply) => {
            let (reply, time) = state.words.reply(reply);
            Input::Replied { call, reply, time }
        }
        Err(why) => {
            tracing::debug!("a call of the store may have happened: {why}");
            Input::Unsure { call }
        }
    };
    state.take(input, &hands.clock);
    if state.shortage.is_some() {
        state.shortage = hands.store.shortage();
    }
    if was_cut_off {
        hands.show(&state);
    }
    hands.act(state);
}

fn ask(hands: &Arc<Hands>, id: ServerId, server: AskedServer) {
    let asks = hands.asks.clone();
    start(hands, "tenure-ask", move |hands| {
        let word = asks.ask(&server, ASK_WITHIN);
        hands.lock().reached(id, &server.url, &word);
        hands.tell(Input::Heard { from: id, word });
    });
}
