//! `tenure restore`: a backup into an empty store.
//!
//! The protocol is [`tenure_engine::backup`]'s; this opens the target as `tenure copy` does, and shows the progress.

use tenure_engine::backup::{self, CheckedFile, NotRestored, RestorePlan, RestoreReport};
use tenure_engine_api::SystemClock;

use crate::args::backup::RestoreArgs;
use crate::cmd::backup::no_backup;
use crate::cmd::copy;
use crate::cmd::copy::show::CopyShow;
use crate::cmd::copy::stores::{NamedStore, Side};
use crate::cmd::copy::trail;
use crate::exit::Failure;
use crate::output::{Output, printable};
use crate::settings::seal_file;

/// Checks the whole file, then opens the target and restores into it.
pub async fn run(out: Output, args: RestoreArgs) -> Result<(), Failure> {
    let restores = tokio::task::spawn_blocking(move || run_blocking(out, &args));
    restores.await.map_err(|why| Failure::bug(why.to_string()))?
}

fn run_blocking(out: Output, args: &RestoreArgs) -> Result<(), Failure> {
    let to = NamedStore::parse(&args.to, Side::To)?;
    let seal = seal_file::read(args.seal_key_file.as_deref())?;
    let from = args.file.display().to_string();
    // First of all: a file that is no whole backup is no reason to make a target.
    let checked = CheckedFile::open(&args.file).map_err(|why| no_backup(&from, &why))?;
    let target = to.open(true)?;
    let (waits, shown) = (!args.no_wait, to.shown.clone());
    let plan = RestorePlan { from: from.clone(), to: shown, seal, waits };
    let mut show = CopyShow::new(&from);
    let done = backup::restore(checked, target.target(), &plan, &SystemClock, &mut show);
    show.end();
    let places = [("from", &*from), ("to", &*to.shown)];
    trail::record(&[&to], "restore", &places, done.is_ok());
    if done.is_err() && show.paused {
        crate::output::hint(&format!(
            "{} serves nobody: repeat the command to start the restore again, or give it up: tenure copy --thaw \
             --to '{}'",
            to.shown, to.shown
        ));
    }
    let report = done.map_err(|why| match why {
        NotRestored::Backup(why) => no_backup(&from, &why),
        NotRestored::Target(why) => copy::failure(why),
    })?;
    out.answer(&report, in_words)
}

fn in_words(report: &RestoreReport) -> String {
    let RestoreReport { head, from, to, moved } = report;
    format!(
        "{} of {} is restored to {}: {}; {} leases ended as released.\n",
        printable(from),
        head.made_at,
        printable(to),
        copy::things(moved),
        moved.released
    )
}
