//! State of the screen and the effect of each key, without a terminal and without a store.

use tenure_core::attention::{Finding, WatchedSubjects, never_watched};
use tenure_core::time::Moment;
use tenure_engine_api::CallError;

use crate::top::asked::Content;
use crate::top::rows::{self, ScreenRow};
use crate::top::view::View;

/// A key that means something here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    Up,
    Down,
    /// Selects the row ten rows up.
    PageUp,
    /// Selects the row ten rows down.
    PageDown,
    Home,
    End,
    /// Selects the first row of the next table.
    Tab,
    /// Opens the selected row, or ends the typing of the filter.
    Enter,
    /// Clears the filter if there is one, otherwise goes back.
    Escape,
    /// Deletes the last letter of the filter while it is typed, otherwise goes back.
    Backspace,
    /// Ctrl-C, which is a key in raw mode.
    Interrupt,
    /// A command, or a letter of the filter.
    Letter(char),
    /// The terminal has another size.
    Resized,
}

/// The next step after a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyTurn {
    /// Draw the screen again, nothing more.
    Stay,
    /// Request the content of the view at once.
    Ask,
    /// Leave the screen and end.
    Leave,
}

/// An open view and the user's place in it.
struct OpenView {
    view: View,
    /// The key of the selected row; the first row that can be selected, if it is not there.
    selected: Option<String>,
}

/// Everything that is drawn.
pub struct Screen {
    address: String,
    namespace: String,
    open: Vec<OpenView>,
    content: Option<Content>,
    findings: Vec<Finding>,
    watched: WatchedSubjects,
    /// When the content was requested.
    asked_at: Option<Moment>,
    away: Option<String>,
    filter: String,
    is_typing: bool,
    is_paused: bool,
    is_help: bool,
}

impl Screen {
    /// A screen before the first answer.
    pub fn new(address: String, namespace: String) -> Self {
        Screen {
            address,
            namespace,
            open: vec![OpenView { view: View::Overview, selected: None }],
            content: None,
            findings: Vec::new(),
            watched: WatchedSubjects::default(),
            asked_at: None,
            away: None,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            is_help: false,
        }
    }

    /// The address and the namespace.
    pub fn place(&self) -> (&str, &str) {
        (&self.address, &self.namespace)
    }

    /// The view that was opened last.
    pub fn view(&self) -> &View {
        self.open.last().map_or(&View::Overview, |open| &open.view)
    }

    /// The last answer for this view; `None` before the first one.
    pub fn content(&self) -> Option<&Content> {
        self.content.as_ref()
    }

    /// When the content was requested.
    pub fn asked_at(&self) -> Option<Moment> {
        self.asked_at
    }

    /// The error of the last call, if it failed.
    pub fn away(&self) -> Option<&str> {
        self.away.as_deref()
    }

    /// Only rows with this text are shown.
    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// Whether letters are added to the filter.
    pub fn is_typing(&self) -> bool {
        self.is_typing
    }

    /// Whether refreshes are paused.
    pub fn is_paused(&self) -> bool {
        self.is_paused && self.content.is_some()
    }

    /// Whether the keys are explained.
    pub fn is_help(&self) -> bool {
        self.is_help
    }

    /// The rows, for a terminal of this width.
    pub fn rows(&self, width: usize) -> Vec<ScreenRow> {
        let now = self.asked_at.unwrap_or(Moment::ZERO);
        rows::of(self.content.as_ref(), &self.findings, &self.filter, now, width)
    }

    /// The index of the selected row among these.
    pub fn selected(&self, rows: &[ScreenRow]) -> Option<usize> {
        let key = self.open.last()?.selected.as_deref();
        rows.iter()
            .position(|row| row.key.is_some() && row.key.as_deref() == key)
            .or_else(|| rows.iter().position(|row| row.key.is_some()))
    }

    /// Shows an answer: a fault leaves the content as it is, a refusal replaces it.
    pub fn answered(&mut self, answer: Result<(Moment, Content), CallError>) {
        match answer {
            Ok((now, content)) => {
                if let Content::Overview(replies) = &content {
                    self.watched.look(&replies.replies(&never_watched));
                    self.findings = replies.findings(&|subject| self.watched.since(subject));
                }
                self.content = Some(content);
                self.asked_at = Some(now);
                self.away = None;
            }
            Err(CallError::Fault(fault)) => self.away = Some(fault.to_string()),
            // For example, a job that is gone by now.
            Err(CallError::Refused(no)) => {
                self.content = Some(Content::Explained(format!("{}\n", no.detail)));
                self.away = None;
            }
        }
    }

    /// Applies one key to the screen.
    pub fn key(&mut self, key: Key) -> KeyTurn {
        if key == Key::Interrupt {
            return KeyTurn::Leave;
        }
        if self.is_help {
            self.is_help = key == Key::Resized;
            return KeyTurn::Stay;
        }
        if self.is_typing {
            match key {
                Key::Letter(letter) => self.filter.push(letter),
                Key::Backspace => drop(self.filter.pop()),
                Key::Enter => self.is_typing = false,
                Key::Escape => {
                    self.filter.clear();
                    self.is_typing = false;
                }
                _ => {}
            }
            return KeyTurn::Stay;
        }
        match key {
            Key::Up | Key::Letter('k') => self.step(-1),
            Key::Down | Key::Letter('j') => self.step(1),
            Key::PageUp => self.step(-10),
            Key::PageDown => self.step(10),
            Key::Home | Key::Letter('g') => self.step(isize::MIN),
            Key::End | Key::Letter('G') => self.step(isize::MAX),
            Key::Tab => self.next_table(),
            Key::Letter('?') => self.is_help = true,
            Key::Letter('/') => self.is_typing = true,
            Key::Letter('p') => {
                self.is_paused = !self.is_paused;
                return if self.is_paused { KeyTurn::Stay } else { KeyTurn::Ask };
            }
            Key::Letter('r') => return KeyTurn::Ask,
            Key::Enter => return self.enter(),
            Key::Escape if !self.filter.is_empty() => self.filter.clear(),
            Key::Escape | Key::Backspace if self.open.len() > 1 => return self.back(),
            Key::Letter('q') if self.open.len() > 1 => return self.back(),
            Key::Letter('q') => return KeyTurn::Leave,
            _ => {}
        }
        KeyTurn::Stay
    }

    /// The keys of the rows that can be selected, with the table that each stands in. They do not depend on the width.
    fn keys(&self) -> Vec<(String, usize)> {
        let mut table = 0;
        let mut keys = Vec::new();
        for row in self.rows(80) {
            match row.key {
                Some(key) => keys.push((key, table)),
                None => table += 1,
            }
        }
        keys
    }

    fn select(&mut self, key: Option<String>) {
        if let Some(open) = self.open.last_mut() {
            open.selected = key;
        }
    }

    fn place_of_selected(&self, keys: &[(String, usize)]) -> usize {
        let selected = self.open.last().and_then(|open| open.selected.as_deref());
        keys.iter().position(|(key, _)| Some(key.as_str()) == selected).unwrap_or(0)
    }

    fn step(&mut self, by: isize) {
        let keys = self.keys();
        let at = self.place_of_selected(&keys).saturating_add_signed(by);
        self.select(keys.get(at.min(keys.len().saturating_sub(1))).map(|(key, _)| key.clone()));
    }

    fn next_table(&mut self) {
        let keys = self.keys();
        let at = self.place_of_selected(&keys);
        let here = keys.get(at).map(|(_, table)| *table);
        let next = keys.iter().skip(at).find(|(_, table)| Some(*table) != here);
        self.select(next.or(keys.first()).map(|(key, _)| key.clone()));
    }

    fn enter(&mut self) -> KeyTurn {
        let rows = self.rows(80);
        let Some(opens) = self.selected(&rows).and_then(|at| rows[at].opens.clone()) else {
            return KeyTurn::Stay;
        };
        let key = self.selected(&rows).and_then(|at| rows[at].key.clone());
        self.select(key);
        self.open.push(OpenView { view: opens, selected: None });
        self.anew()
    }

    fn back(&mut self) -> KeyTurn {
        self.open.pop();
        self.anew()
    }

    /// Begins another view: the last answer does not belong to it.
    fn anew(&mut self) -> KeyTurn {
        self.content = None;
        self.filter.clear();
        KeyTurn::Ask
    }
}
