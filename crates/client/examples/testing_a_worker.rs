//! A test of your own code: the job that it pushes, and its handler a day later. No server, and no sleep.
//!
//! `cargo test -p tenure --example testing_a_worker`; `cargo run -p tenure --example testing_a_worker` runs it, too.

use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::testing::Sandbox;
use tenure::{Client, Handlers, Task, TaskError};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The code under test: a new user is reminded a day later.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Remind {
    user: u64,
}

impl Task for Remind {
    const KIND: &'static str = "remind";
    const QUEUE: &'static str = "reminders";
}

async fn sign_up(client: &Client, user: u64) -> Result<(), Box<dyn Error>> {
    client.push_task(&Remind { user })?.delay(DAY).await?;
    Ok(())
}

async fn remind(task: Remind) -> Result<String, TaskError> {
    if task.user == 0 {
        return Err(TaskError::for_good("there is no user 0"));
    }
    Ok(format!("user {} is reminded", task.user))
}

/// The test: the clock of the store moves only when the test says so.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let sandbox = Sandbox::new()?;
    let handlers = Handlers::new().on(remind);
    sign_up(&sandbox.client(), 7).await?;
    sign_up(&sandbox.client(), 0).await?;
    assert_eq!(sandbox.tasks::<Remind>().await?, [Remind { user: 7 }, Remind { user: 0 }]);
    assert_eq!(sandbox.run_until_idle(&handlers).await?.jobs, 0);

    sandbox.advance(DAY).await?;
    assert_eq!(sandbox.run_until_idle(&handlers).await?.jobs, 2);
    let jobs = sandbox.pushed("reminders").await?;
    assert_eq!(jobs[0].state.as_str(), "succeeded");
    assert_eq!(jobs[1].error.as_deref(), Some("there is no user 0"));
    Ok(())
}

#[cfg(test)]
#[tokio::test(flavor = "multi_thread")]
async fn a_new_user_is_reminded_after_a_day() -> Result<(), Box<dyn Error>> {
    run().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}
