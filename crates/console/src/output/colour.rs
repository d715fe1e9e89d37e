//! Colours, where a person sees them: on a terminal, unless NO_COLOR says otherwise.

use std::io::IsTerminal;

use clap::builder::styling::{AnsiColor, Style};

/// Whether colours are wanted on this stream.
pub fn is_wanted(stream: &impl IsTerminal) -> bool {
    let no = std::env::var_os("NO_COLOR").is_some_and(|no| !no.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !no && !dumb
}

/// A text of stdout in a colour.
pub fn painted(text: &str, colour: AnsiColor) -> String {
    if !is_wanted(&std::io::stdout()) {
        return text.to_owned();
    }
    let style: Style = colour.on_default();
    format!("{style}{text}{style:#}")
}
