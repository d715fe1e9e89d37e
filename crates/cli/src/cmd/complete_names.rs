//! `complete-names`: the names that fit where the cursor is, from the server that the line would ask. The scripts of `tenure
//! completions` start it at each press of the key.
//!
//! It must never be in the way: it prints names and nothing else, it ends within 300 ms whatever a server does, and it asks
//! servers only, since a folder is open for one process at a time.

use std::any::TypeId;
use std::io::{Read, Write};
use std::time::Duration;

use clap::{Arg, Command, CommandFactory};
use tenure::Client;
use tenure::remote::Callee;
use tenure::url::StoreUrl;
use tenure_core::bounds::LIST_MAX;
use tenure_core::names::{FlowName, JobId, JobRef, LimitName, PoolName, QueueName, ScheduleId};
use tenure_core::requests::{
    JobFilter, ListFlows, ListJobs, ListLimits, ListPools, ListQueues, ListSchedules, Page,
};
use tenure_engine_api::CallError;

use crate::args::Cli;
use crate::exit::Failure;
use crate::settings;
use crate::settings::profile;
use crate::settings::token::own_token;
use crate::store::OpenedStore;

/// The person who pressed the key waits for it.
const WITHIN: Duration = Duration::from_millis(300);
/// The family of locks, which the command line names without it.
const LOCK: &str = "lock:";
/// Options that say which server is asked and how it is known; the rest of the line does not matter to it.
const ADDRESSING: [&str; 6] = ["url", "namespace", "profile", "ca", "client_cert", "client_key"];

/// The kind of thing that is named at a place of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NamedThing {
    Queue,
    Limit,
    /// A limit of the family of locks, by its key.
    Lock,
    Pool,
    Job,
    Schedule,
    Flow,
    /// `limit:` or `pool:`, and the name.
    Need,
}

/// Prints the names that fit, each on a line: stdin has the words of the line up to the cursor, each on a line. To have
/// no names is no failure.
pub async fn run() -> Result<(), Failure> {
    // From here on: reading, settings, the token's file and resolving the address take time too.
    std::thread::spawn(|| {
        std::thread::sleep(WITHIN);
        std::process::exit(0);
    });
    let mut text = String::new();
    if std::io::stdin().read_to_string(&mut text).is_err() {
        return Ok(());
    }
    let words: Vec<&str> = text.strip_suffix('\n').unwrap_or(&text).split('\n').collect();
    for name in names(&words).await.unwrap_or_default() {
        // A shell that has gone wants no more of them.
        if writeln!(std::io::stdout(), "{name}").is_err() {
            break;
        }
    }
    Ok(())
}

/// The words that may stand where the last of these stands, whole.
async fn names(words: &[&str]) -> Option<Vec<String>> {
    let (thing, typed) = wanted(words)?;
    let (_, before) = words.split_last()?;
    let line = settings::of_words(addressed(before)).ok()?;
    line.global.url.parse().ok().and_then(|url: StoreUrl| Callee::of(&url))?;
    // A command that prints a token may ask a person for a password.
    if profile::asks_a_command() && own_token().ok()?.is_none() {
        return None;
    }
    let opened = OpenedStore::open(&line.global.url, line.global.namespace, false).ok()?;
    let found = listed(&opened.client, thing).await.ok()?;
    let option = words.last()?.strip_suffix(typed).unwrap_or_default();
    let fits = found.into_iter().filter(|name| name.starts_with(typed) && !name.contains('\n'));
    Some(fits.map(|name| format!("{option}{name}")).collect())
}

/// The kind of thing that the last of these words names, and the part of its name that is typed.
fn wanted<'a>(words: &[&'a str]) -> Option<(NamedThing, &'a str)> {
    let mut root = Cli::command();
    root.build();
    let (typed, before) = words.split_last()?;
    let (mut command, mut at, mut awaits) = (&root, 0, None);
    for word in before.iter().skip(1) {
        if awaits.take().is_some() {
            continue;
        }
        match (word.strip_prefix("--"), command.find_subcommand(word)) {
            // What follows is CMD.
            (Some(""), _) => return None,
            (Some(long), _) => awaits = long_option(command, long),
            (None, _) if word.starts_with('-') => awaits = short_option(command, word),
            (None, Some(sub)) if at == 0 => command = sub,
            (None, _) => at += 1,
        }
    }
    let option = typed.strip_prefix("--").and_then(|typed| typed.split_once('='));
    let (arg, typed) = match (awaits, option) {
        (Some(arg), _) => (arg, *typed),
        (None, Some((long, typed))) => (long_option(command, long)?, typed),
        (None, None) if typed.starts_with('-') => return None,
        (None, None) => (positional(command, at)?, *typed),
    };
    Some((named_by(command, arg)?, typed))
}

/// The option of this name, if its value is the next word.
fn long_option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let fits = |arg: &&Arg| arg.get_long() == Some(name) && arg.get_action().takes_values();
    command.get_arguments().find(fits)
}

fn short_option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let mut letters = word.chars().skip(1);
    let (letter, None) = (letters.next()?, letters.next()) else { return None };
    let fits = |arg: &&Arg| arg.get_short() == Some(letter) && arg.get_action().takes_values();
    command.get_arguments().find(fits)
}

/// The argument without a name at this place, before any `--`; the last one may stand for several.
fn positional(command: &Command, at: usize) -> Option<&Arg> {
    let places = || command.get_positionals().filter(|arg| !arg.is_last_set());
    let several = |arg: &&Arg| arg.get_num_args().is_some_and(|range| range.max_values() > 1);
    places().nth(at).or_else(|| places().last().filter(several))
}

/// The thing that an argument names, by the type of its value.
pub fn named_by(command: &Command, arg: &Arg) -> Option<NamedThing> {
    let of = arg.get_value_parser().type_id();
    let of_lock = command.get_name() == "lock";
    [
        (TypeId::of::<QueueName>(), NamedThing::Queue),
        (TypeId::of::<LimitName>(), if of_lock { NamedThing::Lock } else { NamedThing::Limit }),
        (TypeId::of::<PoolName>(), NamedThing::Pool),
        (TypeId::of::<JobRef>(), NamedThing::Job),
        (TypeId::of::<ScheduleId>(), NamedThing::Schedule),
        (TypeId::of::<FlowName>(), NamedThing::Flow),
    ]
    .into_iter()
    .find_map(|(id, thing)| (of == id).then_some(thing))
    .or_else(|| match arg.get_id().as_str() {
        "needs" => Some(NamedThing::Need),
        // `--id` names a new job.
        "job" if arg.get_long() == Some("job") && of == TypeId::of::<JobId>() => {
            Some(NamedThing::Job)
        }
        _ => None,
    })
}

/// A line that asks the same server, with the addressing options of `words`.
fn addressed(words: &[&str]) -> Vec<std::ffi::OsString> {
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(words).ok();
    let mut line = vec!["tenure".into()];
    for name in ADDRESSING {
        let on_line = matches.as_ref().filter(|matches| {
            matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine)
        });
        let values = on_line.and_then(|matches| matches.get_raw(name)).into_iter().flatten();
        for value in values {
            line.push(format!("--{}", name.replace('_', "-")).into());
            line.push(value.to_owned());
        }
    }
    line.push("stats".into());
    line
}

async fn listed(client: &Client, thing: NamedThing) -> Result<Vec<String>, CallError> {
    let page = || Page { max: LIST_MAX, cursor: None };
    let limits = async || client.run(ListLimits { page: page() }).await;
    let pools = async || client.run(ListPools { page: page() }).await;
    Ok(match thing {
        NamedThing::Queue => {
            let found = client.run(ListQueues { page: page() }).await?;
            found.items.into_iter().map(|one| one.name.to_string()).collect()
        }
        NamedThing::Limit => limits().await?.items.iter().map(|one| one.name.to_string()).collect(),
        NamedThing::Lock => {
            let found = limits().await?;
            let keys = found.items.iter().filter_map(|one| one.name.as_str().strip_prefix(LOCK));
            keys.filter(|key| *key != "*").map(str::to_owned).collect()
        }
        NamedThing::Pool => pools().await?.items.iter().map(|one| one.name.to_string()).collect(),
        NamedThing::Need => {
            let (limits, pools) = tokio::try_join!(limits(), pools())?;
            let limits = limits.items.iter().map(|one| format!("limit:{}", one.name));
            let pools = pools.items.iter().map(|one| format!("pool:{}", one.name));
            limits.filter(|need| !need.ends_with('*')).chain(pools).collect()
        }
        NamedThing::Job => {
            let list = ListJobs { filter: JobFilter::default(), page: page(), full: false };
            client.run(list).await?.items.into_iter().map(|one| one.id.to_string()).collect()
        }
        NamedThing::Schedule => {
            let list = ListSchedules { owner: None, full: false, page: page() };
            client.run(list).await?.items.into_iter().map(|one| one.id.to_string()).collect()
        }
        NamedThing::Flow => {
            let found = client.run(ListFlows { page: page() }).await?;
            found.items.into_iter().map(|one| one.flow.to_string()).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_an_argument_says_what_is_named_there() {
        use NamedThing::{Flow, Job, Limit, Lock, Need, Pool, Queue, Schedule};
        for (line, expected) in [
            ("queue ", Some((Queue, ""))),
            ("queue pause ma", Some((Queue, "ma"))),
            ("push ", Some((Queue, ""))),
            ("push mail ", None),
            ("push mail --id ", None),
            ("push mail --after ", None),
            ("push mail 1 --need limit:s", Some((Need, "limit:s"))),
            ("work a ", Some((Queue, ""))),
            ("work a -- ", None),
            ("jobs --queue ", Some((Queue, ""))),
            ("jobs --queue=ma", Some((Queue, "ma"))),
            ("jobs --state failed --queue ma", Some((Queue, "ma"))),
            ("jobs --st", None),
            ("--json --url http://h:1 explain ", Some((Job, ""))),
            ("cancel a b ", Some((Job, ""))),
            ("events --job ", Some((Job, ""))),
            ("limit site:ex", Some((Limit, "site:ex"))),
            ("limit set --concurrency 2 ", Some((Limit, ""))),
            ("lock ", Some((Lock, ""))),
            ("lock deploy -- ", None),
            ("pool restore ", Some((Pool, ""))),
            ("schedule pause ", Some((Schedule, ""))),
            ("flow ", Some((Flow, ""))),
            ("", None),
            ("no-such ", None),
        ] {
            let words: Vec<&str> = ["tenure"].into_iter().chain(line.split(' ')).collect();
            assert_eq!(wanted(&words), expected, "{line:?}");
        }
        assert_eq!(wanted(&[]), None);
    }

    #[test]
    fn only_what_names_the_server_is_taken_from_the_line() {
        for (line, expected) in [
            ("tenure queue", "tenure stats"),
            ("tenure queue pause --url http://h:1", "tenure --url http://h:1 stats"),
            (
                "tenure --profile p push q --namespace team",
                "tenure --namespace team --profile p stats",
            ),
            ("tenure push --url", "tenure stats"),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let said: Vec<_> =
                addressed(&words).into_iter().map(|word| word.into_string().unwrap()).collect();
            assert_eq!(said.join(" "), expected, "{line}");
        }
    }
}
