//! Queues: defaults, shares, pause, delete.

use crate::answer::acts;
use crate::rows::Kind;
use crate::state::{Entry, Place, QueueId, Space};
use tenure_core::bounds::{FORGET_AGAIN_US, FORGET_US};
use tenure_core::events::{About, EventType};
use tenure_core::lease::Later;
use tenure_core::names::QueueName;
use tenure_core::need_template::check_templates;
use tenure_core::refusal::Refusal;
use tenure_core::requests::{
    DeleteQueue, GetQueue, ListQueues, Listed, PatchQueue, PauseQueue, Put, PutQueue, ResumeQueue,
};
use tenure_core::sentences::QueueRefusal;
use tenure_core::settings::{QueueSettings, QueueView};
use tenure_core::time::{Moment, Span};

pub(crate) fn queue_not_found(queue: &QueueName) -> Refusal {
    QueueRefusal::NotFound { queue: queue.clone() }.into()
}

impl Space {
    pub(crate) fn queue_named(&self, name: &QueueName) -> Result<QueueId, Refusal> {
        let queue = self.lines.queue_by_name().get(name).copied();
        queue.filter(|queue| !self.lines[*queue].hidden).ok_or_else(|| queue_not_found(name))
    }

    pub(crate) fn put_queue(
        &mut self,
        put: PutQueue,
        now: Moment,
    ) -> Result<(QueueId, bool), Refusal> {
        let needs = &put.settings.needs;
        check_templates(needs).map_err(|no| no.below("/needs"))?;
        self.check_needs(needs).map_err(|no| no.below("/needs"))?;
        let created = self.queue_named(&put.queue).is_err();
        let queue = self.queue_for(&put.queue, now);
        if created || self.lines[queue].settings != put.settings {
            self.queue_happens(queue, EventType::QueueChanged, None, now);
        }
        self.set_queue(queue, put.settings);
        Ok((queue, created))
    }

    pub(crate) fn patch_queue(
        &mut self,
        patch: PatchQueue,
        now: Moment,
    ) -> Result<(QueueId, bool), Refusal> {
        let queue = self.queue_named(&patch.queue)?;
        let mut settings = self.lines[queue].settings.clone();
        patch.needs.apply_or_default(&mut settings.needs);
        patch.retry.apply(&mut settings.retry);
        patch.timeout.apply(&mut settings.timeout);
        patch.retain.apply(&mut settings.retain);
        patch.max_waiting.apply(&mut settings.max_waiting);
        patch.lost_delay.apply(&mut settings.lost_delay);
        patch.shares.apply_or_default(&mut settings.shares);
        patch
            .show_payload
            .apply_or(&mut settings.show_payload, QueueSettings::SHOW_PAYLOAD_DEFAULT);
        self.put_queue(PutQueue { queue: patch.queue, settings }, now)
    }

    fn queue_shown(&self, queue: QueueId, now: Moment) -> QueueView {
        match self.queue_view(queue, now) {
            Some(view) => view,
            None => panic!("a queue that was just found is not there"),
        }
    }

    fn queue_happens(
        &mut self,
        queue: QueueId,
        kind: EventType,
        until: Option<Moment>,
        now: Moment,
    ) {
        let queue = self.lines[queue].name.clone();
        self.happens(kind, About { queue, until, ..About::default() }, now);
    }

    fn set_queue(&mut self, queue: QueueId, settings: QueueSettings) {
        self.lines[queue].settings = settings;
        self.lines.mark_queue(queue);
    }

    pub(crate) fn delete_queue(&mut self, name: &QueueName, now: Moment) -> Result<(), Refusal> {
        let queue = self.queue_named(name)?;
        let unfinished = self.lines[queue].counts.unfinished();
        if unfinished > 0 {
            return Err(QueueRefusal::NotEmpty { queue: name.clone(), unfinished }.into());
        }
        self.queue_happens(queue, EventType::QueueDeleted, None, now);
        // Finished jobs stay in the archive, and waiting calls keep waiting. So only the settings go; the entry itself
        // is still needed.
        self.lines[queue].settings = QueueSettings::default();
        self.lines.pause_queue(queue, None);
        self.lines[queue].asked_at = None;
        for rank in self.lines[queue].priorities.keys().copied().collect::<Vec<_>>() {
            self.lines.void_priority(queue, rank);
        }
        self.put(Kind::Queue, name.as_str(), None);
        self.lines.unmark_queue(queue);
        self.lines[queue].hidden = true;
        self.drop_hidden_queue_if_idle(queue);
        Ok(())
    }

    /// Drops a deleted, hidden queue once it is unused.
    pub(crate) fn drop_hidden_queue_if_idle(&mut self, queue: QueueId) {
        let left_over = self.lines.queue(queue).filter(|q| q.is_left_over());
        if let Some(name) = left_over.and_then(|q| q.name.clone()) {
            self.drop_queue(queue, &name);
        }
    }

    /// An empty queue without settings is dropped a day after its last use; otherwise every name ever pushed to would
    /// stay forever.
    pub(crate) fn forget_unused_queue(&mut self, queue: QueueId, now: Moment) {
        let Some(q) = self.lines.queue(queue) else { return };
        let Some(name) = q.name.clone() else { return };
        let unset = q.settings == QueueSettings::default() && q.paused_until.is_none();
        let ends = q.used_at.plus(Span::from_us(FORGET_US));
        if q.is_idle() && (q.hidden || unset && ends <= now) {
            if !q.hidden {
                self.put(Kind::Queue, name.as_str(), None);
                self.lines.unmark_queue(queue);
            }
            self.drop_queue(queue, &name);
            return;
        }
        let again = ends.max(now.plus(Span::from_us(FORGET_AGAIN_US)));
        self.lines.look_at_queue(queue, again);
    }

    /// Removes a queue from the index; nothing points to it.
    fn drop_queue(&mut self, queue: QueueId, name: &QueueName) {
        self.workers.forget_queue(queue);
        if self.lines[queue].place != Place::Open {
            self.leave_door(Entry::Queue(queue));
        }
        self.clear_out(Entry::Queue(queue));
        if let Some(limit) = self.lines.remove_queue(queue, name).and_then(|q| q.limit) {
            self.limits[limit].uses -= 1;
            self.drop_limit_if_idle(limit);
        }
    }

    pub(crate) fn pause_queue(
        &mut self,
        name: &QueueName,
        until: Option<Later>,
        now: Moment,
    ) -> QueueId {
        let queue = self.queue_for(name, now);
        let until = until.map_or(Moment::MAX, |later| later.moment(now));
        let until = self.lines[queue].paused_until.map_or(until, |old| old.max(until));
        self.lines.pause_queue(queue, Some(until).filter(|until| *until > now));
        if until > now {
            self.drop_reservations_of_queue(queue, now);
            let ends = Some(until).filter(|until| *until < Moment::MAX);
            self.queue_happens(queue, EventType::QueuePaused, ends, now);
        }
        self.lines.mark_queue(queue);
        queue
    }

    pub(crate) fn resume_queue(
        &mut self,
        name: &QueueName,
        now: Moment,
    ) -> Result<QueueId, Refusal> {
        let queue = self.queue_named(name)?;
        if self.lines[queue].paused_until.is_some_and(|until| until > now) {
            self.queue_happens(queue, EventType::QueueResumed, None, now);
        }
        self.lines.pause_queue(queue, None);
        self.lines.mark_queue(queue);
        self.lines.serve(queue);
        Ok(queue)
    }
}

acts! {
    ListQueues => Listed<QueueView>, |ask, at| Ok(at.space.list_queues(&ask.page, at.now));
    GetQueue => QueueView, |ask, at| {
        let queue = at.space.queue_named(&ask.queue)?;
        Ok(at.space.queue_shown(queue, at.now))
    };
    PutQueue => Put<QueueView>, |ask, at| {
        let (queue, created) = at.space.put_queue(ask, at.now)?;
        Ok(Put { view: at.space.queue_shown(queue, at.now), created })
    };
    PatchQueue => Put<QueueView>, |ask, at| {
        let (queue, created) = at.space.patch_queue(ask, at.now)?;
        Ok(Put { view: at.space.queue_shown(queue, at.now), created })
    };
    DeleteQueue => (), |ask, at| at.space.delete_queue(&ask.queue, at.now);
    PauseQueue => QueueView, |ask, at| {
        let queue = at.space.pause_queue(&ask.queue, ask.until, at.now);
        Ok(at.space.queue_shown(queue, at.now))
    };
    ResumeQueue => QueueView, |ask, at| {
        let queue = at.space.resume_queue(&ask.queue, at.now)?;
        Ok(at.space.queue_shown(queue, at.now))
    };
}
