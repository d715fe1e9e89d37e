//! The last changes on the page of a limit, a pool, a queue and a schedule, for those who may see the trail.

use tenure_core::decode::{Decode, put_schedule};
use tenure_core::requests::{PutLimit, PutPool};

use crate::scopes::{get, listed, post, served, session, token};

/// The panel of the last changes in a page.
fn panel(page: &str) -> Option<&str> {
    page.split("<section").find(|section| section.contains("Last changes"))
}

#[test]
fn pages_show_who_changed_their_thing_to_administrators_alone() {
    let served = served(vec![
        listed("ann", &["view", "admin", "operate"], &["*"]),
        listed("bob", &["view", "admin", "operate"], &["*"]),
        listed("op", &["view", "operate"], &["*"]),
        listed("web", &["view", "admin"], &["web"]),
    ]);
    let [ann, bob, op, web] =
        ["ann", "bob", "op", "web"].map(|name| session(&served, &token(name)));
    served.ask(PutPool::of(&["accounts"], b"{}").unwrap());
    let schedule = br#"{"every":"1h","job":{"queue":"mail"}}"#;
    served.ask(put_schedule("news", schedule).unwrap());
    for (who, path, form) in [
        (&ann, "/limits/site/set", "concurrency=3"),
        (&bob, "/limits/site/set", "concurrency=8"),
        (&ann, "/limits/other/set", "concurrency=1"),
        (&ann, "/queues/mail/set", "max_waiting=100"),
        (&op, "/queues/mail/pause", ""),
        (&bob, "/pools/accounts/add", "id=acc-7&data=1"),
        (&op, "/pools/accounts/resources/acc-7/ban", ""),
        (&op, "/schedules/news/pause", ""),
    ] {
        assert_eq!(post(&served, who, path, form).status, 303, "{path}");
    }
    // A refused call changes nothing.
    assert_eq!(post(&served, &op, "/limits/site/set", "concurrency=9").status, 403);
    let shown = |path: &str| {
        let page = get(&served, &ann, path).page();
        panel(&page).unwrap_or_else(|| panic!("{path} has no panel: {page}")).to_owned()
    };
    let of_limit = shown("/limits/site");
    assert!(of_limit.contains("concurrency: 3 → 8"), "{of_limit}");
    let (new, old) = (of_limit.find(">bob<").unwrap(), of_limit.find(">ann<").unwrap());
    assert!(new < old, "the newest is first: {of_limit}");
    assert!(!of_limit.contains("other") && !of_limit.contains(">op<"), "{of_limit}");
    assert!(of_limit.contains("href=\"/trail?target=limit:site&amp;namespace=default\""));
    for (path, parts) in [
        ("/queues/mail", [">op<", "pause_queue", ">ann<", "max_waiting: 100"]),
        ("/pools/accounts", [">op<", "ban_resource", "pool:accounts/acc-7", ">bob<"]),
        ("/schedules/news", [">op<", "pause_schedule", "Last changes", "Who did what"]),
    ] {
        let shown = shown(path);
        for part in parts {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
    // The link leads to the lines of this target alone.
    let lines = get(&served, &ann, "/trail?target=limit:site&namespace=default").page();
    assert!(lines.contains("concurrency: 3 → 8") && !lines.contains("pause_queue"), "{lines}");
    for path in ["/limits/site", "/queues/mail", "/pools/accounts", "/schedules/news"] {
        assert!(panel(&get(&served, &op, path).page()).is_none(), "{path}");
    }
    // A limit of the same name in another namespace is another thing.
    assert_eq!(post(&served, &ann, "/limits/site/set?ns=web", "concurrency=5").status, 303);
    let page = get(&served, &web, "/limits/site?ns=web").page();
    let own = panel(&page).unwrap();
    assert!(own.contains("concurrency: 5") && !own.contains(">bob<"), "{own}");
}

#[test]
fn events_and_the_history_of_a_job_name_the_caller_of_a_change() {
    let served = served(vec![listed("ann", &["view", "admin", "operate"], &["*"])]);
    let ann = session(&served, &token("ann"));
    let job = served.push(r#"{"queue":"mail"}"#);
    assert_eq!(post(&served, &ann, "/limits/site/set", "concurrency=3").status, 303);
    assert_eq!(post(&served, &ann, &format!("/jobs/{job}/cancel"), "").status, 303);
    let page = get(&served, &ann, "/events").page();
    assert_eq!(page.matches("by ann").count(), 2, "the push has none: {page}");
    let page = get(&served, &ann, &format!("/jobs/{job}")).page();
    let story = page.split("Event history").nth(1).unwrap();
    assert!(story.contains("Cancelled<span class=\"soft\"> by ann</span>"), "{story}");
    assert_eq!(story.matches("by ann").count(), 1, "{story}");
}

#[test]
fn a_page_shows_the_last_five_changes() {
    let served = served(vec![listed("ann", &["view", "admin"], &["*"])]);
    let ann = session(&served, &token("ann"));
    for n in 1..=7 {
        let form = format!("concurrency={n}");
        assert_eq!(post(&served, &ann, "/limits/site/set", &form).status, 303);
    }
    let page = get(&served, &ann, "/limits/site").page();
    let shown = panel(&page).unwrap();
    assert_eq!(shown.matches(">patch_limit<").count(), 5, "{shown}");
    assert!(shown.contains("concurrency: 6 → 7") && !shown.contains("concurrency: 1 → 2"));
    served.ask(PutLimit::of(&["quiet"], br#"{"concurrency":1}"#).unwrap());
    let page = get(&served, &ann, "/limits/quiet").page();
    assert!(panel(&page).unwrap().contains("last 1,000 changes"), "{page}");
}
