//! Calls about jobs: pushed, shown, changed.

use tenure_core::flow::Kinship;
use tenure_core::job::{JobView, Labels, Retry};
use tenure_core::requests::{GetJob, Patch, PatchJob, Push, PushAnswer, Pushed};
use tenure_core::secret::Json;
use tenure_engine::{CallError, Fault, ids};

use crate::answer::Answerable;
use crate::call::{AskError, Caller, malformed};
use crate::decode::{Answered, FromWire, PushReply, SentTexts, Stored, pushed_ids, pushed_jobs};
use crate::encode::{
    JobBody, NewBody, OneCall, PatchJobArgs, PushArgs, body_of, content_bytes, pack, read_body,
};
use crate::function::Function;

const PUSH: Function = Function::of::<Push>();
const GET_JOB: Function = Function::of::<GetJob>();
const PATCH_JOB: Function = Function::of::<PatchJob>();

/// So often a body is read again that others change meanwhile.
const READ_AGAIN_MAX: u32 = 10;

impl Answerable for Push {
    async fn answer(self, caller: Caller) -> Result<Pushed, CallError> {
        push(&caller, self).await
    }
}

async fn push(caller: &Caller, mut push: Push) -> Result<Pushed, CallError> {
    let fresh = ids::fill_in(push.jobs.iter_mut(), caller.shared.wall())?;
    let whole = push.answer == PushAnswer::Whole;
    if whole {
        // A job that was there may run: its lease is shown.
        caller.signer().await?;
    }
    let default = Retry::default();
    let kinship = Kinship::of(&push.jobs)?;
    let ask = async |together: bool| {
        let (args, texts) = PushArgs::of(&push.jobs, &kinship, &default, whole, fresh, together);
        let asked = caller.ask_beside::<PushReply>(PUSH, pack(&args), &texts).await?;
        let sent = args.rows_of_texts().into_iter().zip(texts).collect();
        Ok::<_, AskError>((asked, SentTexts(sent)))
    };
    let mut asked = ask(true).await?;
    if let PushReply::All { known: true, .. } = asked.0.reply {
        // Some are there already, so nothing was stored yet.
        asked = ask(false).await?;
    }
    let (Answered { reply, blobs, .. }, sent) = asked;
    match reply {
        PushReply::Each(each) if whole => pushed_jobs(each, &blobs, true).map(Pushed::Whole),
        PushReply::All { stored: Some(stored), unasked, .. } => {
            stored.jobs(&sent, unasked, &blobs).map(Pushed::Whole)
        }
        reply => Ok(Pushed::Ids(pushed_ids(&push.jobs, reply))),
    }
    .map_err(malformed(PUSH))
}

impl Answerable for PatchJob {
    async fn answer(self, caller: Caller) -> Result<Box<JobView>, CallError> {
        patch_job(&caller, self).await
    }
}

/// Changes a job. Its body is changed here, so it is read first, and the change holds only if it is
/// still the same.
async fn patch_job(caller: &Caller, patch: PatchJob) -> Result<Box<JobView>, CallError> {
    let shown = |Answered { reply, blobs, .. }: Answered<Stored>| {
        Box::<JobView>::read(reply, &blobs).map_err(malformed(PATCH_JOB))
    };
    if !patch.payload.is_named() && !patch.labels.is_named() {
        return shown(caller.ask(PATCH_JOB, pack(&PatchJobArgs::of(&patch, None))).await?);
    }
    for _ in 0..READ_AGAIN_MAX {
        let args = GetJob { job: patch.job.clone() }.args();
        let Answered { reply, blobs, .. } = caller.ask::<Stored>(GET_JOB, args).await?;
        let was = reply.body(&blobs).map_err(malformed(GET_JOB))?;
        let body = patched(&patch, was)?;
        let args = pack(&PatchJobArgs::of(&patch, Some(&body)));
        match caller.ask(PATCH_JOB, args).await {
            Ok(answered) => return shown(answered),
            Err(AskError::StaleBody) => {}
            Err(AskError::Call(why)) => return Err(why),
        }
    }
    let why = "others change this job all the time: change it again in a moment";
    Err(Fault::Unavailable(why.to_owned()).into())
}

/// The body as a patch leaves it.
fn patched(patch: &PatchJob, was: String) -> Result<NewBody, CallError> {
    let read = read_body(was.as_bytes());
    let JobBody { kind, mut payload, mut labels, traceparent } = read.ok_or_else(|| {
        CallError::from(Fault::Broken("the body of a job is not of its form".to_owned()))
    })?;
    match &patch.payload {
        Patch::Keep => {}
        Patch::Reset => payload = Json::null(),
        Patch::Set(value) => payload = value.clone(),
    }
    match &patch.labels {
        Patch::Keep => {}
        Patch::Reset => labels = Labels::new(),
        Patch::Set(value) => labels = value.clone(),
    }
    let bytes = content_bytes(payload.text(), &labels);
    Ok(NewBody { body: body_of(&kind, &payload, &labels, traceparent.as_ref()), was, bytes })
}
