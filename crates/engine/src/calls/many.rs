//! Calls on all jobs that match a filter: cancels, retries or deletes them in portions.
//!
//! Rows say which jobs match; the machine changes those that still match. One call looks at no more than 10,000 rows,
//! second looks included, and says where the next call goes on.

use tenure_core::access::TokenName;
use tenure_core::bounds::{LIST_SCAN_MAX, MANY_PORTION};
use tenure_core::names::Namespace;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{DoneMany, ManyJobs};
use tenure_engine_api::{CallError, Fault};
use tenure_machine::{ChangeMany, Command, Done, ManyDone, SeenJob, Seq, seen_in_life};

use crate::batch::Answer;
use crate::inbox::Ask;
use crate::shared::Shared;
use crate::sqlite::read::lists::{LookFrom, Looked, Sieve, look};
use crate::sqlite::read::readers::Haste;
use crate::sqlite::rows::{self, or_none};

/// Changes up to `max` jobs that match.
pub(crate) async fn many(
    shared: &Shared,
    namespace: &Namespace,
    by: Option<&TokenName>,
    asked: impl TryInto<ManyJobs, Error = Refusal>,
) -> Result<DoneMany, CallError> {
    let asked: ManyJobs = asked.try_into()?;
    if asked.matches_nothing() {
        return Ok(DoneMany::all(0));
    }
    let done = portions(shared, namespace, by, &asked).await?;
    // The last portion may have found nothing, so that no step followed its read.
    shared.read_may_be_answered().await.map(|()| done)
}

async fn portions(
    shared: &Shared,
    namespace: &Namespace,
    by: Option<&TokenName>,
    asked: &ManyJobs,
) -> Result<DoneMany, CallError> {
    let max = asked.max as u64;
    let mut from = match (asked.oldest_first, asked.row) {
        (false, row) => LookFrom::Below(row.map_or(Seq::MAX, Seq::new)),
        (true, row) => LookFrom::Above(row.map_or(Seq::new(0), Seq::new)),
    };
    let (mut done, mut left) = (0, LIST_SCAN_MAX);
    let mut untold: Option<Seq> = None;
    loop {
        let wanted = MANY_PORTION.min((max - done) as usize);
        let Looked { found, last, looked, .. } =
            portion(shared, namespace, asked, from, (wanted, left)).await?;
        left = left.saturating_sub(looked);
        let step = change(shared, namespace, by, (asked, found)).await?;
        done += step.done;
        untold = untold.or(step.untold);
        if let Some(seq) = step.stopped_at {
            // Looks again at this row as it is by now, and then at those behind it.
            from = from.in_front_of(seq);
        } else if let Some(last) = last {
            from = from.at(last);
        } else {
            return Ok(match untold {
                Some(seq) => DoneMany::stopped(done, from.in_front_of(seq).seq().get()),
                None => DoneMany::all(done),
            });
        }
        if done >= max || left == 0 {
            // Jobs that could not be retried yet are looked at once more.
            let from = untold.map_or(from, |seq| from.in_front_of(seq));
            return Ok(DoneMany::stopped(done, from.seq().get()));
        }
    }
}

/// Jobs whose rows match, for a step that checks each again; `bounds` limit the jobs found and the rows looked at.
async fn portion(
    shared: &Shared,
    namespace: &Namespace,
    asked: &ManyJobs,
    from: LookFrom,
    bounds: (usize, usize),
) -> Result<Looked<SeenJob>, CallError> {
    let sieve = Sieve::new(asked.filter.clone(), &shared.seal);
    let content = asked.filter.asks_for_content();
    let ns = namespace.clone();
    let looked = shared
        .read_rows(Haste::Now, move |conn| {
            look(conn, &ns, &sieve, from, bounds, |row| {
                let read = || -> rusqlite::Result<Option<SeenJob>> {
                    let seq = rows::seq(row, 0)?;
                    if !content {
                        return Ok(Some(SeenJob { seq, edits: 0 }));
                    }
                    let life = seen_in_life(row.get_ref(rows::LIFE)?.as_blob()?);
                    Ok(life.map(|life| SeenJob { seq, edits: life.edits }))
                };
                Ok(or_none(read())?.flatten().map(|job| (job, 0)))
            })
        })
        .await?;
    Ok(looked)
}

async fn change(
    shared: &Shared,
    namespace: &Namespace,
    by: Option<&TokenName>,
    (asked, seen): (&ManyJobs, Vec<SeenJob>),
) -> Result<ManyDone, CallError> {
    if seen.is_empty() {
        return Ok(ManyDone::default());
    }
    let filter = asked.filter.clone();
    let change = ChangeMany { change: asked.change, filter, seen };
    let command = Command::ChangeMany(change).by(by);
    match shared.ask(namespace, Ask::Command(Box::new(command))).await? {
        Answer::Done(Done::Many(done)) => Ok(done),
        _ => Err(Fault::Broken("a change of many jobs was not answered".to_owned()).into()),
    }
}
