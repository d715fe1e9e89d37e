//! Flows between rows and a copy, and whom jobs wait for.
//!
//! A child brings its parents. What stands with a parent (its list of children, who is told, that it is held) is written
//! with the child; who is still to be told is found by the next start, as ever.

use super::{CopiedRows, LifeThere, RowsThere};
use crate::drain::moment;
use crate::kin::{EdgeRow, FlowRow, FollowedRow, HeldRow, edge_key};
use crate::rows::{JobChange, KeptUntil, Kind};
use crate::state::{Kin, Parent, ParentKey, Seq};
use crate::stored::StoredLife;
use tenure_core::copy::{CopiedEdge, CopiedFlow, CopiedKin, CopiedParent, Item};
use tenure_core::job::JobState;
use tenure_core::names::FlowName;
use tenure_core::time::Moment;

/// What is kept of a job for those that name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KeptForOthers {
    /// Until when it would be kept by itself and what it takes, if it is held.
    pub by_itself: Option<(Moment, u32)>,
    /// Children that its failure cancelled.
    pub cancelled_children: u64,
}

/// What such a row says; `None` if it is not of this format.
pub fn kept_for_others(value: &str) -> Option<KeptForOthers> {
    let row: FollowedRow = serde_json::from_str(value).ok()?;
    let by_itself = row.held.map(|held| (moment(held.until), held.bytes));
    Some(KeptForOthers { by_itself, cancelled_children: row.cancelled })
}

/// A flow's row as a thing.
pub(super) fn flow(name: &str, value: &str) -> Option<Item> {
    let row: FlowRow = serde_json::from_str(value).ok()?;
    Some(Item::Flow(CopiedFlow {
        flow: FlowName::known(name).ok()?,
        ended: row.ended,
        rows: row.rows,
        cancelling: row.cancelling.is_some(),
        created_at: moment(row.created_at),
        finished_at: row.finished_at.map(moment),
    }))
}

/// How the job with this row number stands to its parents; `Some(None)` if it has none. `None`: a row is not of this
/// format.
///
/// # Errors
/// What is there cannot be read.
pub fn kin<T: RowsThere>(
    seq: Seq,
    state: JobState,
    life: &[u8],
    there: &T,
) -> Result<Option<Option<Item>>, T::Error> {
    let Some(StoredLife { kin, .. }) = StoredLife::decode(life) else { return Ok(None) };
    let Some(kin) = kin.filter(|kin| !kin.parents.is_empty()) else { return Ok(Some(None)) };
    let Some(job) = there.id_of(seq)? else { return Ok(None) };
    let is_dependent = state == JobState::Dependent;
    let child = WaitingChild { seq, is_dependent, turn: kin.turn };
    let mut parents = Vec::with_capacity(kin.parents.len());
    for parent in kin.parents.iter() {
        let Some(parent) = child.parent(parent, there)? else { return Ok(None) };
        parents.push(parent);
    }
    let Kin { on_failure, above, follows, .. } = *kin;
    Ok(Some(Some(Item::Kin(Box::new(CopiedKin { job, parents, on_failure, above, follows })))))
}

/// A job, as its edges are looked at.
struct WaitingChild {
    seq: Seq,
    is_dependent: bool,
    turn: u32,
}

impl WaitingChild {
    /// `None` if the row of the edge is not of this format.
    fn parent<T: RowsThere>(
        &self,
        parent: &Parent,
        there: &T,
    ) -> Result<Option<CopiedParent>, T::Error> {
        let edge = match parent.key() {
            Some(key) => there.row(Kind::Edge, &edge_key(&key, self.seq))?,
            None => None,
        };
        let edge = match edge.as_deref().map(serde_json::from_str::<EdgeRow>).transpose() {
            Ok(edge) => edge,
            Err(_) => return Ok(None),
        };
        // An open one of a job that has ended, or of an earlier turn, is passed over when it is met.
        let is_open = |edge: &EdgeRow| self.is_dependent && edge.open && edge.turn == self.turn;
        Ok(Some(match parent {
            Parent::Job(seq, id) if there.id_of(*seq)?.is_some() => {
                let told = |edge| if is_open(&edge) { CopiedEdge::Open } else { CopiedEdge::Told };
                CopiedParent::Job { id: id.clone(), edge: edge.map(told) }
            }
            Parent::Job(_, id) | Parent::Gone(id) => CopiedParent::Gone(id.clone()),
            Parent::Flow(flow) => {
                let waits = edge.is_some_and(|edge| is_open(&edge));
                CopiedParent::Flow { flow: flow.clone(), waits }
            }
        }))
    }
}

impl CopiedRows<'_> {
    pub(super) fn flow(&mut self, flow: &CopiedFlow) {
        let row = FlowRow {
            ended: flow.ended,
            rows: flow.rows,
            cancelling: flow.cancelling.then_some(Seq::new(0)),
            created_at: flow.created_at.us(),
            finished_at: flow.finished_at.map(Moment::us),
        };
        self.put(Kind::Flow, flow.flow.as_str(), &row);
    }

    pub(super) fn cancelled_children(&mut self, parent: Seq, cancelled: u64) {
        let row = FollowedRow { cancelled, held: None };
        self.put(Kind::Followed, parent.to_string(), &row);
    }

    pub(super) fn kin<T: RowsThere>(
        &mut self,
        kin: CopiedKin,
        there: &T,
    ) -> Result<bool, T::Error> {
        let Some(child) = there.seq_of(&kin.job)? else { return Ok(false) };
        let Some(LifeThere { state, .. }) = there.life(child)? else { return Ok(false) };
        // One whose holder was asked to stop has ended on the way.
        let follows = kin.follows && !state.is_finished();
        let mut parents = Vec::with_capacity(kin.parents.len());
        for parent in kin.parents {
            let parent = match parent {
                CopiedParent::Job { id, edge } => match there.seq_of(&id)? {
                    Some(seq) => {
                        if !self.meet_parent(seq, (child, edge), follows, there)? {
                            return Ok(false);
                        }
                        Parent::Job(seq, id)
                    }
                    None => Parent::Gone(id),
                },
                CopiedParent::Gone(id) => Parent::Gone(id),
                CopiedParent::Flow { flow, waits } => {
                    if waits {
                        self.edge(&ParentKey::Flow(flow.clone()), child, true);
                    }
                    Parent::Flow(flow)
                }
            };
            parents.push(parent);
        }
        self.change_kin(child, there, |own| {
            (own.parents, own.on_failure) = (parents.into(), kin.on_failure);
            (own.above, own.follows) = (kin.above, follows);
        })
    }

    /// A child of the job of this row, with the edge between them: the parent has a list of children then, and if it has
    /// ended it is held for one that is unfinished.
    fn meet_parent<T: RowsThere>(
        &mut self,
        parent: Seq,
        (child, edge): (Seq, Option<CopiedEdge>),
        follows: bool,
        there: &T,
    ) -> Result<bool, T::Error> {
        if let Some(edge) = edge {
            self.edge(&ParentKey::Job(parent), child, edge == CopiedEdge::Open);
            if !self.change_kin(parent, there, |kin| kin.has_children = true)? {
                return Ok(false);
            }
        }
        if follows { self.hold(parent, there) } else { Ok(true) }
    }

    /// All edges are of the first turn: those of earlier ones stayed behind.
    fn edge(&mut self, parent: &ParentKey, child: Seq, open: bool) {
        let turn = Kin::none().turn;
        self.put(Kind::Edge, edge_key(parent, child), &EdgeRow { turn, open });
    }

    /// A finished job that an unfinished one names is kept for it.
    fn hold<T: RowsThere>(&mut self, parent: Seq, there: &T) -> Result<bool, T::Error> {
        let Some(LifeThere { state, kept, .. }) = there.life(parent)? else { return Ok(false) };
        let Some((until, bytes)) = kept else { return Ok(true) };
        let key = parent.to_string();
        let row = self.row_there(Kind::Followed, &key, there)?;
        let cancelled = match row.as_deref().map(serde_json::from_str::<FollowedRow>) {
            Some(Err(_)) => return Ok(false),
            Some(Ok(FollowedRow { held: Some(_), .. })) => return Ok(true),
            Some(Ok(row)) => row.cancelled,
            None => 0,
        };
        let held = Some(HeldRow { state, until: until.us(), bytes });
        self.put(Kind::Followed, key, &FollowedRow { cancelled, held });
        let kept = KeptUntil { namespace: self.namespace.clone(), until: Moment::MAX, bytes: 0 };
        self.rows.job(parent).kept = Some(kept);
        Ok(true)
    }

    /// Changes what the life of a job that is there says of others.
    fn change_kin<T: RowsThere>(
        &mut self,
        seq: Seq,
        there: &T,
        change: impl FnOnce(&mut Kin),
    ) -> Result<bool, T::Error> {
        let life = match self.rows.jobs.get(&seq) {
            Some(JobChange { life: Some(life), .. }) => Some(life.clone()),
            _ => there.life(seq)?.map(|there| there.life),
        };
        let Some(mut life) = life.as_deref().and_then(StoredLife::decode) else { return Ok(false) };
        change(life.kin.get_or_insert_with(|| Box::new(Kin::none())));
        self.rows.job(seq).life = Some(life.encode());
        Ok(true)
    }
}
