//! Keeps a pool of accounts in step with a table, and works with a free one.
//!
//! `cargo run -p tenure --example pool`

use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::Verdict;
use tenure::{Client, Later, Need, PoolItem, SettleOutcome};

#[derive(Serialize, Deserialize)]
struct Login {
    password: String,
}

pub(crate) async fn run(client: &Client) -> Result<(), Box<dyn Error>> {
    // An account whose holder died rests for a minute: its service may still have it logged in.
    client.pool("accounts").quarantine(Duration::from_secs(60)).set().await?;
    let mut accounts = Vec::new();
    for (name, country) in [("ann", "cn"), ("bob", "de")] {
        let login = Login { password: format!("secret of {name}") };
        accounts.push(PoolItem::new(name).tag(country).data(&login)?);
    }
    let synced = client.pool("accounts").sync(accounts).await?;
    println!("{} added, {} unchanged", synced.added, synced.unchanged);

    let wanted = [Need::pool("accounts").tag("cn"), Need::limit("lock:report")];
    let guard = client.acquire(wanted).within(Duration::from_secs(30)).await?;
    let account = guard.lease().resources[0].clone();
    let login: Login = account.data.read()?;
    println!("{} has a password of {} letters", account.id, login.password.len());

    // It asked for a captcha: nobody gets it for an hour.
    let rest = Verdict::Cool(Later::For(Duration::from_secs(3_600).into()));
    guard.settle(SettleOutcome::released().resource(account.pool, account.id, rest)).await?;
    println!("{} available", client.pool("accounts").view().await?.available);
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
