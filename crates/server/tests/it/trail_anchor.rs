//! The last line of the trail in the totals, for a place where nobody changes it.

use serde_json::json;
use tenure_server::verify_trail;
use tenure_testkit::TempDir;

use crate::scopes::{ROOT, call, listed, token};
use crate::trail::{as_root, server};
use crate::wire::Server;

#[test]
fn stats_have_the_last_line_for_those_who_may_read_the_trail() {
    let folder = TempDir::new();
    let both = listed("both", |of| of.scopes = vec!["view".to_owned(), "admin".to_owned()]);
    let server = server(&folder, vec![listed("read", |_| {}), both]);
    as_root(&server, "PUT", "/v1/limits/l", &json!({"concurrency": 1})).good();
    let stats = |token: &str| call(&server, token, "GET", "/v1/stats", "").good();
    let end = stats(ROOT)["trail"].clone();
    assert_eq!((&end["seq"], &end["server"]), (&json!(1), &json!("127.0.0.1:7171")));
    assert_eq!(stats(&token("both"))["trail"], end, "to look changes nothing");
    assert_eq!(stats(&token("read")).get("trail"), None);
    // It is an anchor, also when other lines stand behind it.
    as_root(&server, "PUT", "/v1/limits/l", &json!({"concurrency": 2})).good();
    let anchor = end["hash"].as_str();
    let verified = verify_trail(&folder.join("trail"), anchor).unwrap().unwrap();
    assert_eq!((verified.has_anchor, verified.last_seq), (Some(true), Some(2)));
    let end = stats(ROOT)["trail"].clone();
    assert_eq!(verified.last_hash.as_deref(), end["hash"].as_str());
    assert_eq!(Server::start().get("/v1/stats").good().get("trail"), None);
}
