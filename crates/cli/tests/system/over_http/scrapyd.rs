//! A scrapyd of the test's own, with the faults of a real one: it runs one id twice if it is asked twice, forgets what
//! has finished, loses what ran when it restarts, and answers errors with 200.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::over_http::server::{Asked, Caller, Server};

/// How it answers calls.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Mood {
    Well,
    Garbage,
    /// Executes the call, and cuts the connection.
    Cuts,
    /// The same, but only where a spider is started.
    CutsSchedules,
}

pub struct Inside {
    pub mood: Mood,
    pub running: Vec<String>,
    pub finished: Vec<String>,
    pub logs: BTreeMap<String, String>,
    /// The forms of `schedule.json`.
    pub schedules: Vec<BTreeMap<String, String>>,
    /// The calls, in their order.
    pub calls: Vec<String>,
    /// Ids with two runs at once.
    pub twice: Vec<String>,
    /// A spider that is cancelled ends with this reason; without one it is deaf.
    pub cancel_reason: Option<&'static str>,
}

pub struct FakeScrapyd {
    pub inside: Arc<Mutex<Inside>>,
    pub server: Server,
}

impl FakeScrapyd {
    pub fn start() -> Self {
        let inside = Arc::new(Mutex::new(Inside {
            mood: Mood::Well,
            running: Vec::new(),
            finished: Vec::new(),
            logs: BTreeMap::new(),
            schedules: Vec::new(),
            calls: Vec::new(),
            twice: Vec::new(),
            cancel_reason: Some("shutdown"),
        }));
        let answers = inside.clone();
        let server = Server::start(move |asked, caller| {
            answer(&mut answers.lock().unwrap(), &asked, caller);
        });
        FakeScrapyd { inside, server }
    }

    pub fn url(&self) -> String {
        format!("http://me:geheim@{}/", self.server.at())
    }

    pub fn look(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap()
    }

    /// How often this id was started.
    pub fn starts(&self, id: &str) -> usize {
        self.look().schedules.iter().filter(|form| form["jobid"] == id).count()
    }

    pub fn runs(&self, id: &str) -> bool {
        self.look().running.iter().any(|one| one == id)
    }

    /// How often this call was made.
    pub fn calls(&self, name: &str) -> usize {
        self.look().calls.iter().filter(|call| call.contains(name)).count()
    }
}

impl Inside {
    /// A spider writes the end of its log, and ends.
    pub fn finish(&mut self, id: &str, reason: &str) {
        self.writes(
            id,
            &format!(
                "x [scrapy.statscollectors] INFO: Dumping Scrapy stats:\n{{'finish_reason': '{reason}',\n \
                 'item_scraped_count': 12}}\nx [scrapy.core.engine] INFO: Spider closed ({reason})\n"
            ),
        );
        self.dies(id);
    }

    /// A spider ends without a line in its log.
    pub fn dies(&mut self, id: &str) {
        self.running.retain(|one| one != id);
        self.finished.push(id.to_owned());
    }

    /// As a real one does, it writes on where the log of a run before ended.
    pub fn writes(&mut self, id: &str, text: &str) {
        self.logs.entry(id.to_owned()).or_default().push_str(text);
    }
}

fn answer(inside: &mut Inside, asked: &Asked, caller: &mut Caller) {
    assert_eq!(asked.header("authorization"), "Basic bWU6Z2VoZWlt");
    let call = asked.line.split('?').next().unwrap().to_owned();
    inside.calls.push(call.clone());
    if inside.mood == Mood::Garbage {
        return caller.answer(200, &[], "<html>geheim</html>");
    }
    if let Some(path) = call.strip_prefix("HEAD /logs/").or(call.strip_prefix("GET /logs/")) {
        return log(inside, asked, path, caller);
    }
    let said = done(inside, asked, &call);
    let cuts = match inside.mood {
        Mood::Well | Mood::Garbage => false,
        Mood::Cuts => true,
        Mood::CutsSchedules => call.contains("schedule"),
    };
    if !cuts {
        caller.answer(200, &[], &said.to_string());
    }
}

fn log(inside: &Inside, asked: &Asked, path: &str, caller: &mut Caller) {
    let id = path.strip_prefix("news/front/").and_then(|name| name.strip_suffix(".log"));
    let Some(text) = id.and_then(|id| inside.logs.get(id)) else {
        return caller.answer(404, &[], "no such file");
    };
    if asked.line.starts_with("HEAD") {
        let length = text.len();
        return caller.write(&format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n"));
    }
    let range = asked.header("range").strip_prefix("bytes=").and_then(|r| r.strip_suffix('-'));
    match range {
        None => caller.answer(200, &[], text),
        Some(from) => {
            let from: usize = from.parse().unwrap();
            let range = format!("bytes {from}-{}/{}", text.len() - 1, text.len());
            caller.answer(206, &[("content-range", &range)], &text[from..]);
        }
    }
}

fn done(inside: &mut Inside, asked: &Asked, call: &str) -> Value {
    let form: BTreeMap<String, String> = asked
        .body
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| {
            let value = tenure_core::percent::decoded(value).unwrap().into_owned();
            (name.to_owned(), value)
        })
        .collect();
    match call {
        "GET /listjobs.json" => {
            assert!(asked.line.ends_with("?project=news"), "{}", asked.line);
            let ids = |ids: &[String]| ids.iter().map(|id| json!({"id":id})).collect::<Vec<_>>();
            let (running, finished) = (ids(&inside.running), ids(&inside.finished));
            json!({"status":"ok","pending":[],"running":running,"finished":finished})
        }
        "POST /schedule.json" if form["spider"] != "front" => {
            json!({"status":"error","message":format!("spider '{}' not found", form["spider"])})
        }
        "POST /schedule.json" => {
            let id = form["jobid"].clone();
            if inside.running.contains(&id) {
                inside.twice.push(id.clone());
            }
            inside.writes(&id, "x [scrapy.utils.log] INFO: Scrapy 2.19.0 started\n");
            inside.running.push(id.clone());
            inside.schedules.push(form);
            json!({"status":"ok","jobid":id})
        }
        "POST /cancel.json" => {
            let id = form["job"].clone();
            let runs = inside.running.contains(&id);
            if let (true, Some(reason)) = (runs, inside.cancel_reason) {
                inside.finish(&id, reason);
            }
            json!({"status":"ok","prevstate":runs.then_some("running")})
        }
        other => panic!("{other} is no call of a scrapyd"),
    }
}
