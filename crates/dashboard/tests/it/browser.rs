//! The pictures of the guide, drawn by a real browser.
//!
//! `TENURE_WRITE_SCREENSHOTS=1 cargo test -p tenure-dashboard --test it pictures` writes them again; look at them.

use std::path::{Path, PathBuf};

use tenure_testkit::TempDir;

use crate::chromium::{Browser, wanted};
use crate::scene::filled;
use crate::served::Served;
use crate::shows::WorseHour;

/// The pictures of the guide: a name, a path, a size, whether in the dark.
fn pictures(job: &str) -> Vec<(&'static str, String, (u32, u32), bool)> {
    let wide = |height| (1280, height);
    vec![
        ("overview", "/".to_owned(), wide(900), false),
        ("jobs", "/jobs?q=queue:crawl".to_owned(), wide(760), true),
        ("job", format!("/jobs/{job}"), wide(900), false),
        ("job-phone", format!("/jobs/{job}"), (375, 1000), true),
        ("limit", "/limits/site:example.com".to_owned(), wide(760), false),
        ("pool", "/pools/accounts".to_owned(), wide(760), true),
    ]
}

#[test]
fn a_browser_draws_the_pictures_of_the_guide() {
    if !wanted() {
        return;
    }
    let served = Served::with_history(WorseHour);
    let job = filled(&served).waits;
    let mut browser = Browser::start();
    let tab = browser.tab();
    let scratch = TempDir::new();
    let into = match std::env::var_os("TENURE_WRITE_SCREENSHOTS") {
        Some(_) => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/dashboard"),
        None => PathBuf::from(scratch.path()),
    };
    std::fs::create_dir_all(&into).unwrap();
    for (name, path, size, is_dark) in pictures(&job) {
        browser.look(&tab, size, is_dark);
        browser.open(&tab, &format!("http://{}{path}", served.at));
        browser.picture(&tab, &into.join(format!("{name}.png")));
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
