//! A worker over HTTP whose handlers block every thread of their runtime: its heartbeats must not use connections that
//! the same runtime drives.

use std::time::Duration;

use crate::wire::Server;
use serde_json::json;
use tenure::{Client, Job};
use tenure_testkit::KEPT_TTL;

#[test]
fn a_handler_blocking_all_threads_for_two_ttls_keeps_its_lease() {
    let server = Server::start();
    server.post(
        "/v1/jobs",
        &json!([{"id": "a", "queue": "q"}, {"id": "b", "queue": "q"}]).to_string(),
    );
    let url = format!("http://{}", server.at);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect(&url).await.unwrap();
        let worker = client.worker(["q"]).ttl(KEPT_TTL).concurrency(2);
        let working = worker.until_empty().run(|_: Job| async {
            // No await: nothing else runs on this thread.
            std::thread::sleep(2 * KEPT_TTL.std() + Duration::from_millis(500));
        });
        // A lost job would have been granted once more.
        assert_eq!(tokio::spawn(working).await.unwrap().unwrap().jobs, 2);
    });
    for id in ["a", "b"] {
        let job = server.get(&format!("/v1/jobs/{id}")).good();
        let ended = json!([job["state"], job["attempt"], job["lost"]]);
        assert_eq!(ended, json!(["succeeded", 1, 0]), "{job}");
    }
}
