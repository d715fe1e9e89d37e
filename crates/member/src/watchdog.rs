//! Whether the engine of an owner goes on. The thread of the member beats for it, so nobody else would ever see that it
//! hangs, and take the store.

use std::pin::Pin;
use std::task::{Context, Waker};

use tenure_engine::Embedded;

use crate::hands::Hands;

/// So many looks, one a second, at which an engine has not answered the question of the first one: it hangs. No step takes
/// nearly as long. Looks are counted, and not time: a process that was stopped did not look meanwhile.
const HANGS_AFTER: u32 = 5;

/// What an engine answers with its next append.
type Question = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What is known of the engine that was opened last.
#[derive(Default)]
pub(crate) struct Watchdog {
    /// The term of the question.
    term: u64,
    asked: Option<Question>,
    /// At which there was no answer.
    looks: u32,
}

impl Watchdog {
    /// Looks once. An engine that hangs is given up: it tells that as one does that cannot write, and the store goes to another
    /// server.
    pub fn look(&mut self, hands: &Hands) {
        let (engine, term) = {
            let state = hands.lock();
            // Where Redis does not answer, no engine can.
            let is_reached = state.owner.serves() && !state.owner.is_cut_off(hands.clock.at());
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
                // That it has stopped is told elsewhere.
                still_open(Box::pin(async move { drop(answer.await) }))
            }
        };
        self.looks >= HANGS_AFTER
    }
}

/// The question again, if it is not answered yet.
fn still_open(mut question: Question) -> Option<Question> {
    let polled = question.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    polled.is_pending().then_some(question)
}
