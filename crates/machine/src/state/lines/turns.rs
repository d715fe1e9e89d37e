//! The turns of groups: start-time fair queuing within a queue and a priority.

use super::{WaitingLines, rank_of};
use crate::state::{GroupTurn, LaneId, LaneKey, QueueId, TurnId};
use tenure_core::bounds::{SHARE_UNIT, STEPS_MAX};
use tenure_core::names::Group;

impl WaitingLines {
    pub(super) fn group_for(&mut self, key: &LaneKey) -> TurnId {
        let turns = self.queues[key.queue].priorities.entry(rank_of(key.priority)).or_default();
        turns.grouped |= key.group.is_some();
        if let Some(group) = turns.groups.get(&key.group) {
            let group = *group;
            let own = self.groups[group].own;
            turns.idle.remove(&(own, group));
            return group;
        }
        let group = self.groups.insert(GroupTurn {
            queue: key.queue,
            priority: key.priority,
            name: key.group.clone(),
            own: turns.v,
            open: Default::default(),
            ordered: None,
            bundles: Default::default(),
        });
        turns.groups.insert(key.group.clone(), group);
        group
    }

    /// Forgets an idle group once its time is not above the priority's.
    pub(super) fn forget_idle_groups(&mut self, queue: QueueId, rank: i16) {
        let q = &mut self.queues[queue];
        let name = q.name.clone();
        let Some(turns) = q.priorities.get_mut(&rank) else { return };
        for _ in 0..STEPS_MAX {
            match turns.idle.first() {
                Some((own, group)) if *own <= turns.v => {
                    let group = *group;
                    turns.idle.pop_first();
                    if let Some(gone) = self.groups.remove(group) {
                        if turns.grouped
                            && let Some(name) = &name
                        {
                            let row = (name.clone(), rank, gone.name.clone());
                            self.forgotten_turns.push(row);
                        }
                        turns.groups.remove(&gone.name);
                    }
                }
                _ => break,
            }
        }
        let more = turns.has_void();
        if turns.groups.is_empty() {
            self.queues[queue].priorities.remove(&rank);
        }
        if more {
            self.void_turns.insert((queue, rank));
        } else {
            self.void_turns.remove(&(queue, rank));
        }
    }

    /// A priority becomes idle: V rises to the highest finish, which makes the times of all its
    /// idle groups void. Otherwise a group that came once, with one job, would be remembered for as
    /// long as only such groups come: each of them starts at V, so V never moves on.
    pub fn void_priority(&mut self, queue: QueueId, rank: i16) {
        if let Some(turns) = self.queues[queue].priorities.get_mut(&rank) {
            turns.v = turns.v.max(turns.top);
        }
        self.forget_idle_groups(queue, rank);
    }

    /// The first priority with more idle groups to forget than one step may.
    pub fn forget_more_groups(&mut self) -> Option<QueueId> {
        let (queue, rank) = self.void_turns.first().copied()?;
        self.forget_idle_groups(queue, rank);
        Some(queue)
    }

    /// Restores a group from its row.
    pub fn restore_turn(
        &mut self,
        queue: QueueId,
        (rank, name): (i16, Option<Group>),
        own: u64,
        v: u64,
    ) {
        let turns = self.queues[queue].priorities.entry(rank).or_default();
        turns.v = turns.v.max(v);
        turns.top = turns.top.max(v).max(own);
        turns.grouped = true;
        let group = self.groups.insert(GroupTurn {
            queue,
            priority: (-rank) as i8,
            name: name.clone(),
            own,
            open: Default::default(),
            ordered: None,
            bundles: Default::default(),
        });
        debug_assert_eq!(rank_of((-rank) as i8), rank);
        turns.groups.insert(name, group);
        turns.idle.insert((own, group));
    }

    /// After the last row of a start: groups without jobs only matter to priorities with jobs.
    pub fn restored_turns(&mut self) {
        let mut void = Vec::new();
        for (queue, q) in self.queues.iter_mut() {
            for (rank, turns) in &mut q.priorities {
                if turns.waiting == 0 {
                    turns.v = turns.v.max(turns.top);
                }
                if turns.has_void() {
                    void.push((queue, *rank));
                }
            }
        }
        self.void_turns.extend(void);
    }

    pub fn order_group(&mut self, group: TurnId) {
        let g = &mut self.groups[group];
        let (queue, rank) = (g.queue, rank_of(g.priority));
        let Some(turns) = self.queues[queue].priorities.get_mut(&rank) else { return };
        let key = g.open.first().map(|first| first.0);
        if g.ordered.is_none() && key.is_some() {
            // It was idle or blocked: it starts again at V, so that waiting earns no credit.
            g.own = g.own.max(turns.v);
        }
        let key = key.map(|arrival| (g.own, arrival));
        if g.ordered == key {
            return;
        }
        if let Some((own, arrival)) = std::mem::replace(&mut g.ordered, key) {
            turns.open.remove(&(own, arrival, group));
        }
        if let Some((own, arrival)) = key {
            turns.open.insert((own, arrival, group));
            self.queues_to_serve.insert(queue);
        }
    }

    /// Wakes an idle group that gets a job.
    pub(super) fn wake_group(&mut self, group: TurnId) {
        let g = &self.groups[group];
        let (queue, rank, own) = (g.queue, rank_of(g.priority), g.own);
        if let Some(turns) = self.queues[queue].priorities.get_mut(&rank) {
            turns.idle.remove(&(own, group));
        }
    }

    /// The step of a group's time for one grant.
    pub fn turn_unit(&self, group: TurnId) -> u64 {
        let g = &self.groups[group];
        let shares = &self.queues[g.queue].settings.shares;
        let shares = g.name.as_ref().and_then(|name| shares.get(name)).copied().unwrap_or(1);
        SHARE_UNIT / u64::from(shares.max(1))
    }

    /// Books a grant of a group: start-time fair queuing.
    pub fn book_turn(&mut self, lane: LaneId) {
        let group = self.bundles[self.lanes[lane].bundle].group;
        let g = &self.groups[group];
        let (queue, rank, own) = (g.queue, rank_of(g.priority), g.own);
        let unit = self.turn_unit(group);
        let Some(turns) = self.queues[queue].priorities.get_mut(&rank) else { return };
        let start = own.max(turns.v);
        turns.v = start;
        let grouped = turns.grouped;
        let g = &mut self.groups[group];
        let idle = g.bundles.is_empty();
        debug_assert!(!idle, "a group that is granted has a bundle");
        let finish = start + unit;
        g.own = finish;
        turns.top = turns.top.max(finish);
        // Its key has changed, not its head.
        let old = g.ordered;
        if let Some((old_own, arrival)) = old {
            let new = (g.own, arrival);
            g.ordered = Some(new);
            if let Some(turns) = self.queues[queue].priorities.get_mut(&rank) {
                turns.open.remove(&(old_own, arrival, group));
                turns.open.insert((new.0, new.1, group));
            }
        }
        if grouped {
            self.changed_turns.insert(group);
            self.forget_idle_groups(queue, rank);
        }
    }
}
