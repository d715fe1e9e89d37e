//! `tenure copy`: all of a store to another, with the source paused.
//!
//! The protocol is [`tenure_engine::copy`]'s; this opens the two stores and shows the progress. It shows neither the data of
//! a resource nor a password.

mod show;

use serde::Serialize;
use tenure::url::StoreUrl;
use tenure_engine::CopyFolder;
use tenure_engine::copy::{self, CopyError, CopyPlan, CopyReport, Source, Target};
use tenure_node::CopyRedis;

use crate::args::copy::CopyArgs;
use crate::exit::{BUG, DISK, Failure, NO, UNAVAILABLE};
use crate::output::{Output, printable};
use crate::store::{not_opened, said};

use self::show::CopyShow;

/// A store in the hands of a copy.
enum Hands {
    Folder(Box<CopyFolder>),
    Redis(Box<CopyRedis>),
}

impl Hands {
    fn source(&self) -> &dyn Source {
        match self {
            Hands::Folder(folder) => &**folder,
            Hands::Redis(copy) => &**copy,
        }
    }
    fn target(&self) -> &dyn Target {
        match self {
            Hands::Folder(folder) => &**folder,
            Hands::Redis(copy) => &**copy,
        }
    }
}

/// Which of the two stores.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    From,
    To,
}

/// A store as it was said.
struct SaidStore {
    url: StoreUrl,
    /// Without a password.
    shown: String,
}

impl SaidStore {
    fn parse(text: &str, side: Side) -> Result<Self, Failure> {
        let option = if side == Side::From { "--from" } else { "--to" };
        let usage = |why: String| Failure::usage(format!("{option}: {why}"));
        let url: StoreUrl = text.parse().map_err(|why| usage(format!("{why}")))?;
        let shown = match &url {
            StoreUrl::Server(_) | StoreUrl::Servers(_) => {
                return Err(usage("this is a server, not a store".to_owned()).hint(
                    "stop the server, and name its store: file:PATH, or redis:// and the like",
                ));
            }
            StoreUrl::Memory => {
                return Err(usage("a store in memory ends with this command".to_owned())
                    .hint("name file:PATH, or redis:// and the like"));
            }
            StoreUrl::File(path) => {
                // The other side remembers it, and whoever reads that may be elsewhere.
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                format!("file:{}", path.display())
            }
            StoreUrl::Redis(address) => address.to_string(),
        };
        Ok(SaidStore { url, shown })
    }

    /// `make`: a folder that is not there is made.
    fn open(&self, make: bool) -> Result<Hands, Failure> {
        match &self.url {
            StoreUrl::File(path) => {
                let opened = if make { CopyFolder::target(path) } else { CopyFolder::source(path) };
                Ok(Hands::Folder(Box::new(opened.map_err(|why| not_opened(&why))?)))
            }
            StoreUrl::Redis(address) => {
                let (address, name) = (address.clone(), address.name().to_owned());
                let opened = if make {
                    CopyRedis::target(address, &name)
                } else {
                    CopyRedis::source(address, &name)
                };
                let opened = opened.map_err(|why| said(UNAVAILABLE, &why.to_string()))?;
                Ok(Hands::Redis(Box::new(opened)))
            }
            StoreUrl::Server(_) | StoreUrl::Servers(_) | StoreUrl::Memory => {
                Err(Failure::bug("this is no store"))
            }
        }
    }
}

/// Copies, or undoes it.
pub async fn run(out: Output, args: CopyArgs) -> Result<(), Failure> {
    let copies = tokio::task::spawn_blocking(move || run_blocking(out, args));
    copies.await.map_err(|why| Failure::bug(why.to_string()))?
}

fn run_blocking(out: Output, args: CopyArgs) -> Result<(), Failure> {
    let named =
        |text: Option<String>, side| text.map(|text| SaidStore::parse(&text, side)).transpose();
    let (from, to) = (named(args.from, Side::From)?, named(args.to, Side::To)?);
    match (from, to, args.thaw) {
        (Some(from), Some(to), false) => run_copy(out, &from, &to),
        (Some(from), None, true) => thaw_source(out, &from, args.force),
        (None, Some(to), true) => thaw_target(out, &to),
        (Some(_), Some(_), true) => Err(Failure::usage("--thaw takes one store, not two")
            .hint("name the source with --from, or the target with --to")),
        (_, _, true) => Err(Failure::usage("--thaw needs a store")
            .hint("name the source with --from, or the target with --to")),
        (_, _, false) => Err(Failure::usage("copy needs --from and --to")
            .hint("tenure copy --from file:./tenure-data --to redis://HOST:6379")),
    }
}

fn run_copy(out: Output, from: &SaidStore, to: &SaidStore) -> Result<(), Failure> {
    if from.shown == to.shown {
        return Err(Failure::usage(format!("--from and --to are the same store: {}", from.shown)));
    }
    // The source first: that it is not there is no reason to make a target.
    let (source, target) = (from.open(false)?, to.open(true)?);
    let copy = tenure::ids::request_id().as_str().replacen("req_", "copy_", 1);
    let plan = CopyPlan { copy, from: from.shown.clone(), to: to.shown.clone() };
    let mut show = CopyShow::new(&plan);
    let done = copy::copy(source.source(), target.target(), &plan, &mut show);
    show.end();
    if done.is_err() && show.paused {
        crate::output::hint(&format!(
            "{} stays paused: repeat the command to start the copy again, or see `tenure copy \
             --help` to undo it",
            from.shown
        ));
    }
    let report = done.map_err(failure)?;
    out.answer(&report, in_words)?;
    crate::output::hint(&format!(
        "{} stays paused; to use it again and never the copy in {}: tenure copy --thaw --force --from \
         '{}'",
        from.shown, to.shown, from.shown
    ));
    Ok(())
}

fn in_words(report: &CopyReport) -> String {
    let CopyReport { from, to, moved, namespaces, .. } = report;
    if report.already {
        return format!("{} was copied to {} already\n", printable(from), printable(to));
    }
    format!(
        "{} is copied to {}: {} unfinished and {} finished jobs, {} schedules, {} queues, {} limits, \
         {} pools with {} resources, in {} namespaces; {} leases ended as released.\n",
        printable(from),
        printable(to),
        moved.unfinished,
        moved.finished,
        moved.schedules,
        moved.queues,
        moved.limits,
        moved.pools,
        moved.resources,
        namespaces.len(),
        moved.released
    )
}

/// What a thaw did.
#[derive(Serialize)]
struct Thawed<'a> {
    store: &'a str,
    thawed: bool,
}

fn thaw_source(out: Output, from: &SaidStore, force: bool) -> Result<(), Failure> {
    let source = from.open(false)?;
    let mark = copy::thaw_source(source.source(), &from.shown, force).map_err(failure)?;
    let thawed = Thawed { store: &from.shown, thawed: mark.is_some() };
    out.answer(&thawed, |thawed| {
        let what = if thawed.thawed { "is served again" } else { "was not paused by a copy" };
        format!("{} {what}\n", printable(thawed.store))
    })?;
    if let Some(mark) = mark.filter(|mark| !mark.whole) {
        crate::output::hint(&format!(
            "to discard the unfinished copy in {}: tenure copy --thaw --to '{}'",
            mark.to, mark.to
        ));
    }
    Ok(())
}

fn thaw_target(out: Output, to: &SaidStore) -> Result<(), Failure> {
    let target = to.open(false)?;
    let thawed = copy::thaw_target(target.target(), &to.shown).map_err(failure)?;
    out.answer(&Thawed { store: &to.shown, thawed }, |thawed| {
        let what = if thawed.thawed { "holds no copy now" } else { "is empty" };
        format!("{} {what}\n", printable(thawed.store))
    })
}

fn failure(why: CopyError) -> Failure {
    match why {
        CopyError::No { sentence, hint } => Failure::new(NO, sentence).hint(hint),
        CopyError::Fault(fault) => fault.into(),
        CopyError::Disk(why) => Failure::new(DISK, why)
            .hint("repair the disk, then repeat the command to start the copy again"),
        stopped @ CopyError::Stopped => Failure::new(BUG, stopped.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_with_its_store_name_and_no_password() {
        for (text, shown) in [
            ("redis://:geheim@host", "redis://•••@host:6379"),
            ("redis://host?name=app", "redis://host:6379?name=app"),
            ("file:/var/lib/t", "file:/var/lib/t"),
        ] {
            let named = SaidStore::parse(text, Side::From).map(|named| named.shown);
            assert_eq!(named.as_deref(), Ok(shown), "{text}");
        }
        for text in ["http://host", "memory:", "nothing"] {
            let no = SaidStore::parse(text, Side::To).err().map(|no| no.code);
            assert_eq!(no, Some(crate::exit::USAGE), "{text}");
        }
    }
}
