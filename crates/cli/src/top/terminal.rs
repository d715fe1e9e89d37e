//! The terminal: enters it, draws on it, reads its keys, and restores it however the process ends, except by SIGKILL.
//!
//! A panic restores it too: ratatui's hook does that before the panic message is written.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};
use tenure_console::exit::{Failure, NOT_STARTED};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::top::screen::Key;

/// How soon the thread that reads keys notices that it is no longer needed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A terminal in raw mode, restored when this is dropped.
pub struct TopTerminal {
    terminal: DefaultTerminal,
    keys: mpsc::UnboundedReceiver<Key>,
    is_over: Arc<AtomicBool>,
}

impl TopTerminal {
    /// Takes the whole screen.
    ///
    /// # Errors
    /// stdin or stdout is no terminal.
    pub fn enter() -> Result<Self, Failure> {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return Err(Failure::usage("`tenure top` needs a terminal")
                .hint("`tenure status` prints the same in ten lines, without a terminal"));
        }
        let terminal = ratatui::try_init().map_err(|error| {
            ratatui::restore();
            cannot("be used", &error)
        })?;
        let (send, keys) = mpsc::unbounded_channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let terminal = TopTerminal { terminal, keys, is_over: is_over.clone() };
        std::thread::Builder::new()
            .name("tenure-keys".to_owned())
            .spawn(move || read(&send, &is_over))
            .map_err(|error| cannot("be read", &error))?;
        Ok(terminal)
    }

    /// Draws a frame; only changed cells are written.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, frame: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        self.terminal.draw(frame).map(drop).map_err(|error| cannot("be drawn on", &error))
    }

    /// The next key; `None` if there will be no more.
    pub async fn key(&mut self) -> Option<Key> {
        self.keys.recv().await
    }
}

impl Drop for TopTerminal {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        ratatui::restore();
    }
}

fn cannot(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(NOT_STARTED, format!("the terminal cannot {what}: {error}"))
}

/// Sends keys until the receiver or the terminal is gone.
fn read(send: &mpsc::UnboundedSender<Key>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        match event::poll(LOOK_EVERY) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(_) => return,
        }
        let Ok(event) = event::read() else { return };
        let Some(key) = key(&event) else { continue };
        if send.send(key).is_err() {
            return;
        }
    }
}

/// The key of an event; `None` if the event has no meaning here.
fn key(event: &Event) -> Option<Key> {
    let key = match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        Event::Resize(..) => return Some(Key::Resized),
        _ => return None,
    };
    let has = |modifier| key.modifiers.contains(modifier);
    Some(match key.code {
        KeyCode::Char('c') if has(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char(_) if has(KeyModifiers::CONTROL) || has(KeyModifiers::ALT) => return None,
        KeyCode::Char(letter) => Key::Letter(letter),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab => Key::Tab,
        KeyCode::Enter | KeyCode::Right => Key::Enter,
        KeyCode::Esc | KeyCode::Left => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}

/// Signals that end the process; in raw mode Ctrl-C is a key, not a signal.
pub struct TopSignals(Vec<(i32, Signal)>);

impl TopSignals {
    /// Listens for them from now on.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn listen() -> Result<Self, Failure> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let listened = kinds.into_iter().map(|kind| Ok((kind.as_raw_value(), signal(kind)?)));
        let listened: std::io::Result<_> = listened.collect();
        listened.map(TopSignals).map_err(|error| {
            Failure::new(NOT_STARTED, format!("cannot listen to signals: {error}"))
        })
    }

    /// The number of the next one.
    pub async fn next(&mut self) -> i32 {
        let [(int, a), (term, b), (hup, c)] = self.0.as_mut_slice() else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = a.recv() => *int,
            _ = b.recv() => *term,
            _ = c.recv() => *hup,
        }
    }
}
