//! Fetches pages side by side, and writes a report of all their results after the last one.
//!
//! `cargo run -p tenure --example flow`

use std::error::Error;

use serde::{Deserialize, Serialize};
use tenure::ParentView;
use tenure::{Client, Handlers, Job, Task, TaskError};

#[derive(Serialize, Deserialize)]
struct Fetch {
    url: String,
}

impl Task for Fetch {
    const KIND: &'static str = "fetch";
    const QUEUE: &'static str = "pages";
}

#[derive(Serialize, Deserialize)]
struct Report {}

impl Task for Report {
    const KIND: &'static str = "report";
    const QUEUE: &'static str = "pages";
}

async fn fetch(page: Fetch) -> Result<usize, TaskError> {
    Ok(page.url.len())
}

async fn report(_: Report, job: Job) -> Result<u64, TaskError> {
    let mut bytes: u64 = 0;
    for parent in job.parents().await? {
        if let ParentView::Job(page) = parent {
            bytes += page.result.map_or(Ok(0), |result| result.read())?;
        }
    }
    Ok(bytes)
}

pub(crate) async fn run(client: &Client) -> Result<(), Box<dyn Error>> {
    // A name for each run: `import-2026-12-01`, or a generated id.
    let import = client.flow(&format!("import-{}", std::process::id()));
    let page = |url: &str| client.push("pages").task(&Fetch { url: url.to_owned() });
    let pushed = import
        .push_all([
            page("https://example.com/")?.reference("one"),
            page("https://example.org/news")?.reference("two"),
            client.push_task(&Report {})?.after_ref("one").after_ref("two"),
        ])
        .await?;

    let handlers = Handlers::new().on(fetch).on(report);
    let queues = handlers.queues()?;
    client.worker(queues).concurrency(2).until_empty().run_tasks(handlers).await?;

    let end = import.wait().await?;
    let bytes: u64 = client.job(&pushed[2].id).value().await?;
    println!("{}: {} succeeded, {bytes} bytes", end.flow, end.counts.succeeded);
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
