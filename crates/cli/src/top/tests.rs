//! The screen as a person sees it, at 80 columns, drawn without a terminal; and what each key does.

use std::path::PathBuf;

use ratatui::backend::TestBackend;
use ratatui::style::Modifier;
use serde_json::{Value, json};
use tenure_console::standing::NamespaceReplies;
use tenure_core::time::Span;
use tenure_engine_api::{CallError, Fault};

use super::*;
use crate::top::asked::{Content, JobRow};
use crate::top::screen::Key;
use crate::top::view::View;

const NOW: Moment = Moment::from_us(1_800_000_000_000_000);

fn ago(s: u64) -> Moment {
    NOW.minus(Span::from_s(s))
}

fn listed(items: Value) -> Value {
    json!({"items": items, "next": null})
}

fn queue(name: &str, ready: u64, blocked: u64, running: u64, workers: u64, oldest: u64) -> Value {
    let oldest = (ready > 0).then(|| ago(oldest));
    json!({"name": name, "paused": name == "bulk", "workers": workers, "oldest_ready_at": oldest, "counts":
        {"ready": ready, "blocked": blocked, "scheduled": 3, "dependent": 0, "running": running}})
}

fn limit(name: &str, cap: Option<u32>, in_use: u64, waiting: u64) -> Value {
    json!({"name": name, "concurrency": cap, "in_use": in_use, "external": 0, "waiting": waiting, "over_limit": 0,
        "holders": []})
}

fn worker(host: &str, pid: u32, leases: u64) -> Value {
    json!({"id": format!("{host}:{pid}:0123456789ab"), "host": host, "pid": pid, "version": "0.1.0",
        "queues": ["crawl", "mail"], "leases": leases, "last_seen_at": ago(2)})
}

/// A namespace with some of everything.
fn namespace(in_use: u64) -> NamespaceReplies {
    let limits: Vec<Value> = (0..12)
        .map(|n| limit(&format!("site:{n:02}.example.com"), Some(2), 1, 0))
        .chain([
            limit("site:x", Some(2), in_use, 4_120),
            limit("shut", Some(0), 0, 3),
            limit("api", None, 9, 0),
        ])
        .collect();
    let pools = json!([
        {"name": "accounts", "available": 0, "leased": 0, "cooling": 0, "banned": 5, "waiting": 12},
        {"name": "proxies", "available": 9, "leased": 3, "cooling": 0, "banned": 1, "waiting": 0},
    ]);
    let failures = json!({"items": [{"queue": "mail", "kind": "", "error": "http # \u{1b}[31m", "count": 40,
        "first_at": ago(60), "last_at": ago(6), "job": "j"}]});
    let queues = json!([
        queue("mail", 0, 0, 8, 3, 0),
        queue("crawl", 312, 40, 0, 0, 250),
        queue("bulk", 7, 0, 0, 1, 9)
    ]);
    let stats = json!({"jobs": {"ready": 319, "blocked": 40, "scheduled": 9, "running": 8, "succeeded": 1203},
        "queues": {}, "leases": 8, "oldest_ready_at": ago(250), "store": {"kind": "embedded", "bytes": 12345}});
    fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }
    NamespaceReplies {
        now: NOW,
        stats: of(stats),
        queues: of(listed(queues)),
        limits: of(listed(limits.into())),
        pools: of(listed(pools)),
        schedules: of(listed(json!([]))),
        workers: of(listed(json!([worker("host-1", 41, 5), worker("host-2", 7, 3)]))),
        failures: of(failures),
    }
}

fn overview() -> Screen {
    let mut screen = Screen::new("http://127.0.0.1:7171".to_owned(), "default".to_owned());
    screen.answered(Ok((NOW, Content::Overview(Box::new(namespace(2))))));
    screen
}

fn press(screen: &mut Screen, keys: &str) -> KeyTurn {
    let mut last = KeyTurn::Stay;
    for letter in keys.chars() {
        last = screen.key(match letter {
            '\n' => Key::Enter,
            '\t' => Key::Tab,
            '<' => Key::Escape,
            letter => Key::Letter(letter),
        });
    }
    last
}

/// The screen as text; a line that is selected begins with `>`, which stands in the margin.
fn drawn(screen: &Screen, width: u16, height: u16) -> String {
    let mut terminal = ratatui::Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(frame, screen, false)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..height {
        let cells = (0..width).map(|x| &buffer[(x, y)]);
        let line: String = cells.map(|cell| cell.symbol()).collect();
        let is_selected = buffer[(0, y)].modifier.contains(Modifier::REVERSED);
        text.push(if is_selected { '>' } else { ' ' });
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn compare(name: &str, text: &str) {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/top/tests").join(format!("{name}.txt"));
    if std::env::var("TENURE_WRITE_SNAPSHOTS").is_ok_and(|value| value == "1") {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "{name} differs from the snapshot; check the change, and write it again: TENURE_WRITE_SNAPSHOTS=1\n{text}"
    );
}

#[test]
fn every_view_is_as_it_was_read() {
    let mut screen = overview();
    compare("overview", &drawn(&screen, 80, 44));
    press(&mut screen, "jjj");
    compare("overview-24-lines", &drawn(&screen, 80, 24));
    press(&mut screen, "?");
    compare("help", &drawn(&screen, 80, 24));
    press(&mut screen, "?/x");
    compare("filter", &drawn(&screen, 80, 30));
    press(&mut screen, "<\t\n");
    assert_eq!(screen.view().title(), "queue 'crawl'");
    let job = |id: &str, state: &str, holder: Option<&str>| JobRow {
        job: Some(tenure_core::names::JobId::parse(id).unwrap()),
        state: state.to_owned(),
        holder: holder.map(str::to_owned),
        since: Some(ago(70)),
    };
    let caller = JobRow { job: None, ..job("x", "waits", None) };
    let jobs = vec![job("page-1", "running", Some("host-1:41:0123456789ab")), caller];
    screen.answered(Ok((NOW, Content::Jobs(jobs))));
    compare("jobs", &drawn(&screen, 80, 12));
    assert_eq!(press(&mut screen, "\n"), KeyTurn::Ask);
    let told = "page-1 is blocked, for 2 reasons:\n- 2 of 2 permits of \"site:x\" are in use, and a sentence that is \
                longer than a line goes on below itself\n  number 3 in its line\n";
    screen.answered(Ok((NOW, Content::Explained(told.to_owned()))));
    compare("explained", &drawn(&screen, 80, 12));
    screen.answered(Err(CallError::Fault(Fault::Unavailable("127.0.0.1:7171: refused".into()))));
    compare("away", &drawn(&screen, 80, 12));
}

#[test]
fn keys_walk_in_and_back_and_leave() {
    let mut screen = overview();
    for (keys, turn, view) in [
        ("j", KeyTurn::Stay, ""),
        ("\t", KeyTurn::Stay, ""),
        ("\n", KeyTurn::Ask, "queue 'crawl'"),
        ("q", KeyTurn::Ask, ""),
    ] {
        assert_eq!(press(&mut screen, keys), turn, "{keys:?}");
        assert_eq!(screen.view().title(), view, "{keys:?}");
    }
    screen.answered(Ok((NOW, Content::Overview(Box::new(namespace(2))))));
    // It is still where the user was.
    assert_eq!(press(&mut screen, "\n"), KeyTurn::Ask);
    assert_eq!(screen.view().title(), "queue 'crawl'");
    press(&mut screen, "q");
    screen.answered(Ok((NOW, Content::Overview(Box::new(namespace(2))))));
    // A letter of the filter is no command, and the filter goes before the screen does.
    assert_eq!(press(&mut screen, "/q\n"), KeyTurn::Stay);
    assert_eq!(screen.filter(), "q");
    assert_eq!(press(&mut screen, "<"), KeyTurn::Stay);
    assert_eq!(screen.filter(), "");
    assert_eq!(press(&mut screen, "q"), KeyTurn::Leave);
    press(&mut screen, "\n");
    assert_eq!(screen.key(Key::Interrupt), KeyTurn::Leave);
}

#[test]
fn paused_nothing_is_asked_for_but_by_going_on() {
    let mut screen = overview();
    assert_eq!(press(&mut screen, "p"), KeyTurn::Stay);
    assert!(screen.is_paused());
    assert!(drawn(&screen, 80, 24).contains("PAUSED"));
    // Another view has to be asked for once.
    press(&mut screen, "\n");
    assert!(!screen.is_paused());
    screen.answered(Ok((NOW, Content::Jobs(Vec::new()))));
    assert!(screen.is_paused());
    assert_eq!(press(&mut screen, "p"), KeyTurn::Ask);
    assert!(!screen.is_paused());
}

#[test]
fn the_selected_thing_stays_selected_when_the_order_changes() {
    let mut screen = overview();
    while !screen.rows(80)[screen.selected(&screen.rows(80)).unwrap()].text.starts_with("site:x ") {
        press(&mut screen, "j");
    }
    let place = |screen: &Screen| screen.selected(&screen.rows(80)).unwrap();
    let before = place(&screen);
    let mut replies = namespace(2);
    replies.limits.items.iter_mut().find(|one| one.name.as_str() == "api").unwrap().waiting = 9_000;
    screen.answered(Ok((NOW, Content::Overview(Box::new(replies)))));
    assert_eq!(place(&screen), before + 1);
    assert!(screen.rows(80)[place(&screen)].text.starts_with("site:x "));
}

#[test]
fn what_was_watched_is_said_with_its_time() {
    let mut screen = overview();
    let mut later = namespace(2);
    later.now = NOW.plus(Span::from_s(720));
    screen.answered(Ok((later.now, Content::Overview(Box::new(later)))));
    let text = drawn(&screen, 80, 24);
    assert!(text.contains("queue 'crawl' has no worker since 12m0s: 352 wait"), "{text}");
    assert!(text.contains("limit 'site:x' has been full for 12m0s: 4,120 wait"), "{text}");
}

#[test]
fn it_can_be_drawn_at_any_size() {
    let mut screen = overview();
    for keys in ["", "G", "?", "?/no such thing\n"] {
        press(&mut screen, keys);
        for (width, height) in [(1, 1), (20, 3), (40, 10), (300, 100)] {
            drawn(&screen, width, height);
        }
    }
    assert_eq!(screen.view(), &View::Overview);
}
