//! Handlers that block every thread of their runtime keep their leases all the same.
#![cfg(feature = "embedded")]

use std::time::Duration;

use tenure::core::job::JobState;
use tenure::{Client, Job, JobRef};
use tenure_testkit::KEPT_TTL;

/// Two jobs whose handlers block both threads of their runtime: each runs once, and never has to stop.
#[test]
fn a_handler_blocking_all_threads_for_two_ttls_keeps_its_lease() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (worked, jobs) = runtime.block_on(async {
        let client = Client::connect("memory:").await.unwrap();
        let ids = ["a", "b"];
        for id in ids {
            client.push("q").id(id).await.unwrap();
        }
        let worker = client.worker(["q"]).ttl(KEPT_TTL).concurrency(2);
        let working = worker.until_empty().run(|job: Job| async move {
            // No await: nothing else runs on this thread.
            std::thread::sleep(2 * KEPT_TTL.std() + Duration::from_millis(500));
            assert_eq!(job.stop(), None);
        });
        let worked = tokio::spawn(working).await.unwrap().unwrap();
        let mut jobs = Vec::new();
        for id in ids {
            jobs.push(client.get_job(JobRef::parse(id).unwrap()).await.unwrap());
        }
        client.close().await;
        (worked, jobs)
    });
    // A job whose lease was lost would have been granted once more.
    assert_eq!(worked.jobs, 2);
    for job in jobs {
        assert_eq!((job.state, job.attempt, job.lost), (JobState::Succeeded, 1, 0), "{job:?}");
    }
}
