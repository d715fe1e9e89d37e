//! `tenure completions`: the script of a shell. clap writes the part that never changes (commands, options, words);
//! behind it stands the part that asks a server for names (`complete-names`).

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::cmd::complete_names::named_by;
use crate::exit::Failure;
use crate::output::Output;

/// To bash, a word with a colon is several words, so it gets only the part after the last colon. clap offers the places
/// of arguments (`[NAME]`) as if they were words.
const BASH: &str = r#"
_tenure_names() {
    _tenure "$@"
    local word name offered=() line="${COMP_LINE:0:COMP_POINT}" IFS=$' \t\n'
    for word in "${COMPREPLY[@]}"; do
        [[ $word == [\[\<]* ]] || offered+=("$word")
    done
    COMPREPLY=("${offered[@]}")
    local words=()
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word="${words[${#words[@]}-1]}"
    while IFS= read -r name; do
        printf -v name %q "${name#"${word%"${word##*[:=]}"}"}"
        COMPREPLY+=("$name")
    done < <(printf '%s\n' "${words[@]}" | "$1" complete-names 2>/dev/null)
}
complete -F _tenure_names -o bashdefault -o default tenure
"#;

/// Where zsh reads the script as the function itself (from `fpath`), the first call is made at its end.
const ZSH: &str = r#"
_tenure_names() {
    local -a names
    names=("${(@f)$(printf '%s\n' "${(@)words[1,CURRENT]}" | "${words[1]}" complete-names 2>/dev/null)}")
    names=("${(@)names:#}")
    local found=1
    (( $#names )) && compadd -a names && found=0
    _tenure "$@" && found=0
    return $found
}

if [[ "${funcstack[1]}" == _tenure ]]; then
    _tenure_names "$@"
fi
compdef _tenure_names tenure
"#;

const FISH: &str = r#"
function __tenure_names
    begin
        commandline -opc
        commandline -ct
    end | command tenure complete-names 2>/dev/null
end
complete -c tenure -a '(__tenure_names)'
"#;

/// Where clap's script for zsh starts what it defined.
const ZSH_START: &str = "\nif [ \"$funcstack[1]\" = \"_tenure\" ]; then";

/// Prints the completions of a shell.
pub fn run(out: Output, shell: Shell) -> Result<(), Failure> {
    out.text(&script(shell))
}

fn script(shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tenure", &mut text);
    let mut text = String::from_utf8_lossy(&text).into_owned();
    match shell {
        Shell::Bash => text.push_str(BASH),
        Shell::Zsh => {
            text.truncate(text.find(ZSH_START).unwrap_or(text.len()));
            text.push_str(ZSH);
        }
        Shell::Fish => {
            text.push_str(FISH);
            let mut root = Cli::command();
            root.build();
            let mut options = Vec::new();
            options_with_names(&root, &mut options);
            options.sort_unstable();
            options.dedup();
            for option in options {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "complete -c tenure -l {option} -x -a '(__tenure_names)'");
            }
        }
        _ => {}
    }
    text
}

/// The long options whose value is a name, of a command and all below it.
fn options_with_names(command: &Command, options: &mut Vec<String>) {
    let named = command.get_arguments().filter(|arg| named_by(command, arg).is_some());
    options.extend(named.filter_map(Arg::get_long).map(str::to_owned));
    command.get_subcommands().for_each(|sub| options_with_names(sub, options));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_of_three_shells_ask_for_names() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert!(script(shell).contains("complete-names 2>/dev/null"), "{shell}");
        }
        assert!(!script(Shell::Zsh).contains(ZSH_START));
        let fish = script(Shell::Fish);
        assert!(fish.contains("complete -c tenure -l queue -x -a '(__tenure_names)'"), "{fish}");
        assert!(!fish.contains("-l id -x"), "the id of a push is a new one");
    }
}
