//! `tenure top`: the live screen of a server or a store, and the way from it to why a job waits.
//!
//! It only reads, with calls that any client may make: at most seven for each refresh, and no refresh before the last
//! was answered. [`screen`] and [`rows`] decide the content, and know neither a terminal nor a store.

mod asked;
mod draw;
mod rows;
mod screen;
mod terminal;
mod view;

use std::time::Duration;

use tenure::Client;
use tenure_console::exit::{Failure, by_signal};
use tenure_core::lease::Explained;
use tenure_core::time::Moment;
use tokio::time::{Instant, sleep_until};

use self::screen::{KeyTurn, Screen};
use self::terminal::{TopSignals, TopTerminal};

/// Settings that the command line knows and the screen does not.
#[derive(Clone, Debug)]
pub struct TopSettings {
    /// The address, without a password.
    pub address: String,
    /// Time between an answer and the next request.
    pub every: Duration,
    /// The text of an explanation, as `tenure explain` prints it.
    pub told: fn(&Explained, Moment) -> String,
    /// Whether colours are wanted.
    pub colours: bool,
}

/// Shows the screen until the user leaves it, or a signal ends the process.
///
/// # Errors
/// There is no terminal, or a signal came: then with the exit code of that signal.
pub async fn run(client: &Client, settings: TopSettings) -> Result<(), Failure> {
    let mut signals = TopSignals::listen()?;
    let mut terminal = TopTerminal::enter()?;
    let namespace = client.namespace().to_string();
    let mut screen = Screen::new(settings.address.clone(), namespace);
    let mut next = Instant::now();
    let mut asking = None;
    loop {
        terminal.draw(|frame| draw::draw(frame, &screen, settings.colours))?;
        if asking.is_none() && Instant::now() >= next && !screen.is_paused() {
            asking = Some(Box::pin(asked::ask(client, screen.view().clone(), settings.told)));
        }
        let is_idle = asking.is_none();
        let answer = async {
            match &mut asking {
                Some(asking) => asking.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            signal = signals.next() => {
                drop(terminal);
                return Err(Failure::silent(by_signal(signal)));
            }
            key = terminal.key() => match key {
                None => return Ok(()),
                Some(key) => match screen.key(key) {
                    KeyTurn::Stay => {}
                    KeyTurn::Leave => return Ok(()),
                    KeyTurn::Ask => {
                        // The call in flight may be for another view.
                        asking = None;
                        next = Instant::now();
                    }
                },
            },
            answer = answer => {
                asking = None;
                next = Instant::now() + settings.every;
                screen.answered(answer);
            }
            () = sleep_until(next), if is_idle && !screen.is_paused() => {}
        }
    }
}

#[cfg(test)]
mod tests;
