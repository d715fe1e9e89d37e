//! Shows the crawl while it goes on: bars on a terminal, plain lines elsewhere, on stderr.
//!
//! It draws looks and events, and makes no calls.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::crawl::{ACCOUNTS, HOSTS, PAGES, PER_HOST};
use super::look::{Account, DemoLook};
use crate::output::prose::wrapped;
use crate::output::{colour, width};

/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(2);
/// Columns of an account in a line below the bars: its name, and the process that has it.
const ACCOUNT_WIDTH: usize = 22;
/// Columns before an event: the time.
const TIME_WIDTH: usize = 9;
/// From this width on a line also says how many accounts are held.
const WIDE: usize = 110;

/// The display of the crawl.
pub struct Show {
    begun: Instant,
    bars: Option<Bars>,
    last_line: Option<Instant>,
    width: usize,
}

struct Bars {
    all: MultiProgress,
    hosts: Vec<ProgressBar>,
    /// Each a line of as many accounts as fit.
    accounts: Vec<ProgressBar>,
    accounts_a_line: usize,
}

impl Show {
    /// Bars if stderr is a terminal.
    pub fn new() -> Self {
        let width = width::of_stderr();
        let bars = std::io::stderr().is_terminal().then(|| Bars::new(width)).flatten();
        Show { begun: Instant::now(), bars, last_line: None, width }
    }

    /// Shows an event with its time.
    pub fn tell(&self, text: &str) {
        let text = wrapped(text, self.width - TIME_WIDTH.min(self.width), &" ".repeat(TIME_WIDTH));
        let line = format!("{:5.1} s  {text}", self.begun.elapsed().as_secs_f64());
        match &self.bars {
            Some(bars) => drop(bars.all.println(line)),
            // An unread line must stop nothing.
            None => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }

    /// Draws a look; plain lines at most every `LINE_EVERY`.
    pub fn draw(&mut self, look: &DemoLook) {
        if let Some(bars) = &self.bars {
            return bars.draw(look);
        }
        if self.last_line.is_some_and(|last| last.elapsed() < LINE_EVERY) {
            return;
        }
        self.last_line = Some(Instant::now());
        self.tell(&line(look, self.width));
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

/// One look as a line: how far it is, and how many requests each host has at this moment.
fn line(look: &DemoLook, width: usize) -> String {
    let host = |name: &str| {
        let at_once = look.hosts.get(name).map_or(0, |host| host.in_use);
        format!("{} {at_once}", name.trim_end_matches(".example"))
    };
    let hosts: Vec<String> = HOSTS.iter().map(|(name, _)| host(name)).collect();
    let mut line = format!("{}/{PAGES} pages, at once: {}", look.done, hosts.join(", "));
    if width >= WIDE {
        let held = look.accounts.iter().filter(|one| one.in_use > 0).count();
        line += &format!("; {held} of {ACCOUNTS} accounts in use");
    }
    line
}

impl Bars {
    fn new(width: usize) -> Option<Self> {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let bar = if colour::is_wanted(&std::io::stderr()) { "{bar:30.green}" } else { "{bar:30}" };
        let host = format!("{{prefix:14}} {bar} {{pos:>3}}/{{len}}  {{msg}}");
        let host = ProgressStyle::with_template(&host).ok()?;
        let accounts_a_line = (width / ACCOUNT_WIDTH).clamp(1, ACCOUNTS);
        let plain = ProgressStyle::with_template("{msg}").ok()?;
        let hosts = HOSTS.map(|(name, pages)| {
            let bar = ProgressBar::new(pages as u64);
            let bar = all.add(bar.with_style(host.clone()).with_prefix(name));
            bar.tick();
            bar
        });
        let lines = 0..ACCOUNTS.div_ceil(accounts_a_line);
        let line = |_| all.add(ProgressBar::new(0).with_style(plain.clone()));
        let accounts = lines.map(line).collect();
        Some(Bars { hosts: hosts.into(), accounts, all, accounts_a_line })
    }

    fn draw(&self, look: &DemoLook) {
        for ((name, _), bar) in HOSTS.iter().zip(&self.hosts) {
            let host = look.hosts.get(*name).cloned().unwrap_or_default();
            bar.set_position(host.done);
            let at_once = "●".repeat(host.in_use as usize);
            let free = "○".repeat((PER_HOST as usize).saturating_sub(host.in_use as usize));
            bar.set_message(format!("{at_once}{free} {} in line", host.waiting));
        }
        let cell =
            |one: &Account| format!("{:1$}", format!("{} {}", one.id, one.state), ACCOUNT_WIDTH);
        for (line, bar) in look.accounts.chunks(self.accounts_a_line).zip(&self.accounts) {
            let line: String = line.iter().map(cell).collect();
            bar.set_message(line.trim_end().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::look::Host;

    #[test]
    fn a_line_fits_eighty_columns_when_all_is_at_its_most() {
        let busy = Host { done: 80, in_use: 2, waiting: 60 };
        let hosts = HOSTS.iter().map(|(name, _)| ((*name).to_owned(), busy.clone())).collect();
        let look = DemoLook { hosts, done: 300, ..DemoLook::default() };
        let text = line(&look, 80);
        assert!(text.len() <= 80 - TIME_WIDTH, "{text}");
        assert!(line(&look, WIDE).ends_with("0 of 8 accounts in use"));
    }
}
