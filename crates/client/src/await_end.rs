//! Waits until a job or a flow has ended, for as long as the caller likes.
//!
//! A wait is asked for in slices, each of them one call. From the first answer on, the job is asked for by its id, so
//! that a key which another job takes meanwhile changes nothing.

use std::time::Duration;

use tenure_core::flow::{FlowState, FlowView};
use tenure_core::job::ResultView;
use tenure_core::names::{FlowName, JobRef};
use tenure_core::time::Span;
use tenure_engine_api::CallError;
use tokio::time::{Instant, sleep};

use crate::asking::{AWAY_MAX, Answered, Asking};
use crate::client::Client;

/// The longest wait that one call asks for.
const SLICE: Duration = Duration::from_secs(30);

/// A job or a flow: it can be viewed at any time, and ends at some time.
pub(crate) trait Ends: Send {
    /// The view of it that an engine answers.
    type View: Send;
    /// Returns its view when it has ended, or when `wait` is over.
    fn show(
        &self,
        client: &Client,
        wait: Span,
    ) -> impl Future<Output = Result<Self::View, CallError>> + Send;
    /// Whether it has ended. If it has not, the next calls ask for the thing in this view.
    fn has_ended(&mut self, view: &Self::View) -> bool;
}

impl Ends for JobRef {
    type View = ResultView;
    fn show(
        &self,
        client: &Client,
        wait: Span,
    ) -> impl Future<Output = Result<ResultView, CallError>> + Send {
        client.get_result(self.clone(), wait)
    }
    fn has_ended(&mut self, view: &ResultView) -> bool {
        *self = JobRef::Id(view.id.clone());
        view.state.is_finished()
    }
}

impl Ends for FlowName {
    type View = FlowView;
    fn show(
        &self,
        client: &Client,
        wait: Span,
    ) -> impl Future<Output = Result<FlowView, CallError>> + Send {
        client.get_flow(self.clone(), wait)
    }
    fn has_ended(&mut self, view: &FlowView) -> bool {
        view.state == FlowState::Finished
    }
}

/// Returns its view when it has ended, or when `longest` is over (`None`: no end).
pub(crate) async fn wait_for<E: Ends>(
    client: &Client,
    mut what: E,
    longest: Option<Duration>,
) -> Result<E::View, CallError> {
    // What fails is repeated here, so that no repeat outlasts `longest`; a caller that does not wait makes one call.
    let once = client.once();
    let client = if longest == Some(Duration::ZERO) { client } else { &once };
    let begun = Instant::now();
    let left = || longest.map(|longest| longest.saturating_sub(begun.elapsed()));
    // A server that restarts may not be there yet; a caller that does not wait gets the fault at once.
    let mut asking =
        if longest == Some(Duration::ZERO) { Asking::new() } else { Asking::patient() };
    loop {
        // A wait of zero notices at once that the engine is back; a longer one only when it ends.
        let slice = if asking.away_since().is_some() { Duration::ZERO } else { SLICE };
        let wait = left().map_or(slice, |left| slice.min(left));
        let wait = Span::from_us(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX));
        let sent = Instant::now();
        let pause = match what.show(client, wait).await {
            Ok(view) => {
                if what.has_ended(&view) || left() == Some(Duration::ZERO) {
                    return Ok(view);
                }
                // An engine that drains answers at once with what is there.
                let Answered { pause, .. } = asking.answered(false, wait, sent.elapsed());
                pause
            }
            Err(error) => {
                let Some(pause) = asking.failed(&error, sent, wait) else { return Err(error) };
                let over = match left() {
                    Some(left) => left.is_zero(),
                    None => asking.away() > AWAY_MAX,
                };
                if over {
                    return Err(error);
                }
                pause
            }
        };
        sleep(left().map_or(pause, |left| pause.min(left))).await;
    }
}

impl Client {
    /// Waits until a job is finished, or for at most `longest`, and returns how it ended: look at its `state` first,
    /// since a job that is not finished in time is shown as it is. `None` waits without an end. A key means the job
    /// that holds it now.
    ///
    /// Temporary failures are waited through: a server that restarts or drains, a store that is away for less than a
    /// minute. Dropping the future ends the wait, and changes nothing about the job.
    ///
    /// # Errors
    /// As [`Client::get_result`]; and if the engine never answered, or does not answer when the time is over.
    pub async fn wait_for_result(
        &self,
        job: JobRef,
        longest: Option<Duration>,
    ) -> Result<ResultView, CallError> {
        wait_for(self, job, longest).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use tenure_core::flow::FlowCounts;
    use tenure_core::job::JobState;
    use tenure_core::names::{JobId, UniqueKey};
    use tenure_core::requests::{GetResult, Reply, Request};
    use tenure_core::sentences::{AccessRefusal, StoreRefusal};
    use tenure_core::time::Moment;
    use tenure_testkit::fake::{Fake, Says, unavailable, unknown};

    fn view(state: JobState) -> Reply {
        let id = JobId::parse("j1").unwrap();
        let (result, error, finished_at, progress) = (None, None, None, None);
        let (attempt, progress_id) = (1, None);
        let view =
            ResultView { id, state, result, error, finished_at, attempt, progress, progress_id };
        Reply::GetResult(Box::new(view))
    }
    /// Answers with the running job when the requested wait is over.
    fn running(call: &Request) -> Says {
        Says::After(wait(call).std(), Ok(view(JobState::Running)))
    }
    fn wait(call: &Request) -> Span {
        match call {
            Request::GetResult(GetResult { wait, .. }) => *wait,
            other => panic!("only results are asked for: {other:?}"),
        }
    }
    fn done() -> Says {
        Says::Now(Ok(view(JobState::Succeeded)))
    }
    fn job() -> JobRef {
        JobRef::Id(JobId::parse("j1").unwrap())
    }
    async fn asked(fake: &Arc<Fake>, job: JobRef, s: Option<u64>) -> Result<JobState, CallError> {
        let client = Client::on_this_runtime(fake.clone());
        let longest = s.map(Duration::from_secs);
        client.wait_for_result(job, longest).await.map(|view| view.state)
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_asked_for_in_slices_until_the_job_is_finished() {
        let fake = Fake::new(|call, before| if before < 3 { running(call) } else { done() });
        let begun = Instant::now();
        assert_eq!(asked(&fake, job(), None).await, Ok(JobState::Succeeded));
        assert_eq!(begun.elapsed(), 3 * SLICE);
        assert_eq!(fake.calls().len(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_over_answers_the_job_as_it_is() {
        for (longest, calls) in [(0, 1), (30, 1), (31, 2), (70, 3)] {
            let fake = Fake::new(|call, _| running(call));
            let begun = Instant::now();
            assert_eq!(asked(&fake, job(), Some(longest)).await, Ok(JobState::Running));
            assert_eq!((begun.elapsed().as_secs(), fake.calls().len()), (longest, calls));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_asked_for_once_and_then_the_job_that_held_it() {
        let key = JobRef::Key(UniqueKey::parse("k").unwrap());
        let fake = Fake::new(|call, before| if before == 0 { running(call) } else { done() });
        assert_eq!(asked(&fake, key.clone(), None).await, Ok(JobState::Succeeded));
        let asked: Vec<JobRef> = fake
            .calls()
            .into_iter()
            .map(|(_, call)| match call {
                Request::GetResult(get) => get.job,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(asked, [key, job()]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_passes_is_asked_again_and_what_is_refused_is_not() {
        let draining = || Says::Now(Err(CallError::Refused(StoreRefusal::Draining.into())));
        let fake = Fake::new(move |call, before| match before {
            0 => running(call),
            1 => unavailable(),
            2 => unknown(),
            3 => draining(),
            _ => done(),
        });
        assert_eq!(asked(&fake, job(), None).await, Ok(JobState::Succeeded));
        // An engine that is away is waited for, for a minute or the requested time, whether it was there before or not.
        for (longest, met, at_least, at_most) in [
            (None, true, 90, 95),
            (Some(40), true, 40, 40),
            (None, false, 60, 65),
            (Some(40), false, 40, 40),
            (Some(0), false, 0, 0),
        ] {
            let fake = Fake::new(move |call, before| match before {
                0 if met => running(call),
                _ => unavailable(),
            });
            let begun = Instant::now();
            assert!(asked(&fake, job(), longest).await.is_err());
            let took = begun.elapsed().as_secs();
            assert!((at_least..=at_most).contains(&took), "{took}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_must_wait_is_waited_for_within_the_wait() {
        // A caller that does not wait makes one call, which has a minute.
        for (longest, refusals, took, is_done) in [
            (None, 20, 140, true),
            (Some(30), 3, 21, true),
            (Some(30), 20, 30, false),
            (Some(0), 3, 21, true),
        ] {
            let fake = Fake::new(move |_, before| {
                if before >= refusals {
                    return done();
                }
                let (caller, calls) = ("crawler".to_owned(), "2/1s".to_owned());
                let no = AccessRefusal::TooManyCalls { caller, calls, wait_s: 7 };
                Says::Now(Err(CallError::Refused(no.into())))
            });
            let begun = Instant::now();
            let ended = asked(&fake, job(), longest).await;
            assert_eq!((begun.elapsed().as_secs(), ended.is_ok()), (took, is_done), "{ended:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flow_is_waited_for_until_none_of_its_jobs_is_unfinished() {
        let shown = |state| {
            let flow = FlowName::parse("f").unwrap();
            let (counts, created_at) = (FlowCounts::default(), Moment::from_us(0));
            let view =
                FlowView { flow, state, cancelling: false, counts, created_at, finished_at: None };
            Ok(Reply::GetFlow(Box::new(view)))
        };
        let fake = Fake::new(move |call, before| match call {
            Request::GetFlow(get) if before < 2 => {
                Says::After(get.wait.std(), shown(FlowState::Open))
            }
            Request::GetFlow(_) => Says::Now(shown(FlowState::Finished)),
            other => panic!("only flows are asked for: {other:?}"),
        });
        let client = Client::on_this_runtime(fake.clone());
        let (flow, begun) = (|| FlowName::parse("f").unwrap(), Instant::now());
        let soon = client.wait_for_flow(flow(), Some(Duration::from_secs(20))).await.unwrap();
        assert_eq!((soon.state, begun.elapsed().as_secs()), (FlowState::Open, 20));
        let ended = client.wait_for_flow(flow(), None).await.unwrap();
        assert_eq!(
            (ended.state, begun.elapsed()),
            (FlowState::Finished, SLICE + Duration::from_secs(20))
        );
        assert_eq!(fake.calls().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_answers_at_once_is_not_called_in_a_tight_loop() {
        let fake = Fake::new(|_, _| Says::Now(Ok(view(JobState::Running))));
        assert_eq!(asked(&fake, job(), Some(60)).await, Ok(JobState::Running));
        assert!(fake.calls().len() < 60, "{}", fake.calls().len());
    }
}
