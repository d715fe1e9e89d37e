//! Edges, and the notification of children at an end. The checks before a job waits are in `parents`.

use crate::rows::Archive;
use crate::state::{Kin, LiveJobId, PORTION, Parent, ParentKey, Seq, Space, Stand};
use tenure_core::flow::OnParentFailure;
use tenure_core::job::JobState;
use tenure_core::sentences::StoredNote;
use tenure_core::time::Moment;

impl Space {
    /// The number of open edges of a job.
    pub(crate) fn waiting_on(&self, slot: LiveJobId) -> u32 {
        self.jobs[slot].kin.as_ref().map_or(0, |kin| kin.open)
    }

    /// A live job that waits nowhere yet waits for these parents in its present turn; each parent counts one more
    /// dependent.
    pub(crate) fn wait_for_parents(
        &mut self,
        slot: LiveJobId,
        open: &[ParentKey],
        archive: &dyn Archive,
    ) {
        let Some(kin) = &self.jobs[slot].kin else { return };
        let (seq, turn, parents) = (self.jobs[slot].seq, kin.turn, kin.parents.clone());
        self.kin_of(slot).follows = !parents.is_empty();
        for parent in parents.iter() {
            if let Parent::Job(parent, _) = parent {
                self.dependencies.follow(*parent);
                self.hold_finished(*parent, archive);
            }
        }
        for parent in open {
            self.dependencies.open(parent, seq, turn);
            self.edge_row(parent, seq, Some((turn, true)));
            if let ParentKey::Job(parent) = parent
                && let Some(parent) = self.jobs.by_seq(*parent)
                && !self.jobs[parent].kin.as_ref().is_some_and(|kin| kin.has_children)
            {
                self.kin_of(parent).has_children = true;
                self.jobs.mark(parent);
            }
        }
        if open.is_empty() {
            return;
        }
        self.kin_of(slot).open = open.len() as u32;
        self.depend(slot);
    }

    /// A job that waits nowhere yet waits for its parents.
    fn depend(&mut self, slot: LiveJobId) {
        self.jobs[slot].stand = Stand::Dependent;
        let queue = self.jobs.queue_of(slot);
        self.lines[queue].counts.dependent += 1;
        self.jobs.mark(slot);
    }

    pub(crate) fn kin_of(&mut self, slot: LiveJobId) -> &mut Kin {
        self.jobs[slot].kin.get_or_insert_with(|| Box::new(Kin::none()))
    }

    /// Removes an open edge; a job parent keeps it in its list of children.
    fn close_edge(&mut self, parent: &ParentKey, child: Seq) -> Option<u32> {
        let turn = self.dependencies.close(parent, child)?;
        match parent {
            ParentKey::Job(_) => self.edge_row(parent, child, Some((turn, false))),
            ParentKey::Flow(flow) => {
                self.flows.loosen(flow.clone());
                self.edge_row(parent, child, None);
            }
        }
        Some(turn)
    }

    /// Frees a child from a parent, notified or not.
    pub(super) fn forget_edge(&mut self, parent: &ParentKey, child: Seq) {
        self.close_edge(parent, child);
        self.dependencies.forget_told(parent, child);
    }

    /// At the end of a call, before the wait queues: notifies children and lets parents go.
    pub(crate) fn tell(&mut self, now: Moment) {
        for _ in 0..PORTION {
            let Some(parent) = self.next_to_tell() else { break };
            self.tell_one(&parent, now);
        }
        self.let_more_go();
        self.tell_ended_flows(now);
        self.drop_empty_flows();
    }

    /// The first parent with children to notify. A flow with unfinished members again makes the rest wait.
    fn next_to_tell(&mut self) -> Option<ParentKey> {
        loop {
            let parent = self.dependencies.first_telling()?.clone();
            let is_open = match &parent {
                ParentKey::Job(_) => false,
                ParentKey::Flow(flow) => self.flows.is_open(flow),
            };
            if !is_open {
                return Some(parent);
            }
            self.dependencies.stop_telling(&parent);
        }
    }

    fn tell_one(&mut self, parent: &ParentKey, now: Moment) {
        let edges = self.dependencies.edges().get(parent);
        let first = edges.and_then(|edges| edges.open.first_key_value());
        let Some(child) = first.map(|(child, _)| *child) else { return };
        let Some(turn) = self.close_edge(parent, child) else { return };
        let Some(slot) = self.jobs.by_seq(child) else { return };
        let failed = match parent {
            ParentKey::Job(seq) => {
                let held = self.dependencies.held(*seq);
                held.is_some_and(|held| held.state != JobState::Succeeded)
            }
            ParentKey::Flow(flow) => self.flows.has_failed(flow),
        };
        let job = &mut self.jobs[slot];
        let Some(kin) = job.kin.as_mut().filter(|kin| kin.turn == turn) else { return };
        if job.stand != Stand::Dependent {
            return;
        }
        if failed && kin.on_failure == OnParentFailure::Cancel {
            if let ParentKey::Job(seq) = parent {
                self.dependencies.count_cancelled(*seq);
                self.followed_row(*seq);
            }
            self.call_off(slot, Some(StoredNote::ParentFailed.to_string()), now);
            return;
        }
        kin.open -= 1;
        let is_free = kin.open == 0;
        if let ParentKey::Job(_) = parent {
            self.dependencies.note_told(parent, child, turn);
        }
        if is_free {
            self.stop_waiting(slot, now);
            // It arrives now, not at the time of its push.
            let job = &mut self.jobs[slot];
            job.run_at = job.run_at.max(now);
            self.go_from(slot, now);
            if self.jobs[slot].run_at <= now {
                self.job_is_ready(slot, "parents", now);
            }
        }
    }

    /// Puts a job that waits nowhere yet in its place: it waits for its parents, for its time, or in line.
    pub(crate) fn go_from(&mut self, slot: LiveJobId, now: Moment) {
        if self.waiting_on(slot) > 0 {
            self.depend(slot)
        } else if self.jobs[slot].run_at > now {
            self.schedule(slot)
        } else {
            self.make_ready(slot, now)
        }
    }

    /// True if a parent has ended; a flow ends with its last unfinished member.
    pub(crate) fn has_ended(&self, parent: &ParentKey) -> bool {
        match parent {
            ParentKey::Job(seq) => self.jobs.by_seq(*seq).is_none(),
            ParentKey::Flow(flow) => !self.flows.is_open(flow),
        }
    }
}
