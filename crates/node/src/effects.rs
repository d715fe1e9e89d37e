//! Runs the effects (`Effect`) that the election returns, without its lock. Outcomes go back to `Driver` as inputs.
//!
//! Nothing here blocks except the threads that are started for one task: a load, a question to a server, a snapshot.

use std::sync::Arc;
use std::time::Duration;
use tenure_journal::threads::spawn_or_die;

use tenure_core::bounds::TTL_US_MAX;
use tenure_core::time::Span;
use tenure_election::election::{Input, ServerWord};
use tenure_election::ids::ServerId;
use tenure_journal::Appended;
use tenure_redis::{ScriptReply, StoreCall, StoreError};

use crate::appends::tell;
use crate::driver::{Driver, Errand, begin};
use crate::lent_snapshots;
use crate::loading;
use crate::options::AskedServer;
use crate::snapshots;
use crate::state::Effect;

/// A server that does not answer for this long is silent.
const ASK_WITHIN: Duration = Duration::from_millis(500);

/// Runs one effect of the election.
pub(crate) fn run_effect(driver: &Arc<Driver>, effect: Effect) {
    match effect {
        Effect::Call { number, call } => begin_call(driver, number, &call),
        Effect::Done(waiting) => tell(waiting, &Appended::Done),
        Effect::Prove(proof) => tell(proof.into_iter().collect(), &Appended::Done),
        Effect::Drop { engine, waiting } => {
            tell(waiting, &Appended::Fenced);
            if let Some(engine) = engine {
                start(driver, "tenure-drop", move |_| engine.close());
            }
        }
        Effect::Look => drop(driver.errands.send(Errand::Look)),
        Effect::Name(store, ttl) => drop(driver.errands.send(Errand::Name(store, ttl))),
        Effect::Ask { id, server } => ask(driver, id, server),
        Effect::Unknown(id) => driver.tell(Input::Heard { from: id, word: ServerWord::Silent }),
        Effect::Load { term, recovers } => {
            start(driver, "tenure-load", move |driver| loading::load(&driver, term, recovers));
        }
        Effect::Recover(engine, span) => begin(engine.recover(span)),
        // The duration of the questions is unknown, but no lease lasts longer than this. The election ends the doubt.
        Effect::Doubt(engine) => begin(engine.doubt(Span::from_us(TTL_US_MAX))),
        Effect::EndRecovery(engine) => begin(engine.end_recovery()),
        Effect::Write { term, by, generation, has: None } => {
            start(driver, "tenure-snapshot", move |driver| {
                snapshots::write(&driver, term, &by, generation);
            });
        }
        Effect::Write { term, by, generation, has: Some(standby) } => {
            start(driver, "tenure-snapshot", move |driver| {
                lent_snapshots::have(&driver, term, (&by, generation), &standby);
            });
        }
        Effect::Unlink { by, snapshot } => {
            start(driver, "tenure-unlink", move |driver| snapshots::unlink(&driver, &by, snapshot));
        }
        Effect::Nothing => {}
    }
}

/// Starts a thread for one task. Without a thread the server cannot lead a store.
fn start(driver: &Arc<Driver>, name: &str, does: impl FnOnce(Arc<Driver>) + Send + 'static) {
    let its = driver.clone();
    let started = spawn_or_die(name, move || does(its));
    if let Err(why) = started {
        tracing::error!("could not start a thread: {why}");
        driver.cannot_serve();
    }
}

fn begin_call(driver: &Arc<Driver>, number: u64, call: &StoreCall) {
    let told = Arc::downgrade(driver);
    driver.store.begin_call(call, move |reply| {
        if let Some(driver) = told.upgrade() {
            replied(&driver, number, reply);
        }
    });
}

fn replied(driver: &Arc<Driver>, call: u64, reply: Result<ScriptReply, StoreError>) {
    let mut state = driver.lock();
    let was_cut_off = state.election.is_cut_off(driver.clock.at());
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
    state.take(input, &driver.clock);
    if state.shortage.is_some() {
        state.shortage = driver.store.shortage();
    }
    if was_cut_off {
        driver.show(&state);
    }
    driver.act(state);
}

fn ask(driver: &Arc<Driver>, id: ServerId, server: AskedServer) {
    let asks = driver.asks.clone();
    start(driver, "tenure-ask", move |driver| {
        let word = asks.ask(&server, ASK_WITHIN);
        driver.lock().reached(id, &server.url, &word);
        driver.tell(Input::Heard { from: id, word });
    });
}
