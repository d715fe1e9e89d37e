//! `tenure copy`: all of a store to another, with the source paused.
//!
//! The protocol is [`tenure_engine::copy`]'s; this opens the two stores and shows the progress. It shows neither the data of
//! a resource nor a password.

pub mod show;
pub mod stores;
pub mod trail;

use serde::Serialize;
use tenure_engine::Seal;
use tenure_engine::copy::{self, CopyCounts, CopyError, CopyPlan, CopyReport};

use crate::args::copy::CopyArgs;
use crate::exit::{BUG, DISK, Failure, NO};
use crate::output::{Output, printable};
use crate::settings::seal_file;

use self::show::CopyShow;
use self::stores::{NamedStore, Side};

/// The name of a thaw in the trail.
const THAW: &str = "copy_thaw";

/// Copies, or undoes it.
pub async fn run(out: Output, args: CopyArgs) -> Result<(), Failure> {
    let copies = tokio::task::spawn_blocking(move || run_blocking(out, args));
    copies.await.map_err(|why| Failure::bug(why.to_string()))?
}

fn run_blocking(out: Output, args: CopyArgs) -> Result<(), Failure> {
    let named =
        |text: Option<String>, side| text.map(|text| NamedStore::parse(&text, side)).transpose();
    let (from, to) = (named(args.from, Side::From)?, named(args.to, Side::To)?);
    match (from, to, args.thaw) {
        (Some(from), Some(to), false) => {
            run_copy(out, &from, &to, seal_file::read(args.seal_key_file.as_deref())?)
        }
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

fn run_copy(out: Output, from: &NamedStore, to: &NamedStore, seal: Seal) -> Result<(), Failure> {
    if from.shown == to.shown {
        return Err(Failure::usage(format!("--from and --to are the same store: {}", from.shown)));
    }
    // The source first: that it is not there is no reason to make a target.
    let (source, target) = (from.open(false)?, to.open(true)?);
    let copy = tenure::ids::request_id().as_str().replacen("req_", "copy_", 1);
    let plan = CopyPlan { copy, from: from.shown.clone(), to: to.shown.clone(), seal };
    let mut show = CopyShow::new(&plan.from);
    let done = copy::copy(source.source(), target.target(), &plan, &mut show);
    show.end();
    let places = [("from", &*from.shown), ("to", &*to.shown)];
    trail::record(&[from, to], "copy", &places, done.is_ok());
    let is_undone = matches!(done, Err(CopyError::Sealed(_)));
    if done.is_err() && show.paused && !is_undone {
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
        "{} is copied to {}: {}, in {} namespaces; {} leases ended as released.\n",
        printable(from),
        printable(to),
        things(moved),
        namespaces.len(),
        moved.released
    )
}

/// The things that a copy or a restore moved, in words.
pub fn things(moved: &CopyCounts) -> String {
    format!(
        "{} unfinished and {} finished jobs, {} schedules, {} queues, {} limits, {} pools with {} resources",
        moved.unfinished,
        moved.finished,
        moved.schedules,
        moved.queues,
        moved.limits,
        moved.pools,
        moved.resources
    )
}

/// What a thaw did.
#[derive(Serialize)]
struct Thawed<'a> {
    store: &'a str,
    thawed: bool,
}

fn thaw_source(out: Output, from: &NamedStore, force: bool) -> Result<(), Failure> {
    let source = from.open(false)?;
    let done = copy::thaw_source(source.source(), &from.shown, force);
    trail::record(&[from], THAW, &[("from", &from.shown)], done.is_ok());
    let mark = done.map_err(failure)?;
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

fn thaw_target(out: Output, to: &NamedStore) -> Result<(), Failure> {
    let target = to.open(false)?;
    let done = copy::thaw_target(target.target(), &to.shown);
    trail::record(&[to], THAW, &[("to", &to.shown)], done.is_ok());
    let thawed = done.map_err(failure)?;
    out.answer(&Thawed { store: &to.shown, thawed }, |thawed| {
        let what = if thawed.thawed { "holds no copy now" } else { "is empty" };
        format!("{} {what}\n", printable(thawed.store))
    })
}

/// The failure of a copy, or of a restore.
pub fn failure(why: CopyError) -> Failure {
    match why {
        CopyError::No { sentence, hint } => Failure::new(NO, sentence).hint(hint),
        CopyError::Sealed(sentence) => {
            Failure::new(NO, sentence).hint("name the file of the keys: --seal-key-file")
        }
        CopyError::Fault(fault) => fault.into(),
        CopyError::Disk(why) => {
            Failure::new(DISK, why).hint("repair the disk, then repeat the command to start again")
        }
        stopped @ CopyError::Stopped => Failure::new(BUG, stopped.to_string()),
    }
}
