//! Tips for commands that do not exist, under names that other programs have for them.

/// A tip for a command that does not exist.
pub fn where_to_look(word: &str) -> &'static str {
    match word {
        "bench" => {
            "measuring is a program of its own: in a clone of Tenure, `cargo run --release --package \
             tenure-lab -- bench`"
        }
        "worker" | "consume" => {
            "`tenure work QUEUE -- CMD` runs jobs; `tenure help --all` lists all commands"
        }
        "pause" | "resume" => {
            "`tenure queue pause QUEUE`, `tenure limit pause LIMIT` and `tenure schedule pause ID` do; \
             `tenure help --all` lists all commands"
        }
        "dashboard" | "ui" | "web" => "the dashboard is at the address of the server, in a browser",
        "ls" | "list" => "`tenure jobs` lists jobs; `tenure help --all` lists all commands",
        "config" => {
            "`tenure serve --print-config` shows the settings of a server; see docs/guides/settings.md"
        }
        "logs" | "log" => {
            "a server and a worker write to stderr; `tenure events` shows what happened to jobs"
        }
        _ => "`tenure help --all` lists all commands",
    }
}
