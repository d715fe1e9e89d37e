//! The protocol of a copy, whatever the two stores are.
//!
//! 1. Look at both, and refuse before anything is changed.
//! 2. Freeze the source, with a mark that names this copy.
//! 3. Namespace by namespace, page by page; the target keeps how far it is.
//! 4. Wait until the last lease of the source has run out.
//! 5. Open the target.
//! 6. Say at the source that it is done.
//!
//! Broken off anywhere, the same call goes on where it was. Until 5. nobody can be granted anything by
//! either store, so nothing is held twice.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;

use serde::Serialize;
use tenure_core::copy::{CopiedPage, Cursor, Head, Item, Releasing, Section};
use tenure_core::names::Namespace;
use tenure_core::time::Span;

use super::{CopyError, Found, Mark, Source, Target};

/// What is to be copied, in words.
#[derive(Clone, Debug)]
pub struct CopyPlan {
    /// A name for this copy that no other has, if it is to begin now.
    pub copy: String,
    /// The source, as it is shown.
    pub from: String,
    /// The target, as it is shown.
    pub to: String,
}

/// What is told while it goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopyNews {
    /// The source was paused now, or is paused since an earlier try that is taken up.
    Paused {
        /// An earlier try is taken up.
        again: bool,
    },
    /// So much of a namespace is there.
    Moved {
        /// The namespace.
        namespace: Namespace,
        /// The section.
        section: Section,
        /// Jobs of it that were moved by this call.
        jobs: u64,
        /// Jobs that it has in all.
        of: u64,
    },
    /// All is there; it waits so long for leases of the source to run out.
    Waits(Span),
}

/// Who is told, and who waits.
pub trait CopyWatch: Send {
    /// Something happened. An error stops the copy; it may be taken up again.
    fn told(&mut self, what: &CopyNews) -> Result<(), CopyError>;
    /// Returns after so long.
    fn wait(&mut self, long: Span) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// How much a call moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// Queues.
    pub queues: u64,
    /// Settings of limits.
    pub limits: u64,
    /// Pools.
    pub pools: u64,
    /// Resources.
    pub resources: u64,
    /// Unfinished jobs.
    pub unfinished: u64,
    /// Finished jobs.
    pub finished: u64,
    /// Leases that ended as `released`.
    pub released: u64,
}

/// What a call did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CopyReport {
    /// The name of the copy.
    pub copy: String,
    /// The source, as it is shown.
    pub from: String,
    /// The target, as it is shown.
    pub to: String,
    /// An earlier try was taken up: what it moved is not counted here.
    pub resumed: bool,
    /// All was there already.
    pub already: bool,
    /// The namespaces of the source.
    pub namespaces: Vec<Namespace>,
    /// What this call moved.
    pub moved: Counts,
}

impl Counts {
    fn add(&mut self, item: &Item) {
        match item {
            Item::Queue(_) => self.queues += 1,
            Item::Setting(_) => self.limits += 1,
            Item::Pool(_) => self.pools += 1,
            Item::Resource(_) => self.resources += 1,
            Item::Job(job) if job.state.is_finished() => self.finished += 1,
            Item::Job(_) => self.unfinished += 1,
            _ => {}
        }
    }
    fn jobs(&self) -> u64 {
        self.unfinished + self.finished
    }
}

/// A namespace that is read: its numbers, and how its leases end.
struct ReadLeases {
    head: Head,
    releasing: Releasing,
}

/// Copies a store, or takes up a copy that broke off.
pub async fn copy(
    source: &dyn Source,
    target: &dyn Target,
    plan: &CopyPlan,
    watch: &mut dyn CopyWatch,
) -> Result<CopyReport, CopyError> {
    let (mark, known) = decide(source, target, plan).await?;
    let mut report = CopyReport {
        copy: mark.copy.clone(),
        from: plan.from.clone(),
        to: plan.to.clone(),
        resumed: known,
        already: false,
        namespaces: Vec::new(),
        moved: Counts::default(),
    };
    if mark.whole {
        report.already = true;
        report.namespaces = source.namespaces().await?;
        return Ok(report);
    }
    source.freeze(&mark).await?;
    watch.told(&CopyNews::Paused { again: known })?;
    let mut done = BTreeSet::new();
    loop {
        // What was used for the first time while it was frozen is found by another look.
        let all = source.namespaces().await?;
        let new: Vec<Namespace> = all.iter().filter(|ns| !done.contains(*ns)).cloned().collect();
        if new.is_empty() {
            report.namespaces = all;
            break;
        }
        source.freeze(&mark).await?;
        for namespace in new {
            move_namespace(source, target, &mark.copy, &namespace, watch, &mut report.moved)
                .await?;
            done.insert(namespace);
        }
    }
    wait_for_leases(source, &report.namespaces, watch).await?;
    target.open(&mark.copy).await?;
    source.freeze(&Mark { whole: true, ..mark }).await?;
    Ok(report)
}

/// Refuses what must not be copied, before anything is changed; the mark of this copy, and whether it
/// is an earlier one's.
async fn decide(
    source: &dyn Source,
    target: &dyn Target,
    plan: &CopyPlan,
) -> Result<(Mark, bool), CopyError> {
    let (from, to) = (&plan.from, &plan.to);
    let found = target.found().await?;
    let marked = source.marked().await?;
    let give_up = || format!("give it up first: tenure copy --thaw --to '{to}'");
    match (marked, found) {
        (_, Found::Dropping) => Err(CopyError::no(
            format!("the target {to} is an unfinished copy that is being given up"),
            format!("end that: tenure copy --thaw --to '{to}'"),
        )),
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
        (Some(mark), Found::Part(copy)) if mark.copy == copy => Ok((mark, true)),
        (Some(mark), Found::Whole(copy)) if mark.copy == copy => {
            // It was opened, and nobody said so here.
            let mark = Mark { whole: true, ..mark };
            source.freeze(&mark).await?;
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

async fn move_namespace(
    source: &dyn Source,
    target: &dyn Target,
    copy: &str,
    namespace: &Namespace,
    watch: &mut dyn CopyWatch,
    moved: &mut Counts,
) -> Result<(), CopyError> {
    let read = read_leases(source, namespace).await?;
    let begun = target.begin(copy, namespace, &read.head).await?;
    if begun.whole || begun.pages > 0 && begun.next.is_none() {
        return Ok(());
    }
    let mut number = begun.pages;
    let mut next = Some(begun.next.unwrap_or(Cursor::of(Section::ALL[0])));
    let before = moved.jobs();
    while let Some(cursor) = next {
        let CopiedPage { items, next: then } = source.page(namespace, &cursor).await?;
        let ends = items.iter().filter(|item| matches!(item, Item::Lease(_))).count();
        let items: Vec<Item> =
            items.into_iter().flat_map(|item| read.releasing.pass(item)).collect();
        items.iter().for_each(|item| moved.add(item));
        moved.released += ends as u64;
        target.put(copy, namespace, number, items, then.clone()).await?;
        number += 1;
        let jobs = moved.jobs() - before;
        let (section, of) = (cursor.section, read.head.jobs);
        watch.told(&CopyNews::Moved { namespace: namespace.clone(), section, jobs, of })?;
        next = then;
    }
    Ok(())
}

/// Reads what decides how leases end: a small part of all, and read by every try anew.
async fn read_leases(source: &dyn Source, namespace: &Namespace) -> Result<ReadLeases, CopyError> {
    let head = source.head(namespace).await?;
    let mut releasing = Releasing::new(head.now);
    for section in [Section::Settings, Section::Leases, Section::Pools] {
        let mut next = Some(Cursor::of(section));
        while let Some(cursor) = next.filter(|cursor| cursor.section == section) {
            let page = source.page(namespace, &cursor).await?;
            page.items.into_iter().for_each(|item| releasing.learn(item));
            next = page.next;
        }
    }
    Ok(ReadLeases { head, releasing })
}

/// Whoever holds something by a word of the source goes on with it until its lease runs out: nobody
/// else is granted it before.
async fn wait_for_leases(
    source: &dyn Source,
    namespaces: &[Namespace],
    watch: &mut dyn CopyWatch,
) -> Result<(), CopyError> {
    let mut longest = Span::ZERO;
    for namespace in namespaces {
        let ReadLeases { head, releasing } = read_leases(source, namespace).await?;
        let last = releasing.last().max(head.recovers_until);
        longest = longest.max(last.map_or(Span::ZERO, |last| last.since(head.now)));
    }
    if longest > Span::ZERO {
        watch.told(&CopyNews::Waits(longest))?;
        watch.wait(longest).await;
    }
    Ok(())
}

/// Serves a source again that was frozen for a copy; its mark, if it was. `force`: though its copy is
/// whole.
pub async fn thaw_source(
    source: &dyn Source,
    from: &str,
    force: bool,
) -> Result<Option<Mark>, CopyError> {
    let Some(mark) = source.marked().await? else { return Ok(None) };
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
    source.thaw().await?;
    Ok(Some(mark))
}

/// Gives up an unfinished copy; whether there was one.
pub async fn thaw_target(target: &dyn Target, to: &str) -> Result<bool, CopyError> {
    match target.found().await? {
        Found::Empty => Ok(false),
        Found::Part(_) | Found::Dropping => {
            target.give_up().await?;
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
