//! Sets a schedule, keeps a set of them in step with a table, and makes a job by hand.
//!
//! `cargo run -p tenure --example schedule`

use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Client, Overlap, Task};

#[derive(Serialize, Deserialize)]
struct Report {
    of: String,
}

impl Task for Report {
    const KIND: &'static str = "report";
    const QUEUE: &'static str = "mail";
}

pub(crate) async fn run(client: &Client) -> Result<(), Box<dyn Error>> {
    // The same call at every start of the program changes nothing.
    let view = client
        .schedule("sales-report")
        .cron("0 9 * * 1-5")
        .zone("Europe/Berlin")
        .push_task(&Report { of: "sales".to_owned() })?
        .timeout(Duration::from_secs(300))
        .set()
        .await?;
    for moment in view.next.unwrap_or_default() {
        println!("fires at {moment}");
    }

    // Each source of the table is visited, at a phase of its own; a source that leaves the table is no longer visited.
    let quarter = Duration::from_secs(15 * 60);
    let mut sources = Vec::new();
    for (id, feed) in [(1, "https://example.com/feed"), (2, "https://example.org/feed")] {
        let source = client.schedule(&format!("source-{id}")).every(quarter);
        sources.push(source.overlap(Overlap::Skip).push("sources").payload(&feed)?);
    }
    let synced = client.schedules_of("sources").sync(sources).await?;
    println!("{} sources added, {} unchanged", synced.added, synced.unchanged);

    let made = client.schedule("sales-report").run_now().await?;
    println!("made {} by hand", made.job.id);
    client.schedule("sales-report").pause_for(Duration::from_secs(3_600)).await?;
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
