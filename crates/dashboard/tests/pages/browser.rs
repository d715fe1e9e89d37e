//! The pages in a real browser: its scripts run, it breaks no rule of its own policy, and it draws the pictures of the guide.
//!
//! `TENURE_WRITE_SCREENSHOTS=1 cargo test -p tenure-dashboard --test pages browser` writes them anew; look at them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::json;
use tenure_core::decode;
use tenure_testkit::TempDir;

use crate::served::Served;
use crate::shows::WorseHour;

/// Names under which systems have it.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Whether this run is to have a browser: not if `TENURE_WITHOUT` names it, which is then said past the harness.
fn wanted() -> bool {
    let without = std::env::var("TENURE_WITHOUT").unwrap_or_default();
    let is_left_out = without.split(',').any(|name| name.trim() == "browser");
    if is_left_out {
        let _ = writeln!(std::io::stderr(), "left out: tests that need a browser");
    }
    !is_left_out
}

/// A browser that is asked for one page, without a screen and without the network of others.
struct Browser {
    program: &'static str,
    profile: TempDir,
}

impl Browser {
    fn here() -> Self {
        let runs = |name: &&str| {
            let asked = Command::new(name).arg("--version").stderr(Stdio::null()).output();
            asked.is_ok_and(|output| output.status.success())
        };
        let found = PROGRAMS.into_iter().find(|name| runs(name));
        let program =
            found.expect("there is no Chromium: install it, or set TENURE_WITHOUT=browser");
        Browser { program, profile: TempDir::new() }
    }

    fn run(&self, url: &str, options: &[String]) -> Output {
        let output = Command::new(self.program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--disable-background-networking", "--hide-scrollbars", "--no-first-run"])
            .args(["--enable-logging=stderr", "--timeout=3000", "--lang=en"])
            .arg(format!("--user-data-dir={}", self.profile.path().display()))
            .args(options)
            .arg(url)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        let complaints: Vec<&str> = told.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(complaints.is_empty(), "{url}: {complaints:?}");
        output
    }

    /// The page as it is once its scripts ran.
    fn dom(&self, url: &str) -> String {
        String::from_utf8(self.run(url, &["--dump-dom".to_owned()]).stdout).unwrap()
    }

    /// The page as a picture.
    fn picture(&self, url: &str, (width, height): (u32, u32), is_dark: bool, file: &Path) {
        let scheme = if is_dark { 0 } else { 1 };
        let options = [
            format!("--screenshot={}", file.display()),
            format!("--window-size={width},{height}"),
            format!("--blink-settings=preferredColorScheme={scheme}"),
        ];
        self.run(url, &options);
        let bytes = std::fs::read(file).unwrap();
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 8_000, "{url} is drawn");
        assert_eq!(bytes[16..20], width.to_be_bytes(), "{url} is as wide as was asked");
    }
}

/// A store in which everything that a page shows is there once. Answers a job that waits in a line.
fn filled(served: &Served) -> String {
    served.ask(decode::put_limit("site:*", br#"{"concurrency":5,"gap":"20m"}"#).unwrap());
    served.ask(decode::put_limit("llm:tokens", br#"{"rate":{"count":10000,"per":"1m"}}"#).unwrap());
    let accounts: Vec<_> = (0..24)
        .map(|n| json!({"id": format!("138000000{n:02}"), "data": {"password": "hunter2"}, "tags": ["cn"]}))
        .collect();
    served.ask(decode::put_pool("accounts", br#"{"cooldown":"10s"}"#).unwrap());
    let accounts = json!(accounts).to_string();
    served.ask(decode::add_resources("accounts", accounts.as_bytes()).unwrap());
    let retry = json!({"max_attempts": 5, "max_lost": 3,
        "backoff": {"kind": "fixed", "base": "100ms", "jitter": false}});
    let page = |n: u32| {
        json!({"id": format!("page-{n:03}"), "queue": "crawl", "kind": "page",
            "payload": {"url": format!("https://example.com/{n}")}, "group": format!("tenant-{}", n % 4),
            "labels": {"site": "example.com"}, "retry": retry,
            "needs": [{"limit": "site:example.com"}, {"pool": "accounts", "tag": "cn"}]})
    };
    served.push(&json!((0..60).map(page).collect::<Vec<_>>()).to_string());
    for worker in ["worker-a7", "worker-b1", "worker-b2"] {
        served.lease("crawl", worker);
    }
    let lease = served.lease("crawl", "worker-a7").lease.unwrap();
    let error = "http 503: upstream connect error or disconnect/reset before headers";
    let failed = json!({"lease": lease, "outcome": "failed", "error": error, "retry_in": "1h"});
    served.settle(&json!({"settle": [failed]}).to_string());
    while served.try_lease("crawl", "worker-b1").is_some() {}
    let mails: Vec<_> = (0..312).map(|n| json!({"queue": "mail", "payload": {"to": n}})).collect();
    served.push(&json!(mails).to_string());
    for n in 0..8 {
        served.push(&json!({"id": format!("index-{n}"), "queue": "index",
            "retry": {"max_attempts": 1, "max_lost": 3, "backoff": {"kind": "fixed", "base": "1s", "jitter": false}}
        }).to_string());
        let lease = served.lease("index", "worker-c3").lease.unwrap();
        let ends = match n % 3 {
            0 => json!({"lease": lease, "outcome": "failed", "error": format!("http 50{n}")}),
            _ => json!({"lease": lease, "outcome": "succeeded"}),
        };
        served.settle(&json!({"settle": [ends]}).to_string());
    }
    let news = br#"{"cron":"0 6 * * *","zone":"Europe/Berlin","job":{"queue":"news"}}"#;
    served.ask(decode::put_schedule("news", news).unwrap());
    served.push(
        r#"[{"id":"build","queue":"ci","flow":"release"},
        {"id":"publish","queue":"ci","flow":"release","after":["build"]}]"#,
    );
    served.push(r#"{"queue":"later","delay":"2h"}"#);
    served.ask(decode::pause_queue("later", b"{}").unwrap());
    let mut many = served.get("/jobs?q=state:blocked").page();
    let at = many.find("/jobs/page-").unwrap();
    many.drain(..at);
    many["/jobs/".len()..].split('"').next().unwrap().to_owned()
}

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
fn a_browser_runs_the_pages_and_draws_them() {
    if !wanted() {
        return;
    }
    let served = Served::with_history(WorseHour);
    let job = filled(&served);
    let browser = Browser::here();
    let url = |path: &str| format!("http://{}{path}", served.at);
    for path in
        ["/", "/jobs", &format!("/jobs/{job}"), "/queues/crawl", "/bulk/retry?q=state:failed"]
    {
        let dom = browser.dom(&url(path));
        assert!(dom.contains("· Tenure</title>"), "{path}: {dom}");
        // The script has run: times are local, and say in their titles what they are in UTC.
        assert!(!dom.contains(" UTC</time>"), "{path} shows a time that is not local");
    }
    let scratch = TempDir::new();
    let into = match std::env::var_os("TENURE_WRITE_SCREENSHOTS") {
        Some(_) => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/dashboard"),
        None => PathBuf::from(scratch.path()),
    };
    std::fs::create_dir_all(&into).unwrap();
    for (name, path, size, is_dark) in pictures(&job) {
        browser.picture(&url(&path), size, is_dark, &into.join(format!("{name}.png")));
    }
}
