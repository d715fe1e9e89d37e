//! Watches that the engine of a leader makes progress. The server's own thread sends heartbeats for it, so nobody else
//! would ever see that it hangs, and take the store.

use std::pin::Pin;
use std::task::{Context, Waker};

use tenure_engine::Embedded;

use crate::driver::Driver;

/// An engine hangs if it has not answered a question for this many looks, one a second. No step takes
/// nearly as long. Looks are counted instead of time: a stopped process does not look.
const HANGS_AFTER: u32 = 5;

/// A request that an engine answers with its next append.
type Question = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The question to the engine that was opened last.
#[derive(Default)]
pub(crate) struct Watchdog {
    /// The term of the question.
    term: u64,
    asked: Option<Question>,
    /// Number of looks without an answer.
    looks: u32,
}

impl Watchdog {
    /// Looks once. An engine that hangs is given up: it stops like one that cannot write, and the store goes to another
    /// server.
    pub fn look(&mut self, driver: &Driver) {
        let (engine, term) = {
            let state = driver.lock();
            // While Redis does not answer, no engine can answer.
            let is_reached =
                state.election.serves() && !state.election.is_cut_off(driver.clock.at());
            let engine = state.engine.clone().filter(|_| is_reached && !state.is_closing);
            (engine, state.term)
        };
        match engine {
            Some(engine) if self.sees_it_hang(term, &engine) => engine.give_up(),
            Some(_) => {}
            None => *self = Watchdog::default(),
        }
    }

    fn sees_it_hang(&mut self, term: u64, engine: &Embedded) -> bool {
        if self.term != term {
            *self = Watchdog { term, ..Watchdog::default() };
        }
        self.asked = match self.asked.take().and_then(still_open) {
            Some(question) => {
                self.looks += 1;
                Some(question)
            }
            None => {
                self.looks = 0;
                let answer = engine.goes_on();
                // An engine that has stopped is reported elsewhere.
                still_open(Box::pin(async move { drop(answer.await) }))
            }
        };
        self.looks >= HANGS_AFTER
    }
}

/// Returns the question if it is not answered yet.
fn still_open(mut question: Question) -> Option<Question> {
    let polled = question.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    polled.is_pending().then_some(question)
}
