//! The progress of a copy on stderr: a bar on a terminal, otherwise a line every few seconds.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tenure_core::time::Span;
use tenure_engine::copy::{CopyError, CopyNews, CopyWatch};

use crate::output::tell;

/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// See the module.
pub struct CopyShow {
    from: String,
    /// The source was paused, so it stays so.
    pub paused: bool,
    bar: Option<ProgressBar>,
    line: Instant,
}

impl CopyShow {
    /// A bar if stderr is a terminal.
    pub fn new(from: &str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            match ProgressStyle::with_template("{bar:30} {pos} of {len} jobs {per_sec} {eta}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        CopyShow { from: from.to_owned(), paused: false, bar, line: Instant::now() }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Whether another line that comes now and then may come.
    fn is_due(&mut self) -> bool {
        let due = self.line.elapsed() >= LINE_EVERY;
        if due {
            self.line = Instant::now();
        }
        due
    }

    fn say(&self, sentence: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| tell(sentence)),
            None => tell(sentence),
        }
    }
}

impl CopyWatch for CopyShow {
    fn told(&mut self, what: &CopyNews) -> Result<(), CopyError> {
        self.paused = true;
        match what {
            CopyNews::Paused { again: false } => {
                self.say(&format!("{} is paused until it is thawed", self.from))
            }
            CopyNews::Paused { again: true } => {
                self.say(&format!("{} is paused, and its copy starts again", self.from));
            }
            CopyNews::Moved { jobs, of } => {
                if let Some(bar) = &self.bar {
                    bar.set_length(*of);
                    bar.set_position(*jobs);
                } else if self.is_due() {
                    self.say(&format!("{jobs} of {of} jobs"));
                }
            }
            CopyNews::Away(why) if self.is_due() => self.say(&format!("{why}; trying again")),
            CopyNews::Away(_) => {}
            CopyNews::Waits(long) => self.say(&format!(
                "all rows are copied; waiting {} for the last lease of the source to expire",
                Span::from_ms(long.us().div_ceil(1_000))
            )),
        }
        Ok(())
    }

    fn wait(&mut self, long: Span) {
        std::thread::sleep(long.std());
    }
}
