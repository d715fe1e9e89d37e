//! The protocol of a copy, the same for every pair of stores.
//!
//! 1. Look at both, and refuse before anything is changed.
//! 2. Freeze the source, with a mark that names this copy.
//! 3. Fill the target with all rows of the source.
//! 4. Wait until the last lease of the source has expired.
//! 5. Open the target.
//! 6. Mark the source as copied.
//!
//! If it breaks off, the same call begins again at 1 and finds the marks. Until 5 neither store grants anything, so nothing is
//! held twice. A store that cannot be reached for a moment does not end the copy: it is retried from 1 on, since a
//! restarted Redis may have forgotten its mark.

use serde::Serialize;
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::CopyRefusal;
use tenure_core::time::Span;
use tenure_engine_api::Fault;

use crate::seal::Seal;

use super::{CopyCounts, CopyError, CopyNews, CopyWatch, Found, Mark, Source, Target};

/// Between two tries, when a store cannot be reached.
const PAUSE: Span = Span::from_ms(250);
/// Tries of one call, which take half a minute beside their work.
const TRIES: u32 = 120;

/// A copy that is to be made.
#[derive(Clone, Debug)]
pub struct CopyPlan {
    /// A name that no other copy has. A copy that broke off keeps the name that it began with.
    pub copy: String,
    /// The source, without a password.
    pub from: String,
    /// The target, without a password.
    pub to: String,
    /// Opens the contents of the source, and seals those of the target.
    pub seal: Seal,
}

/// The result of a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CopyReport {
    /// The name of the copy.
    pub copy: String,
    /// The source, without a password.
    pub from: String,
    /// The target, without a password.
    pub to: String,
    /// An earlier call had begun the copy.
    pub resumed: bool,
    /// An earlier call had finished the copy.
    pub already: bool,
    /// The namespaces of the source.
    pub namespaces: Vec<Namespace>,
    /// All that this call copied; nothing if an earlier one had finished.
    pub moved: CopyCounts,
}

/// The progress of a call over all of its tries.
#[derive(Default)]
struct Course {
    /// Whether the first try found an earlier call's copy; `None` until the source may be frozen.
    resumed: Option<bool>,
    /// The watcher knows that the source is frozen.
    paused: bool,
    moved: CopyCounts,
    tries: u32,
}

/// Copies a store, or begins a copy again that broke off.
///
/// # Errors
/// It is refused, a store cannot be used, or the watcher stopped it.
pub fn copy(
    source: &dyn Source,
    target: &dyn Target,
    plan: &CopyPlan,
    watch: &mut dyn CopyWatch,
) -> Result<CopyReport, CopyError> {
    let mut course = Course::default();
    loop {
        match go_on(source, target, plan, watch, &mut course) {
            Err(CopyError::Fault(
                why @ (Fault::Unavailable(_) | Fault::StoreAway(_) | Fault::Unknown(_)),
            )) if course.resumed.is_some() && course.tries < TRIES => {
                course.tries += 1;
                watch.told(&CopyNews::Away(why))?;
                watch.wait(PAUSE);
            }
            ended => return ended,
        }
    }
}

/// One try.
fn go_on(
    source: &dyn Source,
    target: &dyn Target,
    plan: &CopyPlan,
    watch: &mut dyn CopyWatch,
    course: &mut Course,
) -> Result<CopyReport, CopyError> {
    let (mark, known) = decide(source, target, plan)?;
    let resumed = course.resumed.unwrap_or(known);
    // Otherwise this call finished it, and its last answer was lost.
    let already = mark.whole && course.resumed.is_none();
    let copy = mark.copy.clone();
    if !mark.whole {
        // It may be frozen from here on, whatever the answer says.
        course.resumed = Some(resumed);
        source.freeze(&mark)?;
        if !course.paused {
            course.paused = true;
            watch.told(&CopyNews::Paused { again: resumed })?;
        }
        if target.claim(&copy)? {
            let filled = fill((source, target), &copy, &plan.seal, watch, course);
            if let (Err(CopyError::Sealed(_)), false) = (&filled, resumed) {
                // The same call would fail again: the source goes on as if nobody had called.
                target.give_up()?;
                source.thaw()?;
            }
            filled?;
        }
        // Not every store can keep others from thawing it meanwhile.
        if source.marked()?.is_none_or(|there| there.copy != copy) {
            let place = plan.from.clone().into();
            return Err(Refusal::from(CopyRefusal::NotFrozen { place }).into());
        }
        target.open(&copy)?;
        source.freeze(&Mark { whole: true, ..mark })?;
    }
    Ok(CopyReport {
        copy,
        from: plan.from.clone(),
        to: plan.to.clone(),
        resumed,
        already,
        namespaces: source.rows()?.namespaces,
        moved: course.moved,
    })
}

/// Fills the target, and waits until no holder of a lease of the source goes on with it: its lease was granted by the source,
/// and the target may grant the same things to others from then on.
fn fill(
    (source, target): (&dyn Source, &dyn Target),
    copy: &str,
    seal: &Seal,
    watch: &mut dyn CopyWatch,
    course: &mut Course,
) -> Result<(), CopyError> {
    let from = source.rows()?.sealed(seal.clone());
    let recovers_until = from.recovers_until;
    let filled = target.fill(copy, from, watch)?;
    course.moved = filled.moved;
    let held_until = filled.held_until.max(recovers_until);
    let longest = held_until.map_or(Span::ZERO, |until| until.since(source.now()));
    if longest > Span::ZERO {
        watch.told(&CopyNews::Waits(longest))?;
        watch.wait(longest);
    }
    Ok(())
}

/// Refuses what must not be copied, before anything is changed; the mark of this copy, and whether it
/// is an earlier one's.
fn decide(
    source: &dyn Source,
    target: &dyn Target,
    plan: &CopyPlan,
) -> Result<(Mark, bool), CopyError> {
    let (from, to) = (&plan.from, &plan.to);
    let found = target.found()?;
    let marked = source.marked()?;
    let give_up = || format!("give it up first: tenure copy --thaw --to '{to}'");
    match (marked, found) {
        (_, Found::Other(what)) => Err(CopyError::no(
            format!("the target {to} is not empty: {what}"),
            "copy to a store without jobs, queues, limits and pools",
        )),
        (None, Found::Empty) => {
            let (copy, to) = (plan.copy.clone(), to.clone());
            Ok((Mark { copy, to, whole: false }, false))
        }
        (None, Found::Part(_)) => Err(CopyError::no(
            format!(
                "the target {to} is an unfinished copy of something else, or of {from} as it was"
            ),
            give_up(),
        )),
        (None, Found::Whole(_)) => Err(CopyError::no(
            format!("the target {to} is a copy that was finished and is in use"),
            "copy to a store without jobs, queues, limits and pools",
        )),
        // Also if the source knows the copy as whole: the target's Redis may have forgotten that, and a part serves nobody.
        (Some(mark), Found::Part(copy)) if mark.copy == copy => {
            Ok((Mark { whole: false, ..mark }, true))
        }
        (Some(mark), Found::Whole(copy)) if mark.copy == copy => {
            // It was opened, and nobody said so here.
            let mark = Mark { whole: true, ..mark };
            source.freeze(&mark)?;
            Ok((mark, true))
        }
        (Some(_), Found::Part(_) | Found::Whole(_)) => Err(CopyError::no(
            format!("the target {to} is a copy of something else, or of {from} as it was"),
            give_up(),
        )),
        (Some(mark), Found::Empty) if mark.whole => Err(CopyError::no(
            format!("{from} was copied to {} already, and is frozen since", mark.to),
            format!("if that copy is not used: tenure copy --thaw --force --from '{from}'"),
        )),
        (Some(mark), Found::Empty) if mark.to != *to => Err(CopyError::no(
            format!("{from} is being copied to {}", mark.to),
            format!("finish that, or thaw it first: tenure copy --thaw --from '{from}'"),
        )),
        (Some(mark), Found::Empty) => Ok((mark, true)),
    }
}

/// Serves a source again that was frozen for a copy; its mark, if it was. `force`: though its copy is
/// whole.
pub fn thaw_source(
    source: &dyn Source,
    from: &str,
    force: bool,
) -> Result<Option<Mark>, CopyError> {
    let Some(mark) = source.marked()? else { return Ok(None) };
    if mark.whole && !force {
        return Err(CopyError::no(
            format!(
                "{from} was copied whole to {}: if both are used, every job runs in both, and what \
                 one holds the other grants",
                mark.to
            ),
            format!(
                "if that copy was never used and never will be: tenure copy --thaw --force --from \
                 '{from}'"
            ),
        ));
    }
    source.thaw()?;
    Ok(Some(mark))
}

/// Gives up an unfinished copy; whether there was one.
pub fn thaw_target(target: &dyn Target, to: &str) -> Result<bool, CopyError> {
    match target.found()? {
        Found::Empty => Ok(false),
        Found::Part(_) => {
            target.give_up()?;
            Ok(true)
        }
        Found::Whole(_) => Err(CopyError::no(
            format!("the copy in {to} is whole and may be in use: there is nothing to give up"),
            "if you do not want it, remove it by the means of its store",
        )),
        Found::Other(what) => Err(CopyError::no(
            format!("{to} is no unfinished copy: {what}"),
            "name the target of a copy that broke off; a source is thawed with --from",
        )),
    }
}
