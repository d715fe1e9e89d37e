//! How the crawl is shown while it goes on: bars on a terminal, plain lines elsewhere, on stderr.
//!
//! It draws looks and tells events; it asks nobody anything.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::crawl::{ACCOUNTS, HOSTS, PAGES, PER_HOST};
use super::look::{Account, DemoLook};

/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(2);
/// Accounts in one line of the bars.
const ACCOUNTS_A_LINE: usize = 4;

/// What is drawn on.
pub struct Show {
    begun: Instant,
    bars: Option<Bars>,
    last_line: Option<Instant>,
}

struct Bars {
    all: MultiProgress,
    hosts: Vec<ProgressBar>,
    accounts: Vec<ProgressBar>,
}

impl Show {
    /// Bars if stderr is a terminal.
    pub fn new() -> Self {
        let bars = std::io::stderr().is_terminal().then(Bars::new).flatten();
        Show { begun: Instant::now(), bars, last_line: None }
    }

    /// Tells something that happened.
    pub fn tell(&self, text: &str) {
        let line = format!("{:5.1} s  {text}", self.begun.elapsed().as_secs_f64());
        match &self.bars {
            Some(bars) => drop(bars.all.println(line)),
            // That nobody reads it stops nothing.
            None => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }

    /// Draws a look.
    pub fn draw(&mut self, look: &DemoLook) {
        if let Some(bars) = &self.bars {
            return bars.draw(look);
        }
        if self.last_line.is_some_and(|last| last.elapsed() < LINE_EVERY) {
            return;
        }
        self.last_line = Some(Instant::now());
        let hosts: Vec<String> = HOSTS
            .iter()
            .map(|(name, _)| {
                let host = look.hosts.get(*name).cloned().unwrap_or_default();
                format!("{name} {} ({} at once)", host.done, host.in_use)
            })
            .collect();
        let held = look.accounts.iter().filter(|one| one.in_use > 0).count();
        self.tell(&format!(
            "{}/{PAGES} pages, {held} accounts held: {}",
            look.done,
            hosts.join(", ")
        ));
    }

    /// Ends the drawing, so that what follows stands below it.
    pub fn end(&mut self) {
        if let Some(bars) = self.bars.take() {
            for bar in bars.hosts.iter().chain(&bars.accounts) {
                bar.abandon();
            }
        }
    }
}

impl Bars {
    fn new() -> Option<Self> {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let host =
            ProgressStyle::with_template("{prefix:14} {bar:30} {pos:>3}/{len}  {msg}").ok()?;
        let plain = ProgressStyle::with_template("{msg}").ok()?;
        let hosts = HOSTS.map(|(name, pages)| {
            let bar = ProgressBar::new(pages as u64);
            let bar = all.add(bar.with_style(host.clone()).with_prefix(name));
            bar.tick();
            bar
        });
        let lines = 0..ACCOUNTS.div_ceil(ACCOUNTS_A_LINE);
        let line = |_| all.add(ProgressBar::new(0).with_style(plain.clone()));
        let accounts = lines.map(line).collect();
        Some(Bars { hosts: hosts.into(), accounts, all })
    }

    fn draw(&self, look: &DemoLook) {
        for ((name, _), bar) in HOSTS.iter().zip(&self.hosts) {
            let host = look.hosts.get(*name).cloned().unwrap_or_default();
            bar.set_position(host.done);
            let at_once = "●".repeat(host.in_use as usize);
            let free = "○".repeat((PER_HOST as usize).saturating_sub(host.in_use as usize));
            bar.set_message(format!("{at_once}{free} {} in line", host.waiting));
        }
        let cell = |one: &Account| format!("{:22}", format!("{} {}", one.id, one.state));
        for (line, bar) in look.accounts.chunks(ACCOUNTS_A_LINE).zip(&self.accounts) {
            bar.set_message(line.iter().map(cell).collect::<String>());
        }
    }
}
