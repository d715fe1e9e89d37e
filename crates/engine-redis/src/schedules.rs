//! Calls about schedules, and what a tick asks for: plans, and moments that are to be decided.

use std::time::Duration;

use tenure_core::bounds::{LIST_MAX, PLAN_MOMENTS_MAX};
use tenure_core::job::{PushedJob, Retry};
use tenure_core::names::ScheduleId;
use tenure_core::requests::{
    GetSchedule, ListSchedules, Listed, PatchSchedule, Put, PutSchedule, RunScheduleNow,
};
use tenure_core::schedule::{FirstPlan, Plan, PlanWanted, ScheduleSettings, ScheduleView};
use tenure_core::time::Moment;
use tenure_engine::schedules::{never_fires, plan, prepare_patch, prepare_put};
use tenure_engine::{CallError, Fault, ids};

use crate::answer::Answerable;
use crate::by_itself;
use crate::call::{Caller, malformed};
use crate::decode::{Answered, FireReply, PageReply, PutScheduleReply, ScheduleReply, pushed_jobs};
use crate::encode::{
    FireArgs, ListSchedulesArgs, OneCall, PlanArgs, RunScheduleNowArgs, ScheduleArgs, pack,
};
use crate::function::{FIRE, Function, PLAN};
use crate::options::Time;

const PUT: Function = Function::of::<PutSchedule>();
const GET: Function = Function::of::<GetSchedule>();
const LIST: Function = Function::of::<ListSchedules>();
const RUN_NOW: Function = Function::of::<RunScheduleNow>();

/// So often a schedule is read again that others change meanwhile.
const READ_AGAIN_MAX: u32 = 10;
/// After a `fire` that was refused (full, frozen, moving) the next one comes after this.
const REFUSED: Duration = Duration::from_secs(1);
/// This many follow each other without a pause: they decide some thousand moments. What falls due within one second is
/// rarely more, and would otherwise start twice as late.
const WITHOUT_PAUSE: u32 = 16;

/// The engine's time, as far as this process knows it.
fn now(caller: &Caller) -> Moment {
    match caller.shared.time {
        Time::Server => {
            caller.space.timer.clock().map_or_else(|| caller.shared.wall(), Moment::from_us)
        }
        Time::Testing | Time::TestingByHand => caller.shared.moved(),
    }
}

impl Answerable for PutSchedule {
    async fn answer(mut self, caller: Caller) -> Result<Put<Box<ScheduleView>>, CallError> {
        let now = now(&caller);
        prepare_put(&mut self, now)?;
        by_itself::note(&caller).await;
        let put =
            put(&caller, &self.schedule, &self.settings, self.plan.as_deref(), None, now).await?;
        put.ok_or_else(|| changes_all_the_time().into())
    }
}

impl Answerable for PatchSchedule {
    /// The schedule is read, changed here, and put if it is still as it was read.
    async fn answer(self, caller: Caller) -> Result<Put<Box<ScheduleView>>, CallError> {
        by_itself::note(&caller).await;
        for _ in 0..READ_AGAIN_MAX {
            let now = now(&caller);
            let get = GetSchedule { schedule: self.schedule.clone() };
            let Answered { reply, blobs, .. } =
                caller.ask::<ScheduleReply>(GET, get.args()).await?;
            let there = reply.shown(&blobs, false).map_err(malformed(GET))?;
            let mut patch = self.clone();
            let settings = prepare_patch(&mut patch, &there.view.settings, now)?;
            let (first, revision) = (patch.plan.as_deref(), Some(there.revision));
            let put = put(&caller, &self.schedule, &settings, first, revision, now).await?;
            if let Some(put) = put {
                return Ok(put);
            }
        }
        Err(changes_all_the_time().into())
    }
}

fn changes_all_the_time() -> Fault {
    let why = "others change this schedule all the time: change it again in a moment";
    Fault::Unavailable(why.to_owned())
}

/// Puts a schedule; `None` if it has another revision by now.
async fn put(
    caller: &Caller,
    id: &ScheduleId,
    settings: &ScheduleSettings,
    first: Option<&FirstPlan>,
    revision: Option<u64>,
    now: Moment,
) -> Result<Option<Put<Box<ScheduleView>>>, CallError> {
    let args = ScheduleArgs::of(id.as_str(), settings, first, revision);
    let asked = caller.ask::<PutScheduleReply>(PUT, pack(&args)).await;
    let asked = asked
        .map_err(|no| CallError::from(no).refused(|no| never_fires(no, id, &settings.timing, now)));
    let Answered { reply, blobs, .. } = asked?;
    match reply.view.0 {
        _ if reply.again => Ok(None),
        Some(view) => {
            let shown = view.shown(&blobs, true).map_err(malformed(PUT))?;
            Ok(Some(Put { view: Box::new(shown.view), created: reply.created }))
        }
        None => Err(Fault::Broken("a put of a schedule shows none".to_owned()).into()),
    }
}

impl Answerable for ListSchedules {
    async fn answer(self, caller: Caller) -> Result<Listed<ScheduleView>, CallError> {
        let most = self.page.max.min(LIST_MAX);
        let (mut items, mut after) = (Vec::new(), self.page.cursor.clone());
        // A call ends when it has looked at enough; a page is as long as was asked for.
        loop {
            let args = ListSchedulesArgs::of(&self, most - items.len(), after.as_deref());
            let Answered { reply, blobs, .. } =
                caller.ask::<PageReply<ScheduleReply>>(LIST, pack(&args)).await?;
            for item in reply.items {
                let mut view = item.shown(&blobs, false).map_err(malformed(LIST))?.view;
                if !self.full {
                    view.settings.job.payload = None;
                }
                items.push(view);
            }
            after = reply.next.0;
            if after.is_none() || items.len() >= most {
                return Ok(Listed { items, next: after, partial: false });
            }
        }
    }
}

impl Answerable for RunScheduleNow {
    async fn answer(self, caller: Caller) -> Result<Box<PushedJob>, CallError> {
        let id = match self.id {
            Some(id) => id,
            None => ids::job_id(caller.shared.wall())?,
        };
        let default = Retry::default();
        let args = RunScheduleNowArgs::of(self.schedule.as_str(), &id, &default);
        let Answered { reply, blobs, .. } = caller.ask(RUN_NOW, pack(&args)).await?;
        let pushed = pushed_jobs(vec![reply], &blobs, true).map_err(malformed(RUN_NOW))?;
        let none = || Fault::Broken("a run-now shows no job".to_owned());
        pushed.into_iter().next().map(Box::new).ok_or_else(|| none().into())
    }
}

// ---- What a tick asks for ----

/// What a tick asks of the process that made it.
#[derive(Default)]
pub(crate) struct MomentsDue {
    /// Schedules that want a plan.
    pub wanted: Vec<PlanWanted>,
    /// Moments are to be decided.
    pub fires: bool,
}

impl MomentsDue {
    pub(crate) fn is_nothing(&self) -> bool {
        self.wanted.is_empty() && !self.fires
    }
}

/// Does what a tick asked for. When the first few `fire`s have left moments due, the next one comes no sooner than the last
/// one took, so that after an outage schedules take half of the store's time at most.
pub(crate) async fn do_asked(caller: &Caller, due: MomentsDue) -> Result<(), CallError> {
    send_plans(caller, due.wanted).await?;
    let mut fires = due.fires;
    for sent in 1_u32.. {
        if !fires {
            break;
        }
        let began = tokio::time::Instant::now();
        let default = Retry::default();
        let reply: FireReply = match caller.reply(FIRE, &FireArgs::of(&default)).await {
            Ok(reply) => reply,
            Err(why) => {
                if caller.shared.time == Time::Server {
                    tokio::time::sleep(REFUSED).await;
                }
                return Err(why);
            }
        };
        fires = reply.more;
        if fires && sent >= WITHOUT_PAUSE && caller.shared.time == Time::Server {
            tokio::time::sleep(began.elapsed()).await;
        }
    }
    Ok(())
}

/// Computes plans and sends them, so many moments a call.
async fn send_plans(caller: &Caller, wanted: Vec<PlanWanted>) -> Result<(), CallError> {
    let now = now(caller);
    let (mut plans, mut moments): (Vec<Plan>, usize) = (Vec::new(), 0);
    for one in wanted {
        let plan = plan(one, now);
        if moments + plan.moments.len() > PLAN_MOMENTS_MAX && !plans.is_empty() {
            let _: bool = caller.reply(PLAN, &PlanArgs::of(&plans)).await?;
            (plans, moments) = (Vec::new(), 0);
        }
        moments += plan.moments.len();
        plans.push(plan);
    }
    if !plans.is_empty() {
        let _: bool = caller.reply(PLAN, &PlanArgs::of(&plans)).await?;
    }
    Ok(())
}
