//! Output as people read it: the help and the output of every command, at 80 and at 120 columns, as files that are read
//! one by one when they change. `TENURE_WRITE_SNAPSHOTS=1` writes them again.
//!
//! In output, a part that changes from run to run (moments, ids that are made, processes) is a word in capitals. Since
//! that changes widths, columns are two spaces apart; the width of lines is checked before.
#![cfg(target_os = "linux")]

mod plain;
mod scenes;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// The widths of the terminals.
const WIDTHS: [usize; 2] = [80, 120];

/// The built command in a terminal of this width, as far as it can know, and without the environment of the test's own
/// process.
fn tenure(width: usize, arguments: &[&str]) -> Command {
    let mut command = crate::tenure(arguments);
    command.env("COLUMNS", width.to_string()).env("TZ", "UTC").env("NO_COLOR", "1");
    command
}

/// A command line, its output in a terminal of this width, and its exit code.
fn said(width: usize, line: &str, arguments: &[&str], more: impl FnOnce(&mut Command)) -> String {
    let mut command = tenure(width, arguments);
    more(&mut command);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, told) = (text(output.stdout), text(output.stderr));
    fits(width, &out);
    let mut all = format!("$ {line}\n{out}{told}");
    if !all.ends_with('\n') {
        all.push('\n');
    }
    match output.status.code() {
        Some(0) => all,
        code => format!("{all}[exit {}]\n", code.unwrap()),
    }
}

/// Lines are no wider, except for JSON, which somebody will paste as it stands.
fn fits(width: usize, text: &str) {
    for line in text.lines() {
        let is_json = line.contains("{\"") || line.trim_start().starts_with('"');
        let columns = line.chars().count();
        assert!(is_json || columns <= width, "{columns} columns: {line}");
    }
}

/// Compares with the file of this name, or writes it.
fn compare(width: usize, name: &str, text: &str) {
    let file = format!("tests/fast/snapshots/text/{width}/{name}.txt");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("TENURE_WRITE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    if text != kept {
        let differs = text.lines().zip(kept.lines()).find(|(is, was)| is != was);
        panic!(
            "{} is not what is said now: {differs:?}; read it anew with TENURE_WRITE_SNAPSHOTS=1",
            path.display()
        );
    }
}

/// The names that stand in the list of commands of a help.
fn commands(help: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_list = false;
    for line in help.lines() {
        if !line.starts_with(' ') {
            // The groups of all commands have headings of their own.
            is_list = line.ends_with(':') && !["Arguments:", "Options:"].contains(&line);
        } else if is_list && line.starts_with("  ") && !line.starts_with("   ") {
            names.extend(line.split_whitespace().next().map(str::to_owned));
        }
    }
    names
}

fn help(width: usize, command: &[&str], into: &mut String) {
    let arguments = [command, &["--help"]].concat();
    let text = said(width, &format!("tenure {}", arguments.join(" ")), &arguments, |_| ());
    into.push_str(&text);
    let list = text.split_once("\nCommands:\n").map(|(_, list)| list).unwrap_or_default();
    let list = list.split("\n\n").next().unwrap_or_default();
    for name in commands(&format!("Commands:\n{list}")) {
        into.push('\n');
        help(width, &[command, &[name.as_str()]].concat(), into);
    }
}

/// The names of all commands, from `tenure help --all`.
fn all_commands(all: &str) -> Vec<String> {
    let (groups, _) = all.split_once("\nOptions of every command:").unwrap();
    let names = commands(groups);
    assert!(names.len() > 30, "{names:?}");
    names
}

/// Names a file that no test here writes: nobody would see that it is out of date.
fn no_others(written: &BTreeSet<String>, is_ours: impl Fn(&str) -> bool) {
    for width in WIDTHS {
        let folder = format!("{}/tests/fast/snapshots/text/{width}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(folder).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let name = file.strip_suffix(".txt").unwrap_or(&file);
            assert!(
                !is_ours(name) || written.contains(name),
                "{width}/{file} belongs to no scene any more: delete it"
            );
        }
    }
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/command-line.md");

#[test]
fn the_page_of_the_command_line_is_up_to_date() {
    let all = said(80, "tenure help --all", &["help", "--all"], |_| ());
    let mut page = format!(
        "# Command line\n\n\
         This page is the output of `tenure help --all`, and of `tenure help COMMAND` for each command. \
         Exit codes\nand variables are at the end of the first.\n\n```text\n{all}```\n"
    );
    for name in all_commands(&all) {
        let mut text = String::new();
        help(80, &[&name], &mut text);
        if name == "work" {
            let work = ["help", "work", "--all"];
            text = said(80, "tenure help work --all", &work, |_| ());
        }
        page.push_str(&format!("\n## {name}\n\n```text\n{text}```\n"));
    }
    if std::env::var("TENURE_WRITE_DOCS").is_ok_and(|value| value == "1") {
        std::fs::write(PAGE, &page).unwrap();
    }
    let kept = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        kept == page,
        "docs/reference/command-line.md differs from the command; write it again: \
         TENURE_WRITE_DOCS=1 cargo test -p tenure-cli --test fast snapshots"
    );
}

#[test]
fn the_help_of_every_command_is_as_it_was_read() {
    let mut written: BTreeSet<String> = ["help", "help-work-all"].map(str::to_owned).into();
    for width in WIDTHS {
        let short = said(width, "tenure", &[], |_| ());
        let all = said(width, "tenure help --all", &["help", "--all"], |_| ());
        compare(width, "help", &format!("{short}\n{all}"));
        let work = ["help", "work", "--all"];
        let work = said(width, "tenure help work --all", &work, |_| ());
        compare(width, "help-work-all", &work);
        for name in all_commands(&all) {
            let mut text = String::new();
            help(width, &[&name], &mut text);
            compare(width, &format!("help-{name}"), &text);
            written.insert(format!("help-{name}"));
        }
    }
    no_others(&written, |name| name.starts_with("help"));
}

#[test]
fn every_output_is_as_it_was_read() {
    let mut written = BTreeSet::new();
    for width in WIDTHS {
        for (name, text) in scenes::play(width) {
            compare(width, name, &plain::normalised(&text));
            written.insert(name.to_owned());
        }
    }
    no_others(&written, |name| !name.starts_with("help"));
}
