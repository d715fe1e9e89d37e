//! How wide a line may be.

use std::io::IsTerminal;

/// Where nothing else is known.
const USUAL: usize = 80;
/// Lines of prose that are longer are hard to read.
const PROSE_MAX: usize = 100;

/// The columns of stdout: of the terminal, or from COLUMNS; `None` if it is neither, since output to a file or another
/// program is never cut.
pub fn of_stdout() -> Option<usize> {
    let terminal = || terminal_size::terminal_size_of(std::io::stdout()).map(|(w, _)| w.0.into());
    terminal().filter(|_| std::io::stdout().is_terminal()).or_else(said)
}

/// The columns of stderr, for drawing on it.
pub fn of_stderr() -> usize {
    let terminal = terminal_size::terminal_size_of(std::io::stderr()).map(|(w, _)| w.0.into());
    terminal.or_else(said).unwrap_or(USUAL)
}

/// The columns of prose on stdout.
pub fn of_prose() -> usize {
    of_stdout().unwrap_or(USUAL).min(PROSE_MAX)
}

fn said() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}
