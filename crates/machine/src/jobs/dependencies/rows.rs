//! The rows of dependencies and flows: written, and read back at a start.
//!
//! The key of an edge begins with its parent and ends with the row number of its child, at a fixed width, so that the
//! children of a job are adjacent, in the order of their pushes.

use serde::{Deserialize, Serialize};

use crate::rows::Kind;
use crate::state::{Flow, Followed, HeldJob, Kin, Parent, ParentKey, Seq, Space};
use std::sync::Arc;
use tenure_core::flow::FlowCounts;
use tenure_core::job::JobState;
use tenure_core::names::FlowName;
use tenure_core::time::Moment;

/// The digits of a row number, so that texts sort like numbers.
const DIGITS: usize = 20;

/// The prefix before the row numbers of a job's children.
pub fn children_prefix(parent: Seq) -> String {
    format!("job:{:0DIGITS$}/", parent.get())
}

/// The key of the edge between a job and its child; the edges of a job lie between those of the row numbers 0 and
/// [`Seq::MAX`].
pub fn child_key(parent: Seq, child: Seq) -> String {
    format!("{}{:0DIGITS$}", children_prefix(parent), child.get())
}

/// The child of an edge of a job.
pub fn child_of(key: &str) -> Option<Seq> {
    key.rsplit_once('/')?.1.parse().ok()
}

pub(crate) fn edge_key(parent: &ParentKey, child: Seq) -> String {
    match parent {
        ParentKey::Job(seq) => child_key(*seq, child),
        ParentKey::Flow(flow) => format!("flow:{flow}/{:0DIGITS$}", child.get()),
    }
}

fn edge_of(key: &str) -> Option<(ParentKey, Seq)> {
    let (parent, child) = key.rsplit_once('/')?;
    let parent = match parent.split_once(':')? {
        ("job", seq) => ParentKey::Job(seq.parse().ok()?),
        ("flow", name) => ParentKey::Flow(FlowName::known(name).ok()?),
        _ => return None,
    };
    Some((parent, child.parse().ok()?))
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct EdgeRow {
    pub turn: u32,
    pub open: bool,
}

/// Row of a finished job that is kept for others; times in microseconds.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct FollowedRow {
    pub cancelled: u64,
    pub held: Option<HeldRow>,
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct HeldRow {
    pub state: JobState,
    pub until: u64,
    pub bytes: u32,
}

#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct FlowRow {
    pub ended: FlowCounts,
    pub rows: u64,
    pub cancelling: Option<Seq>,
    pub created_at: u64,
    pub finished_at: Option<u64>,
}

impl Space {
    /// Writes an open or closed edge; `None` deletes it.
    pub(crate) fn edge_row(&mut self, parent: &ParentKey, child: Seq, edge: Option<(u32, bool)>) {
        let row = edge.map(|(turn, open)| EdgeRow { turn, open });
        self.put_row(Kind::Edge, edge_key(parent, child), row.as_ref());
    }

    /// Writes the row of a finished job that is kept for others. A start counts the dependents again.
    pub(crate) fn followed_row(&mut self, seq: Seq) {
        let row = self
            .dependencies
            .followed()
            .get(&seq)
            .filter(|followed| followed.cancelled > 0 || followed.held.is_some())
            .map(|Followed { cancelled, held, .. }| FollowedRow {
                cancelled: *cancelled,
                held: held.map(|HeldJob { state, until, bytes }| HeldRow {
                    state,
                    until: until.us(),
                    bytes,
                }),
            });
        self.put_row(Kind::Followed, seq.to_string(), row.as_ref());
    }

    /// Writes or deletes the row of a job that has parents to let go.
    pub(crate) fn leaving_row(&mut self, child: Seq, parents: Option<&Arc<[Parent]>>) {
        self.put(Kind::Leaving, child.to_string(), parents.map(Kin::row_of));
    }

    pub(crate) fn drain_flows(&mut self) {
        for name in self.flows.take_changed() {
            let row = self.flows.named().get(&name).map(|flow| FlowRow {
                ended: flow.ended,
                rows: flow.rows,
                cancelling: flow.cancelling,
                created_at: flow.created_at.us(),
                finished_at: flow.finished_at.map(Moment::us),
            });
            self.put_row(Kind::Flow, name.as_str(), row.as_ref());
        }
    }

    /// Reads one of these rows at a start. Dependents, members and open edges of a job come from its own row.
    pub(crate) fn restore_kin(&mut self, kind: Kind, key: &str, value: &str) -> Option<()> {
        match kind {
            Kind::Edge => {
                let row: EdgeRow = serde_json::from_str(value).ok()?;
                let (parent, child) = edge_of(key)?;
                self.dependencies.restore_edge(parent, (child, row.turn), row.open);
            }
            Kind::Followed => {
                let row: FollowedRow = serde_json::from_str(value).ok()?;
                let held = row.held.map(|HeldRow { state, until, bytes }| HeldJob {
                    state,
                    until: Moment::from_us(until),
                    bytes,
                });
                let followed = Followed { followers: 0, cancelled: row.cancelled, held };
                self.dependencies.restore_followed(key.parse().ok()?, followed);
            }
            Kind::Leaving => {
                let parents = Kin::of_row(value)?.parents;
                self.dependencies.restore_leaving(key.parse().ok()?, parents);
            }
            _ => {
                let row: FlowRow = serde_json::from_str(value).ok()?;
                let name = FlowName::known(key).ok()?;
                let flow = Flow {
                    members: Default::default(),
                    ended: row.ended,
                    rows: row.rows,
                    cancelling: row.cancelling,
                    created_at: Moment::from_us(row.created_at),
                    finished_at: row.finished_at.map(Moment::from_us),
                };
                self.flows.restore(name, flow);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_is_read_back_from_its_key() {
        let flow = |name| ParentKey::Flow(FlowName::known(name).unwrap());
        let child = Seq::new(70_000);
        for parent in [ParentKey::Job(Seq::new(9)), flow("a"), flow("a:b/7"), flow("job:1/2")] {
            assert_eq!(edge_of(&edge_key(&parent, child)), Some((parent, child)));
        }
        let parent = Seq::new(9);
        assert!(child_key(parent, Seq::new(9)) < child_key(parent, Seq::new(10)));
        assert_eq!(child_of(&child_key(parent, child)), Some(child));
        assert_eq!(edge_of("9"), None);
    }
}
