//! Handles two types of jobs with shared state, until no more jobs are left.
//!
//! `cargo run -p tenure --example typed_worker`

use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::tasks::State;
use tenure::{Client, Handlers, Job, Task, TaskError};

#[derive(Serialize, Deserialize)]
struct Welcome {
    to: String,
}

impl Task for Welcome {
    const KIND: &'static str = "mail.welcome";
    const QUEUE: &'static str = "mail";
}

#[derive(Serialize, Deserialize)]
struct Sum {
    of: Vec<u64>,
}

impl Task for Sum {
    const KIND: &'static str = "sum";
}

#[derive(Clone)]
struct Mailer {
    from: String,
}

/// `?` on any error is a failed attempt: the job is retried by its `retry` settings.
async fn welcome(mail: Welcome, job: Job, mailer: State<Mailer>) -> Result<(), TaskError> {
    let State(Mailer { from }) = mailer;
    if mail.to.is_empty() {
        return Err(TaskError::for_good("there is nobody to write to"));
    }
    if mail.to.ends_with(".invalid") {
        // Not yet: this costs no attempt.
        return Err(TaskError::snooze(Duration::from_secs(600)));
    }
    println!("from {from} to {}, attempt {}, fence {}", mail.to, job.attempt(), job.fence());
    Ok(())
}

/// It computes, so it gets a thread of its own. Its return value is the result of the job.
fn sum(numbers: Sum) -> Result<u64, TaskError> {
    Ok(numbers.of.iter().sum())
}

pub(crate) async fn run(client: &Client) -> Result<(), Box<dyn Error>> {
    client.push_task(&Welcome { to: "ann@example.com".to_owned() })?.await?;
    let sum_of = client.push_task(&Sum { of: vec![1, 2, 3] })?.await?;

    let mailer = Mailer { from: "team@example.com".to_owned() };
    let handlers = Handlers::with_state(mailer).on(welcome).on_blocking(sum);
    let worker = client.worker(handlers.queues()?).concurrency(4);
    // A service waits for a signal and calls `worker.stopper().drain()`; this one ends by itself.
    let worked = worker.until_empty().run_tasks(handlers).await?;

    let total: u64 = client.job(&sum_of.id).value().await?;
    println!("{} jobs; the sum is {total}", worked.jobs);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("TENURE_URL").unwrap_or_else(|_| "memory:".to_owned());
    let client = Client::connect(&url).await?;
    run(&client).await?;
    client.close().await;
    Ok(())
}
