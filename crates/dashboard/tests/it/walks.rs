//! Every page in a real browser, over each kind of store: one browser, one server per store, and one walk through all
//! pages.
//!
//! `TENURE_LOOK=FOLDER cargo test -p tenure-dashboard --test it walk` leaves a picture of each page there, at both
//! widths, light and dark.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tenure_testkit::wants;

use crate::chromium::{Browser, Tab, wanted};
use crate::scene::{NAMES, SECRETS, filled, marked_names, named_so, paths};
use crate::served::{Served, Store};
use crate::shows::WorseHour;

/// The width and height of a screen, and whether it is dark.
const DESK: ((u32, u32), bool) = ((1280, 900), false);
const PHONE: ((u32, u32), bool) = ((375, 800), true);

/// Finds barriers for people with disabilities; `./test` installs it, and it is not part of any build.
const AXE: &str = "tools/axe-core/node_modules/axe-core/axe.min.js";

const HOW_TO_GET_AXE: &str = "there is no axe-core; run ./test, which installs it, or: npm install --prefix target/tools/axe-core \
    --no-save --ignore-scripts axe-core@4.14.1; or leave it out: TENURE_WITHOUT=axe-core";

/// The script of axe-core, unless this run leaves it out.
fn axe() -> Option<String> {
    if !wants("axe-core") {
        return None;
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    Some(std::fs::read_to_string(target.join(AXE)).expect(HOW_TO_GET_AXE))
}

/// Violations that axe-core finds in the current page, a line each.
fn violations(browser: &mut Browser, tab: &Tab, axe: &str) -> Vec<String> {
    browser.eval(tab, axe);
    let found = browser.eval(
        tab,
        "axe.run(document, {resultTypes: ['violations']}).then((all) => all.violations.map((one) =>
            `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join(' | ')}`))",
    );
    found.as_array().unwrap().iter().map(Value::to_string).collect()
}

/// A server over a store, and a browser with a tab.
struct Walk {
    served: Served,
    browser: Browser,
    tab: Tab,
}

impl Walk {
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.served.at)
    }

    fn open(&mut self, path: &str) {
        let url = self.url(path);
        self.browser.open(&self.tab, &url);
    }

    fn eval(&mut self, expression: &str) -> Value {
        self.browser.eval(&self.tab, expression)
    }

    fn wait(&mut self, expression: &str) {
        self.browser.wait(&self.tab, expression);
    }

    #[track_caller]
    fn says(&mut self, sentence: &str) {
        let text = self.eval("document.querySelector('main').innerText");
        let text = text.as_str().unwrap();
        assert!(text.contains(sentence), "{sentence:?} is not in {text}");
    }

    /// Follows the first link of the page whose path has this part.
    fn follow(&mut self, part: &str) {
        let tab = self.tab.clone();
        let part = Value::from(part);
        self.browser.loads(&tab, |browser| {
            browser.eval(
                &tab,
                &format!("[...document.querySelectorAll('main a')].find((a) => a.pathname.includes({part})).click()"),
            );
        });
    }

    /// Fills in the last form of the page that is sent to a path with this part, and sends it with its button.
    fn send(&mut self, part: &str, fields: &[(&str, &str)]) {
        let tab = self.tab.clone();
        let (part, fields) = (Value::from(part), serde_json::to_string(fields).unwrap());
        self.browser.loads(&tab, |browser| {
            browser.eval(
                &tab,
                &format!(
                    "(() => {{
                        const form = [...document.querySelectorAll('main form')]
                            .filter((form) => new URL(form.action).pathname.includes({part})).at(-1);
                        for (const [name, value] of {fields}) form.elements[name].value = value;
                        form.querySelector('button').click();
                    }})()"
                ),
            );
        });
    }
}

/// Over a folder, in a browser.
fn through_a_folder(walk: impl FnOnce(&mut Walk)) {
    if !wanted() {
        return;
    }
    let mut browser = Browser::start();
    let served = Served::over(Store::folder(), None, Some(Arc::new(WorseHour)));
    let tab = browser.tab();
    let mut one = Walk { served, browser, tab };
    walk(&mut one);
    // A page that stays open would lose its server, and complain.
    one.browser.open(&one.tab, "about:blank");
}

/// The faults of a page, at every width, light and dark.
fn faults_of(walk: &mut Walk, path: &str, axe: Option<&str>) -> Vec<String> {
    let mut faults = Vec::new();
    let tab = walk.tab.clone();
    for (size, is_dark) in [DESK, PHONE] {
        walk.browser.look(&tab, size, is_dark);
        // The page is the same for both. But elements that are already there fade into the dark, and axe-core would see
        // them halfway.
        if (size, is_dark) == DESK || axe.is_some() {
            walk.open(path);
        }
        let html = walk.eval("document.documentElement.outerHTML");
        let html = html.as_str().unwrap();
        let hidden = "document.documentElement.scrollWidth - innerWidth";
        let (markup, hidden) =
            (walk.eval("document.querySelectorAll('xss, [onload]').length"), walk.eval(hidden));
        let told = walk.browser.complaints();
        let shows_payload = !path.ends_with("/edit") && html.contains(SECRETS[1]);
        for (is_wrong, fault) in [
            (!html.contains("· Tenure</title>"), "is no page"),
            // The script has run: times are local, with UTC in their titles.
            (html.contains(" UTC</time>"), "shows a time that is not local"),
            (markup != 0, "lets a name become markup"),
            (html.contains(SECRETS[0]), "shows the data of a resource"),
            (shows_payload, "shows a payload"),
            (hidden.as_i64().unwrap() > 0, "must be scrolled sideways"),
            (!told.is_empty(), "complains in the console"),
        ] {
            if is_wrong {
                faults.push(format!("{path}, {} px: {fault} {told:?}", size.0));
            }
        }
        if let Some(folder) = std::env::var_os("TENURE_LOOK") {
            let name = path.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            let name: String = name.chars().take(60).collect();
            let file = Path::new(&folder).join(format!("{}{name}.png", size.0));
            walk.browser.picture(&tab, &file);
        }
        for found in axe.map(|axe| violations(&mut walk.browser, &tab, axe)).unwrap_or_default() {
            faults.push(format!("{path}, {} px: {found}", size.0));
        }
    }
    faults
}

#[test]
fn every_page_is_well_at_every_width_and_in_the_dark() {
    through_a_folder(|walk| {
        let axe = axe();
        let mut faults = Vec::new();
        let scene = filled(&walk.served);
        for path in paths(&scene, &NAMES.map(str::to_owned)) {
            faults.extend(faults_of(walk, &path, axe.as_deref()));
        }
        // The same pages with other names differ in their names alone: axe-core has seen them.
        let scene = named_so(&walk.served);
        for path in paths(&scene, &marked_names()) {
            faults.extend(faults_of(walk, &path, None));
        }
        assert!(faults.is_empty(), "{faults:#?}");
    });
}

/// An action of a page: its page, the link to its question if it asks first, the target and the fields of its form, and
/// a sentence of the next page.
type ActionRow = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

#[rustfmt::skip]
const ACTIONS: &[ActionRow] = &[
    ("/queues/crawl", "", "/queues/crawl/pause", &[("for", "10m")], "The queue is paused"),
    ("/queues/crawl", "", "/queues/crawl/resume", &[], "The queue is resumed"),
    ("/queues/mail", "", "/queues/mail/hide-payload", &[], "Lists do not show its payloads"),
    ("/queues/mail", "", "/queues/mail/show-payload", &[], "Lists show one line of each payload"),
    ("/queues/mail", "", "/queues/mail/set", &[("max_waiting", "500")], "The settings are changed"),
    ("/jobs/mail-0", "/mail-0/edit", "/mail-0/edit", &[("priority", "7")], "The job is changed"),
    ("/jobs/mail-0", "/mail-0/cancel", "/mail-0/cancel", &[], "The job is cancelled"),
    ("/jobs/mail-0", "", "/mail-0/retry", &[], "The job is ready again"),
    ("/jobs/index-0", "/index-0/edit", "/index-0/again", &[("payload", "7")], "This is the new job"),
    ("/jobs/mail-0", "/mail-0/delete", "/mail-0/delete", &[], "The job was deleted"),
    ("/jobs?q=queue:mail", "/bulk/cancel", "/bulk/cancel", &[], "Jobs cancelled, or asked to stop: 311."),
    ("/limits/site:example.com", "", "/site:example.com/set", &[("concurrency", "9")], "The limit is changed"),
    ("/limits/site:example.com", "", "/site:example.com/pause", &[("for", "1s")], "The limit is paused"),
    ("/limits/llm:tokens", "", "/llm:tokens/set", &[("count", "600"), ("per", "1m"), ("burst", "9")], "600 / 1m"),
    ("/pools/accounts", "", "/accounts/set", &[("count", "9"), ("per", "1h"), ("pick", "random")], "each at most 9 / 1h"),
    ("/pools/accounts", "/accounts/add", "/accounts/add", &[("id", "new"), ("data", "{\"k\":\"hunter2-secret\"}")], "is added"),
    ("/pools/accounts", "/13800000008/remove", "/13800000008/remove", &[], "is removed"),
    ("/pools/accounts", "/13800000009/ban", "/13800000009/ban", &[("reason", "captcha")], "is banned"),
    ("/pools/accounts", "", "/13800000009/restore", &[], "is available again"),
    ("/pools/accounts", "/13800000009/cool", "/13800000009/cool", &[("for", "10m")], "rests"),
    ("/schedules/news", "", "/news/run-now", &[], "An extra job was pushed"),
    ("/schedules/news", "", "/news/pause", &[], "The schedule is paused"),
    ("/schedules/news", "", "/news/resume", &[], "The schedule is resumed"),
    ("/schedules/news", "/news/delete", "/news/delete", &[], "The schedule is deleted"),
    ("/flows/release", "/release/cancel", "/release/cancel", &[], "The flow is being cancelled"),
    ("/leases?worker=worker-b1", "/leases/", "/leases/", &[], "The lease has ended"),
    ("/system", "", "/system/audit", &[], "Nothing is wrong"),
];

/// Actions that can be repeated, in a browser that runs no scripts.
#[rustfmt::skip]
const PLAIN_ACTIONS: &[ActionRow] = &[
    ("/queues/crawl", "", "/queues/crawl/pause", &[("for", "10m")], "The queue is paused"),
    ("/jobs/page-001", "/page-001/delete", "/page-001/delete", &[], "The job was deleted"),
    ("/pools/accounts", "/13800000007/ban", "/13800000007/ban", &[("reason", "captcha")], "is banned"),
];

#[test]
fn every_button_does_what_it_says_with_and_without_scripts() {
    through_a_folder(|walk| {
        filled(&walk.served);
        for (runs_scripts, actions) in [(true, ACTIONS), (false, PLAIN_ACTIONS)] {
            let tab = walk.tab.clone();
            let request = serde_json::json!({"value": !runs_scripts});
            walk.browser.tell(&tab, "Emulation.setScriptExecutionDisabled", request);
            walk.open("/schedules/prices");
            let text = walk.eval("document.querySelector('main').innerText");
            assert_eq!(text.as_str().unwrap().contains(" UTC"), !runs_scripts, "{text}");
            for (page, link, form, fields, sentence) in actions {
                walk.open(page);
                if !link.is_empty() {
                    walk.follow(link);
                    let text = walk.eval("document.querySelector('main .cmd').textContent");
                    assert!(text.as_str().unwrap().starts_with("tenure "), "{page}: {text}");
                }
                walk.send(form, fields);
                walk.says(sentence);
            }
        }
        assert_eq!(walk.browser.complaints(), Vec::<String>::new());
    });
}

const READY: &str =
    "Number(document.querySelector('.tile .ready + .big').textContent.replaceAll(',', ''))";

/// How often the tab has fetched its page again, and the milliseconds from its opening to the last time.
const FETCHED: &str = "(() => {
    const all = performance.getEntriesByType('resource').filter((one) => one.initiatorType === 'fetch').map((one) => one.startTime);
    return [all.length, all.at(-1) ?? 0];
})()";

/// Holds the next page that the tab fetches until it is released, and counts the notices meanwhile.
const HOLD: &str = "(() => {
    const fetched = window.fetch;
    const held = new Promise((release) => { window.release = release; });
    window.heard = 0;
    new EventSource(document.body.dataset.live).addEventListener('changed', () => { window.heard += 1; });
    window.fetch = async (...asked) => {
        window.fetch = fetched;
        const text = await (await fetched(...asked)).text();
        window.isHeld = true;
        await held;
        return new Response(text);
    };
})()";

/// Releases the held page; returns the milliseconds until the page shows the change.
const RELEASE: &str = "(async () => {
    const begin = performance.now();
    window.release();
    while (!(DONE)) await new Promise((go) => setTimeout(go, 10));
    return performance.now() - begin;
})()";

#[test]
fn an_open_tab_follows_changes_and_a_hidden_one_rests() {
    through_a_folder(|walk| {
        walk.served.push(r#"{"queue":"q"}"#);
        walk.open("/queues/q");
        walk.wait("document.querySelector('.live.on')");
        // One push after the other, until the tab has fetched five pages: no more than two a second.
        let mut pushed = 1;
        let (fetched, ms) = loop {
            walk.served.push(r#"{"queue":"q"}"#);
            pushed += 1;
            let told = walk.eval(FETCHED);
            let (n, ms) = (told[0].as_f64().unwrap(), told[1].as_f64().unwrap());
            if n >= 5.0 {
                break (n, ms);
            }
        };
        // From the opening, since a late first notice brings the others nearer to it.
        assert!(ms >= fetched * 500.0, "{fetched} pages in {ms} ms");
        walk.wait(&format!("{READY} === {pushed}"));
        // Another tab is in front of it.
        let (first, second) = (walk.tab.clone(), walk.browser.tab());
        walk.browser.hide(&first, true);
        let url = walk.url("/queues/q");
        walk.browser.open(&second, &url);
        walk.browser.wait(&second, "document.querySelector('.live.on')");
        let before = walk.eval(FETCHED);
        for _ in 0..2 {
            walk.served.push(r#"{"queue":"q"}"#);
            pushed += 1;
            walk.browser.wait(&second, &format!("{READY} === {pushed}"));
        }
        assert_eq!(walk.eval(FETCHED), before, "a hidden tab fetches pages");
        walk.browser.open(&second, "about:blank");
        // Changes in the meantime show at once, not only at the next change.
        walk.eval("document.addEventListener('visibilitychange', () => { window.shownAt = performance.now(); })");
        walk.browser.hide(&first, false);
        walk.wait(&format!("{READY} === {pushed}"));
        let rested = walk.eval("performance.getEntriesByType('resource').filter((one) => one.initiatorType === 'fetch').at(-1).startTime - window.shownAt");
        assert!(rested.as_f64().unwrap() < 1_000.0, "{rested} ms after it was shown");
        // Changes while a page is on its way are seen, too: this page comes late, with two notices meanwhile.
        walk.eval(HOLD);
        for _ in 0..2 {
            let heard = walk.eval("window.heard").as_f64().unwrap();
            walk.served.push(r#"{"queue":"q"}"#);
            pushed += 1;
            walk.wait(&format!("window.heard > {heard} && window.isHeld"));
        }
        let ms = walk.eval(&RELEASE.replace("DONE", &format!("{READY} === {pushed}")));
        assert!(ms.as_f64().unwrap() < 3_000.0, "{ms} ms behind what happened");
        // A reader who pauses the page sees nothing change.
        walk.browser.press(&first, "p");
        walk.wait("document.querySelector('.live').textContent === 'Paused'");
        walk.served.push(r#"{"queue":"q"}"#);
        walk.browser.press(&first, "p");
        walk.wait(&format!("{READY} === {}", pushed + 1));
        assert_eq!(walk.browser.complaints(), Vec::<String>::new());
    });
}

#[test]
fn keys_find_go_and_help() {
    if !wanted() {
        return;
    }
    let (served, mut browser) = (Served::start(), Browser::start());
    let tab = browser.tab();
    browser.open(&tab, &format!("http://{}/", served.at));
    browser.press(&tab, "?");
    browser.wait(&tab, "document.querySelector('dialog[open]')");
    let keys = browser.eval(
        &tab,
        "[...document.querySelectorAll('nav a')].map((a) => [a.dataset.key, a.pathname])",
    );
    // The help names each key with the page to which it goes.
    let help = "[...document.querySelectorAll('dialog dt')].map((dt) => [dt.innerText, dt.nextElementSibling.innerText])";
    let help = browser.eval(&tab, help).to_string();
    for pair in keys.as_array().unwrap() {
        let (key, path) = (pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
        let name = browser.eval(
            &tab,
            &format!(
                "document.querySelector('nav a[data-key={key}]').firstChild.textContent.trim()"
            ),
        );
        let row = serde_json::json!([format!("g {key}"), name]).to_string();
        assert!(help.contains(&row), "{row} of {path} is not in {help}");
    }
    browser.eval(&tab, "document.querySelector('dialog button').click()");
    browser.wait(&tab, "!document.querySelector('dialog[open]')");
    for pair in keys.as_array().unwrap() {
        let (key, path) = (pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
        browser.loads(&tab, |browser| browser.press(&tab, &format!("g{key}")));
        assert_eq!(browser.eval(&tab, "location.pathname"), path);
    }
    browser.press(&tab, "/");
    browser.wait(&tab, "document.activeElement.name === 'q'");
    browser.press(&tab, "gj?");
    assert_eq!(
        browser.eval(&tab, "document.activeElement.value"),
        "gj?",
        "keys in a field are text"
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
