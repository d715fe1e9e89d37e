//! Pushes jobs: a single one, one with a unique key, and a thousand in one call.
//!
//! `cargo run -p tenure --example producer`; with `TENURE_URL=http://127.0.0.1:7171` the jobs stay for a worker.

use std::error::Error;
use std::time::Duration;

use tenure::{Client, Need, Retry, Unique};

pub(crate) async fn run(client: &Client) -> Result<(), Box<dyn Error>> {
    let second = Duration::from_secs(1);
    // For every future site: two pages at once, ten a second.
    client.limit("site:*").concurrency(2).rate(10, second).set().await?;

    let page = client
        .push("crawl")
        .kind("page")
        .payload(&"https://example.com/")?
        .need(Need::limit("site:example.com"))
        .retry(Retry::new().attempts(5).exponential(second, 60 * second))
        .await?;
    println!("pushed {}", page.id);

    // This meeting has one reminder, and a push moves it.
    let reminder = Unique::key("meeting-42").until_start().replace();
    client.push("reminders").unique(reminder).payload(&42)?.delay(600 * second).await?;

    let numbers: Result<Vec<_>, _> =
        (0..1_000).map(|n| client.push("numbers").payload(&n)).collect();
    let pushed = client.push_all(numbers?).await?;
    println!("pushed {} more", pushed.len());
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
