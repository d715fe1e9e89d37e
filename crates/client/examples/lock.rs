//! Holds a lock, and stops if it is lost.
//!
//! `cargo run -p tenure --example lock`

use std::error::Error;
use std::time::Duration;

use tenure::{Client, LockError};

pub(crate) async fn run(client: &Client) -> Result<(), Box<dyn Error>> {
    let lock = client.lock("deploy")?.ttl(Duration::from_secs(10));
    let guard = lock.acquire_within(Duration::from_secs(30)).await?;

    // Nobody else gets the lock meanwhile.
    if let Err(LockError::Busy(why)) = client.lock("deploy")?.try_acquire().await {
        println!("busy: {}", why.reasons.first().map_or("", |reason| &reason.detail));
    }

    tokio::select! {
        // The lock extends itself. If that fails for too long, another holder may soon have it.
        stop = guard.stopped() => return Err(format!("stopped: {stop:?}").into()),
        () = deploy(guard.fence().get()) => {}
    }
    guard.release().await?;
    Ok(())
}

async fn deploy(fence: u64) {
    // The fence grows with every holder: the store behind it can refuse an older one.
    println!("deploying with fence {fence}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("TENURE_URL").unwrap_or_else(|_| "memory:".to_owned());
    let client = Client::connect(&url).await?;
    run(&client).await?;
    client.close().await;
    Ok(())
}
