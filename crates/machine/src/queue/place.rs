//! Place in line: the number of jobs or lock waiters that would be granted first if nothing new came. It only reads.
//!
//! In one queue the order is by priority, then by the virtual times of the groups, then by arrival. The k-th waiting
//! job of a group starts at the group's time plus k units, and the least (start, arrival) goes next; so the number of
//! earlier jobs of another group is arithmetic, without a walk through its jobs. A head that reserves goes before all
//! of them.
//!
//! Queues of one line take turns, in the order in which their workers ask. The reported order assumes that all ask
//! alike: the first of each queue, lock waiters before queues and these by name, then the second of each, and so on.
//!
//! At most [`ITEMS_MAX`] lanes are counted. In a longer line the number is a lower bound.

use std::collections::{BTreeMap, BTreeSet};

use crate::queue::line::InLine;

use crate::state::{DoorId, Entry, LaneId, QueueId, TurnId, WaitingLines, rank_of};
use tenure_core::bounds::{ITEMS_MAX, LINE_SHOWN};

/// The jobs of one group and priority in one line.
struct Run {
    /// The virtual start of the first of them.
    start: u64,
    /// The distance between two starts.
    unit: u64,
    lanes: Vec<LaneId>,
    /// Arrivals of heads that reserve, which are counted separately.
    reserving: Vec<u64>,
}

/// The part of one queue in one line.
#[derive(Default)]
struct QueueLine {
    /// Heads that reserve, by arrival and lane.
    reserving: BTreeSet<(u64, LaneId)>,
    /// By negated priority and group.
    runs: BTreeMap<(i16, TurnId), Run>,
}

impl Run {
    fn len(&self, lines: &WaitingLines) -> u64 {
        let all: usize = self.lanes.iter().map(|lane| lines[*lane].line.len()).sum();
        (all - self.reserving.len()) as u64
    }

    /// The number of these that arrived earlier.
    fn rank(&self, lines: &WaitingLines, arrival: u64) -> u64 {
        let all: usize = self.lanes.iter().map(|lane| lines[*lane].line.rank(arrival)).sum();
        (all - self.reserving.iter().filter(|head| **head < arrival).count()) as u64
    }

    /// The number of these that go before a job of another group.
    fn before(&self, lines: &WaitingLines, start: u64, arrival: u64) -> u64 {
        let Some(ahead) = start.checked_sub(self.start) else { return 0 };
        let (sooner, len) = (ahead.div_ceil(self.unit), self.len(lines));
        if sooner >= len {
            return len;
        }
        // One may start at the very same time: then the earlier arrival goes first.
        let tie = ahead.is_multiple_of(self.unit) && self.rank(lines, arrival) > sooner;
        sooner + u64::from(tie)
    }
}

impl WaitingLines {
    fn add_lane(&self, line: &mut QueueLine, lane: LaneId, start: Option<u64>, left: &mut usize) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let (group, rank) = (self.group_of(lane), rank_of(self[lane].key.priority));
        let run = line.runs.entry((rank, group)).or_insert_with(|| {
            let g = &self[group];
            let v = self[g.queue].priorities.get(&rank).map_or(0, |turns| turns.v);
            let start = start.unwrap_or(g.own.max(v));
            Run { start, unit: self.turn_unit(group), lanes: Vec::new(), reserving: Vec::new() }
        });
        run.lanes.push(lane);
    }

    fn add_entry(&self, line: &mut QueueLine, entry: Entry, start: Option<u64>, left: &mut usize) {
        match entry {
            Entry::Lane(lane) => self.add_lane(line, lane, start, left),
            Entry::Bundle(bundle) => {
                for (_, lane) in self[bundle].open.iter().take(*left) {
                    self.add_lane(line, *lane, start, left);
                }
            }
            Entry::Queue(_) => {}
        }
    }

    /// The ready order of a queue down to a priority; the group of `own` is counted first.
    fn ready_line(
        &self,
        queue: QueueId,
        down_to: i16,
        own: Option<LaneId>,
        left: &mut usize,
    ) -> QueueLine {
        let mut line = QueueLine::default();
        let own = own.map(|lane| self.group_of(lane));
        let add = |line: &mut QueueLine, group: TurnId, left: &mut usize| {
            for (_, bundle) in &self[group].open {
                self.add_entry(line, Entry::Bundle(*bundle), None, left);
            }
        };
        if let Some(own) = own {
            add(&mut line, own, left);
        }
        for turns in self[queue].priorities.range(..=down_to).map(|(_, turns)| turns) {
            for (_, _, group) in turns.open.iter().filter(|open| Some(open.2) != own) {
                if *left == 0 {
                    return line;
                }
                add(&mut line, *group, left);
            }
        }
        line
    }

    /// The entries of one queue in a wait queue, and those that the wait queue has opened for a try.
    fn door_line(&self, door: DoorId, queue: QueueId, left: &mut usize) -> QueueLine {
        let Some(at_door) = self[door].lines.get(&queue) else { return QueueLine::default() };
        if at_door.whole {
            return self.ready_line(queue, i16::MAX, None, left);
        }
        let mut line = QueueLine::default();
        for (_, tag, _, group) in &at_door.order {
            let Some(of_group) = at_door.groups.get(group) else { continue };
            for (_, entry) in &of_group.entries {
                if *left == 0 {
                    return line;
                }
                self.add_entry(&mut line, *entry, Some(*tag), left);
            }
        }
        for (_, entry) in &at_door.reserving {
            self.add_entry(&mut line, *entry, None, left);
            let Entry::Lane(lane) = entry else { continue };
            let key = (rank_of(self[*lane].key.priority), self.group_of(*lane));
            if let (Some((arrival, _)), Some(run)) = (self.head(*lane), line.runs.get_mut(&key))
                && run.lanes.last() == Some(lane)
            {
                run.reserving.push(arrival);
                line.reserving.insert((arrival, *lane));
            }
        }
        if let Some(offered) = at_door.offered {
            self.add_entry(&mut line, offered, None, left);
        }
        line
    }

    /// The number of jobs of its own queue before an arrival in a lane.
    fn ahead_in(&self, line: &mut QueueLine, lane: LaneId, arrival: u64) -> u64 {
        if line.reserving.contains(&(arrival, lane)) {
            return line.reserving.range(..(arrival, lane)).count() as u64;
        }
        let key = (rank_of(self[lane].key.priority), self.group_of(lane));
        if !line.runs.get(&key).is_some_and(|run| run.lanes.contains(&lane)) {
            self.add_lane(line, lane, None, &mut 1);
        }
        let Some(own) = line.runs.get(&key) else { return 0 };
        let before = own.rank(self, arrival);
        let start = own.start + before * own.unit;
        let others = line.runs.range(..(key.0 + 1, TurnId::new(0))).map(|((rank, group), run)| {
            if *rank < key.0 {
                run.len(self)
            } else if *group == key.1 {
                before
            } else {
                run.before(self, start, arrival)
            }
        });
        others.sum::<u64>() + line.reserving.len() as u64
    }

    /// The number of jobs of its queue before a ready one.
    pub fn ahead_in_queue(&self, lane: LaneId, arrival: u64) -> u64 {
        let key = &self[lane].key;
        let mut left = ITEMS_MAX;
        let rank = rank_of(key.priority);
        let mut line = self.ready_line(key.queue, rank, Some(lane), &mut left);
        self.ahead_in(&mut line, lane, arrival)
    }

    /// The number of entries of all queues before one in a wait queue.
    pub fn ahead_at_door(&self, door: DoorId, lane: LaneId, arrival: u64) -> u64 {
        let queue = self[lane].key.queue;
        let mut left = ITEMS_MAX;
        let before = self.ahead_in(&mut self.door_line(door, queue, &mut left), lane, arrival);
        let others = self[door].lines.keys().filter(|other| **other != queue);
        let (misfits, name) = (self.misfits_at(door), &self[queue].name);
        let others = others.take(ITEMS_MAX).map(|other| {
            let len = self.standing_at(door, *other, &misfits);
            len.min(before) + u64::from(len > before && self[*other].name < *name)
        });
        before + others.sum::<u64>()
    }

    /// Unsatisfiable jobs of each queue in a wait queue: they are not part of its line.
    fn misfits_at(&self, door: DoorId) -> BTreeMap<QueueId, u64> {
        let mut misfits = BTreeMap::new();
        let d = &self[door];
        for entry in d.misfits.iter().chain(&d.retry).take(ITEMS_MAX) {
            *misfits.entry(self.entry_queue(*entry)).or_default() += self.entry_len(*entry);
        }
        misfits
    }

    fn entry_len(&self, entry: Entry) -> u64 {
        match entry {
            Entry::Lane(lane) => self[lane].line.len() as u64,
            Entry::Bundle(bundle) => self[bundle].waiting,
            Entry::Queue(_) => 0,
        }
    }

    /// The number of a queue's jobs in a wait queue, with those that it has opened.
    fn standing_at(&self, door: DoorId, queue: QueueId, misfits: &BTreeMap<QueueId, u64>) -> u64 {
        let (line, counts) = (&self[door].lines[&queue], &self[queue].counts);
        let aside = misfits.get(&queue).copied().unwrap_or(0);
        let whole = if line.whole { counts.waiting - counts.blocked } else { 0 };
        let offered = line.offered.map_or(0, |entry| self.entry_len(entry));
        line.waiting.saturating_sub(aside) + whole + offered
    }

    /// The first of one queue's line, in order.
    fn first_of(&self, line: &QueueLine) -> Vec<InLine> {
        let reserving = line
            .reserving
            .iter()
            .filter_map(|(arrival, lane)| Some((i16::MIN, 0, *arrival, self.head(*lane)?.1)));
        let mut first: Vec<(i16, u64, u64, InLine)> = reserving.collect();
        let head = |lane: &LaneId| self.head(*lane).map_or(u64::MAX, |head| head.0);
        let mut runs: Vec<_> = line.runs.iter().filter(|(_, run)| run.len(self) > 0).collect();
        runs.sort_by_key(|((rank, _), run)| {
            (*rank, run.start, run.lanes.iter().map(head).min().unwrap_or(u64::MAX))
        });
        for ((rank, _), run) in runs.into_iter().take(LINE_SHOWN) {
            let mut lanes = run.lanes.clone();
            lanes.sort_by_key(head);
            let most = LINE_SHOWN + run.reserving.len();
            let heads = lanes
                .iter()
                .take(most)
                .flat_map(|lane| self[*lane].line.iter().take(LINE_SHOWN + 1));
            let mut jobs: Vec<(u64, InLine)> =
                heads.filter(|(arrival, _)| !run.reserving.contains(arrival)).collect();
            jobs.sort_unstable();
            let jobs = jobs.into_iter().take(LINE_SHOWN).zip(0u64..);
            first.extend(jobs.map(|((at, slot), k)| (*rank, run.start + k * run.unit, at, slot)));
        }
        first.sort_unstable();
        first.into_iter().take(LINE_SHOWN).map(|(.., slot)| slot).collect()
    }

    /// The first in line in a wait queue: queue and job, or lock waiter.
    pub fn line_at(&self, door: DoorId) -> Vec<(QueueId, InLine)> {
        let mut left = ITEMS_MAX;
        let mut queues: Vec<QueueId> = self[door].lines.keys().take(ITEMS_MAX).copied().collect();
        queues.sort_by_key(|queue| self[*queue].name.clone());
        let lines: Vec<(QueueId, Vec<InLine>)> = queues
            .into_iter()
            .take(LINE_SHOWN)
            .map(|queue| (queue, self.first_of(&self.door_line(door, queue, &mut left))))
            .collect();
        let turn = |k: usize| lines.iter().filter_map(move |(queue, l)| Some((*queue, *l.get(k)?)));
        (0..LINE_SHOWN).flat_map(turn).take(LINE_SHOWN).collect()
    }
}
