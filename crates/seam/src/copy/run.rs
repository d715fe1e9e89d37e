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
//! either store, so nothing is held twice. A store that is away for a moment breaks a copy off too; then it
//! is taken up by itself, from 1. on, since a store that was started anew may have forgotten its mark.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use serde::Serialize;
use tenure_core::copy::{CopiedPage, Cursor, Head, Item, Releasing, Section};
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::sentences::CopyRefusal;
use tenure_core::time::Span;

use super::{CopyError, Found, Mark, Source, Target};
use crate::fault::Fault;

/// Between two tries, when a store cannot be reached.
const PAUSE: Span = Span::from_ms(250);
/// So many tries that bring no page end the copy: half a minute.
const TRIES: u32 = 120;

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
    /// A store cannot be reached, or did not answer: the copy is taken up in a moment.
    Away(Fault),
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
    /// Schedules.
    pub schedules: u64,
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
            Item::Schedule(_) => self.schedules += 1,
            _ => {}
        }
    }
    fn add_all(&mut self, more: &Counts) {
        let Counts { queues, limits, pools, resources, .. } = more;
        let Counts { unfinished, finished, schedules, released, .. } = more;
        self.queues += queues;
        self.limits += limits;
        self.pools += pools;
        self.resources += resources;
        self.unfinished += unfinished;
        self.finished += finished;
        self.schedules += schedules;
        self.released += released;
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

/// A page that was sent, and whose answer is not there yet.
struct SentPage {
    namespace: Namespace,
    number: u64,
    counts: Counts,
}

/// How far a call is, over all of its tries.
#[derive(Default)]
struct Course {
    /// Whether the first try found an earlier call's copy; `None` until one is about to freeze the source.
    resumed: Option<bool>,
    /// The source is frozen, and that was told.
    paused: bool,
    /// What was moved, by namespace.
    moved: BTreeMap<Namespace, Counts>,
    sent: Option<SentPage>,
    /// Tries since the last page.
    tries: u32,
}

impl Course {
    fn has_moved(&mut self, page: SentPage) {
        self.moved.entry(page.namespace).or_default().add_all(&page.counts);
        self.tries = 0;
    }
}

/// Copies a store, or takes up a copy that broke off.
pub async fn copy(
    source: &dyn Source,
    target: &dyn Target,
    plan: &CopyPlan,
    watch: &mut dyn CopyWatch,
) -> Result<CopyReport, CopyError> {
    let mut course = Course::default();
    loop {
        match go_on(source, target, plan, watch, &mut course).await {
            Err(CopyError::Fault(
                why @ (Fault::Unavailable(_) | Fault::StoreAway(_) | Fault::Unknown(_)),
            )) if course.resumed.is_some() && course.tries < TRIES => {
                course.tries += 1;
                watch.told(&CopyNews::Away(why))?;
                watch.wait(PAUSE).await;
            }
            ended => return ended,
        }
    }
}

/// One try.
async fn go_on(
    source: &dyn Source,
    target: &dyn Target,
    plan: &CopyPlan,
    watch: &mut dyn CopyWatch,
    course: &mut Course,
) -> Result<CopyReport, CopyError> {
    let (mark, known) = decide(source, target, plan).await?;
    let mut report = CopyReport {
        copy: mark.copy.clone(),
        from: plan.from.clone(),
        to: plan.to.clone(),
        resumed: course.resumed.unwrap_or(known),
        // Else it was this call that ended it, and its last answer was lost.
        already: mark.whole && course.resumed.is_none(),
        namespaces: Vec::new(),
        moved: Counts::default(),
    };
    if !mark.whole {
        // It may be frozen from here on, whatever the answer says.
        course.resumed = Some(report.resumed);
        source.freeze(&mark).await?;
        if !course.paused {
            course.paused = true;
            watch.told(&CopyNews::Paused { again: report.resumed })?;
        }
        let all = move_all(source, target, &mark.copy, watch, course).await?;
        wait_for_leases(source, &all, watch).await?;
        // Not every store can keep others from thawing it meanwhile.
        if source.marked().await?.is_none_or(|there| there.copy != mark.copy) {
            let place = plan.from.clone().into();
            return Err(Refusal::from(CopyRefusal::NotFrozen { place }).into());
        }
        target.open(&mark.copy).await?;
        source.freeze(&Mark { whole: true, ..mark }).await?;
    }
    report.namespaces = source.namespaces().await?;
    course.moved.values().for_each(|of_one| report.moved.add_all(of_one));
    Ok(report)
}

/// Moves all namespaces of a frozen source, and names them.
async fn move_all(
    source: &dyn Source,
    target: &dyn Target,
    copy: &str,
    watch: &mut dyn CopyWatch,
    course: &mut Course,
) -> Result<Vec<Namespace>, CopyError> {
    let all = source.namespaces().await?;
    for namespace in &all {
        move_namespace(source, target, copy, namespace, watch, course).await?;
    }
    Ok(all)
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
    course: &mut Course,
) -> Result<(), CopyError> {
    let read = read_leases(source, namespace).await?;
    let begun = target.begin(copy, namespace, &read.head).await?;
    if let Some(sent) = course.sent.take_if(|sent| sent.namespace == *namespace)
        && begun.pages > sent.number
    {
        course.has_moved(sent);
    }
    if begun.whole || begun.pages > 0 && begun.next.is_none() {
        return Ok(());
    }
    let mut number = begun.pages;
    let mut next = Some(begun.next.unwrap_or(Cursor::of(Section::ALL[0])));
    while let Some(cursor) = next {
        let CopiedPage { items, next: then } = source.page(namespace, &cursor).await?;
        let ends = items.iter().filter(|item| matches!(item, Item::Lease(_))).count();
        let items: Vec<Item> =
            items.into_iter().flat_map(|item| read.releasing.pass(item)).collect();
        let mut counts = Counts { released: ends as u64, ..Counts::default() };
        items.iter().for_each(|item| counts.add(item));
        course.sent = Some(SentPage { namespace: namespace.clone(), number, counts });
        target.put(copy, namespace, number, items, then.clone()).await?;
        course.sent.take().into_iter().for_each(|page| course.has_moved(page));
        number += 1;
        let jobs = course.moved.get(namespace).map_or(0, Counts::jobs);
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
        Found::Part(_) => {
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
