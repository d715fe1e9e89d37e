//! A Chromium that a test drives: one process, its tabs, and the output of its console.
//!
//! Its commands come by a pair of pipes instead of a socket, so that nothing else on the machine can drive it, and this
//! needs no library: messages are JSON, with a zero byte behind each.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_testkit::{TempDir, wants};

/// Names of the program on different systems. The first, without a screen, computes less.
const PROGRAMS: [&str; 4] =
    ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// How long any one step may take on a machine that builds beside the tests.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to rest between two looks at a page.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Whether tests that need a browser run: see [`wants`].
pub fn wanted() -> bool {
    wants("browser")
}

/// A browser without a screen and without background traffic. It ends with this value.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    sent: u64,
    /// Events that nobody has looked at yet.
    events: VecDeque<Value>,
    _profile: TempDir,
}

/// A tab of a browser, with the session for its commands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tab {
    session: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends its own processes when it is closed; a killed one might leave some.
        self.sent += 1;
        let _ = write!(self.to, "{}\0", json!({"id": self.sent, "method": "Browser.close"}));
        let until = Instant::now() + Duration::from_secs(5);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    pub fn start() -> Self {
        let runs = |name: &&str| {
            let asked = Command::new(name).arg("--version").stderr(Stdio::null()).output();
            asked.is_ok_and(|output| output.status.success())
        };
        let found = PROGRAMS.into_iter().find(|name| runs(name));
        let program =
            found.expect("there is no Chromium: install it, or set TENURE_WITHOUT=browser");
        let profile = TempDir::new();
        // The browser reads the third descriptor and writes the fourth; the shell makes them from the two that it has.
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#, "sh", program])
            .args(["--remote-debugging-pipe", "--headless=new", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"])
            .args(["--hide-scrollbars", "--lang=en"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let mut pipe = BufReader::new(child.stdout.take().unwrap());
        let (tell, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while pipe.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if tell.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        Browser { child, to, from, sent: 0, events: VecDeque::new(), _profile: profile }
    }

    /// A new tab, which is then the visible one.
    pub fn tab(&mut self) -> Tab {
        let made = self.told(None, "Target.createTarget", json!({"url": "about:blank"}));
        let request = json!({"targetId": made["targetId"], "flatten": true});
        let session = self.told(None, "Target.attachToTarget", request)["sessionId"].clone();
        let tab = Tab { session: session.as_str().unwrap().to_owned() };
        for domain in ["Page", "Runtime", "Log"] {
            self.tell(&tab, &format!("{domain}.enable"), json!({}));
        }
        tab
    }

    /// Tells the page of a tab that it is hidden, or shown. A Chromium without a screen shows all its tabs.
    pub fn hide(&mut self, tab: &Tab, is_hidden: bool) {
        self.eval(
            tab,
            &format!(
                "Object.defineProperty(document, 'hidden', {{ value: {is_hidden}, configurable: true }});
                 document.dispatchEvent(new Event('visibilitychange'))"
            ),
        );
    }

    /// Sends a command to a tab; returns the reply.
    pub fn tell(&mut self, tab: &Tab, method: &str, params: Value) -> Value {
        self.told(Some(tab), method, params)
    }

    fn told(&mut self, tab: Option<&Tab>, method: &str, params: Value) -> Value {
        self.sent += 1;
        let id = self.sent;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(tab) = tab {
            message["sessionId"] = tab.session.clone().into();
        }
        write!(self.to, "{message}\0").unwrap();
        loop {
            let came = self.from.recv_timeout(PATIENCE);
            let mut came =
                came.unwrap_or_else(|why| panic!("the browser is silent: {method}: {why}"));
            if came["id"] == id {
                assert!(came["error"].is_null(), "{method}: {}", came["error"]);
                return came["result"].take();
            }
            self.events.push_back(came);
        }
    }

    /// Waits for an event of this tab.
    fn await_event(&mut self, tab: &Tab, method: &str) {
        let is_it =
            |event: &Value| event["method"] == method && event["sessionId"] == tab.session.as_str();
        if let Some(at) = self.events.iter().position(is_it) {
            self.events.remove(at);
            return;
        }
        loop {
            let came = self.from.recv_timeout(PATIENCE);
            let came = came.unwrap_or_else(|why| panic!("no {method} came: {why}"));
            if is_it(&came) {
                return;
            }
            self.events.push_back(came);
        }
    }

    /// Lines of all consoles since the last call: errors of scripts, and violations of the policy.
    pub fn complaints(&mut self) -> Vec<String> {
        let events = std::mem::take(&mut self.events);
        let complaint = |event: Value| {
            let about = &event["params"];
            match event["method"].as_str()? {
                "Log.entryAdded" => Some(about["entry"].to_string()),
                "Runtime.exceptionThrown" => Some(about["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" => Some(about["args"].to_string()),
                _ => None,
            }
        };
        events.into_iter().filter_map(complaint).collect()
    }

    /// Opens an address, and waits until it is loaded.
    pub fn open(&mut self, tab: &Tab, url: &str) {
        self.loads(tab, |browser| {
            let went = browser.tell(tab, "Page.navigate", json!({"url": url}));
            assert!(went["errorText"].is_null(), "{url}: {}", went["errorText"]);
        });
    }

    /// Does something that loads another page in the tab, and waits for that.
    pub fn loads(&mut self, tab: &Tab, what: impl FnOnce(&mut Self)) {
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        what(self);
        self.await_event(tab, "Page.loadEventFired");
    }

    /// The value of an expression in the page; it may be a promise.
    pub fn eval(&mut self, tab: &Tab, expression: &str) -> Value {
        let request =
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut told = self.tell(tab, "Runtime.evaluate", request);
        assert!(told["exceptionDetails"].is_null(), "{expression}: {}", told["exceptionDetails"]);
        told["result"]["value"].take()
    }

    /// Waits until an expression is true in the page.
    pub fn wait(&mut self, tab: &Tab, expression: &str) {
        let until = Instant::now() + PATIENCE;
        while self.eval(tab, &format!("Boolean({expression})")) != true {
            assert!(Instant::now() < until, "this stays false: {expression}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Presses keys, one after the other.
    pub fn press(&mut self, tab: &Tab, keys: &str) {
        for key in keys.chars().map(String::from) {
            for kind in ["keyDown", "keyUp"] {
                let mut event = json!({"type": kind, "key": key});
                if kind == "keyDown" {
                    event["text"] = key.clone().into();
                }
                self.tell(tab, "Input.dispatchKeyEvent", event);
            }
        }
    }

    /// The width and height of the window, and whether it is dark.
    pub fn look(&mut self, tab: &Tab, (width, height): (u32, u32), is_dark: bool) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.tell(tab, "Emulation.setDeviceMetricsOverride", size);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.tell(tab, "Emulation.setEmulatedMedia", features);
    }

    /// The page as a picture.
    pub fn picture(&mut self, tab: &Tab, file: &Path) {
        let shot = self.tell(tab, "Page.captureScreenshot", json!({"format": "png"}));
        let text = shot["data"].as_str().unwrap();
        let bytes = data_encoding::BASE64.decode(text.as_bytes()).unwrap();
        assert!(
            bytes.starts_with(b"\x89PNG") && bytes.len() > 8_000,
            "{} is drawn",
            file.display()
        );
        std::fs::write(file, bytes).unwrap();
    }
}
