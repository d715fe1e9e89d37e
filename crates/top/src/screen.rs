//! What the screen shows and what a key does, without a terminal and without a store.

use tenure_core::attention::{Finding, WatchedSubjects, never_watched};
use tenure_core::names::{JobId, LimitName, PoolName, QueueName, WorkerId};
use tenure_core::time::Moment;
use tenure_seam::CallError;

use crate::asked::Content;
use crate::rows::{self, ScreenRow};

/// What is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum View {
    /// The namespace as it stands.
    Overview,
    /// The unfinished jobs of a queue.
    Queue(QueueName),
    /// Who holds a limit, and who stands in its line.
    Limit(LimitName),
    /// Who holds the resources of a pool.
    Pool(PoolName),
    /// What a worker holds.
    Worker(WorkerId),
    /// Why a job waits.
    Job(JobId),
}

impl View {
    /// What it is, for the first line.
    pub fn title(&self) -> String {
        match self {
            View::Overview => String::new(),
            View::Queue(name) => format!("queue '{name}'"),
            View::Limit(name) => format!("limit '{name}'"),
            View::Pool(name) => format!("pool '{name}'"),
            View::Worker(id) => format!("worker {}", tenure::ids::holder_shown(id.as_str())),
            View::Job(id) => format!("job '{id}'"),
        }
    }
}

/// A key that means something here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// Ten rows up.
    PageUp,
    /// Ten rows down.
    PageDown,
    /// The first row.
    Home,
    /// The last row.
    End,
    /// The next table.
    Tab,
    /// Into what is selected; or the filter is as it shall be.
    Enter,
    /// Back; or without the filter.
    Escape,
    /// The last letter of the filter goes.
    Backspace,
    /// Ctrl-C.
    Interrupt,
    /// A letter.
    Letter(char),
    /// The terminal has another size.
    Resized,
}

/// What follows a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyTurn {
    /// Nothing but to draw.
    Stay,
    /// To ask for another view at once.
    Ask,
    /// The screen is left.
    Leave,
}

/// A view with where the user is in it.
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
    /// When the content was asked for.
    asked_at: Option<Moment>,
    away: Option<String>,
    filter: String,
    is_typing: bool,
    is_paused: bool,
    is_help: bool,
}

impl Screen {
    /// Nothing was answered yet.
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

    /// What is shown.
    pub fn view(&self) -> &View {
        self.open.last().map_or(&View::Overview, |open| &open.view)
    }

    /// What was answered last for this view.
    pub fn content(&self) -> Option<&Content> {
        self.content.as_ref()
    }

    /// What needs attention.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// When the content was asked for.
    pub fn asked_at(&self) -> Option<Moment> {
        self.asked_at
    }

    /// Why nothing was answered, if the last call failed.
    pub fn away(&self) -> Option<&str> {
        self.away.as_deref()
    }

    /// Only rows with this text are shown.
    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// Whether letters go into the filter.
    pub fn is_typing(&self) -> bool {
        self.is_typing
    }

    /// Whether nothing is asked for.
    pub fn is_paused(&self) -> bool {
        self.is_paused && self.content.is_some()
    }

    /// Whether the keys are explained.
    pub fn is_help(&self) -> bool {
        self.is_help
    }

    /// The rows, for a terminal of this width.
    pub fn rows(&self, width: usize) -> Vec<ScreenRow> {
        rows::of(self, width)
    }

    /// The place of the selected row among these.
    pub fn selected(&self, rows: &[ScreenRow]) -> Option<usize> {
        let key = self.open.last()?.selected.as_deref();
        rows.iter()
            .position(|row| row.key.is_some() && row.key.as_deref() == key)
            .or_else(|| rows.iter().position(|row| row.key.is_some()))
    }

    /// Takes an answer.
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
            // As a job that is gone by now.
            Err(CallError::Refused(no)) => {
                self.content = Some(Content::Explained(format!("{}\n", no.detail)));
                self.away = None;
            }
        }
    }

    /// Does what a key says.
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

    /// Another view: what was answered is not of it.
    fn anew(&mut self) -> KeyTurn {
        self.content = None;
        self.filter.clear();
        KeyTurn::Ask
    }
}
