//! Patch: changes a job that is neither running nor finished. It keeps its age in the order, unless
//! its `run_at` changes.

use crate::answer::{JobAt, acts};
use crate::ops::cancel::Named;
use crate::rows::stored::StoredShape;
use crate::rows::{Archive, ContentPatch};
use crate::state::{Seq, Space, Stand};
use tenure_core::events::EventType;
use tenure_core::job::When;
use tenure_core::need_template::{filled, has_templates};
use tenure_core::refusal::Refusal;
use tenure_core::requests::{Patch, PatchJob};
use tenure_core::secret::Json;
use tenure_core::sentences::{JobRefusal, NeedRefusal};
use tenure_core::time::{Moment, Span};

impl Space {
    fn patch_job(
        &mut self,
        patch: PatchJob,
        archive: &dyn Archive,
        now: Moment,
    ) -> Result<Seq, Refusal> {
        let no = |job, state| Err(JobRefusal::NotChangeable { job, state }.into());
        let slot = match self.named(&patch.job, archive)? {
            Named::Live(slot) if matches!(self.jobs[slot].stand, Stand::Running(_)) => {
                return no(self.jobs[slot].id.clone(), self.state_of(slot));
            }
            Named::Live(slot) => slot,
            Named::Finished(job) => return no(job.id, job.state),
        };
        let shape = self.jobs.shape_of(slot);
        let settings = self.lines[shape.queue].settings.clone();
        let Some(mut new) = StoredShape::decode(&shape.bytes) else {
            return Ok(self.jobs[slot].seq);
        };
        let old = new.clone();
        patch.priority.apply_or_default(&mut new.priority);
        patch.group.apply(&mut new.group);
        match patch.needs {
            Patch::Keep => {}
            Patch::Reset => {
                new.needs = match &patch.payload {
                    Patch::Set(payload) => {
                        filled(&settings.needs, payload, &new.queue)?.into_owned()
                    }
                    // Only the row has the existing payload.
                    Patch::Keep if has_templates(&settings.needs) => {
                        let queue = new.queue.clone();
                        let no = NeedRefusal::PatchLacksPayload { queue };
                        return Err(Refusal::from(no).at("/needs"));
                    }
                    Patch::Keep => settings.needs,
                    Patch::Reset => {
                        filled(&settings.needs, &Json::null(), &new.queue)?.into_owned()
                    }
                }
            }
            Patch::Set(needs) => new.needs = needs,
        }
        match patch.timeout {
            Patch::Keep => {}
            Patch::Reset => new.timeout = settings.timeout,
            Patch::Set(timeout) => new.timeout = Some(timeout),
        }
        if new.needs != old.needs {
            self.check_needs(&new.needs).map_err(|no| no.below("/needs"))?;
        }
        // All checks are done; changes begin here.
        let seq = self.jobs[slot].seq;
        let is_content = patch.payload.is_named() || patch.labels.is_named();
        if is_content {
            let content = self.outbox.job(seq).patch.get_or_insert_default();
            let ContentPatch { payload, labels, .. } = content.as_mut();
            match patch.payload {
                Patch::Keep => {}
                Patch::Reset => *payload = Some(Default::default()),
                Patch::Set(value) => *payload = Some(value),
            }
            match patch.labels {
                Patch::Keep => {}
                Patch::Reset => *labels = Some(Default::default()),
                Patch::Set(value) => *labels = Some(value),
            }
            self.jobs.edited(slot);
        }
        if patch.expires_at.is_named() {
            let mut expires_at = self.jobs[slot].expires_at;
            patch.expires_at.apply(&mut expires_at);
            self.jobs.expire_at(slot, expires_at);
            self.jobs.mark(slot);
        }
        let when = match patch.when {
            Patch::Keep => None,
            Patch::Reset => Some(When::Now),
            Patch::Set(when) => Some(when),
        };
        let names_row = patch.expires_at.is_named() || is_content;
        if new != old || when.is_some() || names_row {
            self.job_happens(slot, EventType::JobChanged, now);
        }
        if new == old && when.is_none() {
            return Ok(seq);
        }
        let waited = matches!(self.jobs[slot].stand, Stand::Waiting(_));
        self.stop_waiting(slot, now);
        if new != old {
            self.reshape(slot, &new, now);
        }
        let job = &mut self.jobs[slot];
        match when {
            Some(when) => {
                job.run_at = when.moment(now);
                job.wait = Span::ZERO;
                job.keeps_place = false;
            }
            // Its arrival is its age: a higher priority, another group or other needs move it to
            // another line, where its place is by that age.
            None => job.keeps_place |= waited,
        }
        self.go_from(slot, now);
        Ok(seq)
    }
}

acts! {
    PatchJob => JobAt, |ask, at| {
        let job = ask.job.clone();
        let seq = at.space.patch_job(ask, at.rest, at.now)?;
        Ok(at.space.job_at(job, seq))
    };
}
