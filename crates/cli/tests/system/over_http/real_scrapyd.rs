//! The same with a scrapyd as PyPI has it, which `./test --long` puts into `target/tools/scrapyd`.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tenure_testkit::wants;

use crate::over_http::ours::{Tenure, until};

const HOW_TO_GET_IT: &str = "there is no scrapyd; run ./test --long, which installs it, or: python3 -m venv target/tools/scrapyd \
     && target/tools/scrapyd/bin/pip install scrapyd==1.6.0; or leave it out: TENURE_WITHOUT=scrapyd";

/// Each run of a spider adds a line to `began-ID`, works until there is a file `go-ID`, and says more than what is read of
/// the end of a log.
const SPIDERS: &str = r#"
import asyncio, os, scrapy

class Front(scrapy.Spider):
    name = "front"

    async def start(self):
        for n in range(2000):
            self.logger.info("line %d, so that the end of the log is a part of it", n)
        with open(f"began-{self._job}", "a") as file:
            file.write("x\n")
        while not os.path.exists(f"go-{self._job}"):
            await asyncio.sleep(0.05)
        for n in range(3):
            yield {"n": n}

    def closed(self, reason):
        with open(f"closed-{self._job}", "w") as file:
            file.write(reason)

class Dies(scrapy.Spider):
    name = "dies"

    async def start(self):
        os.kill(os.getpid(), 9)
        yield
"#;

fn program() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let program = target.join("tools/scrapyd/bin/scrapyd");
    assert!(program.exists(), "{HOW_TO_GET_IT}");
    program
}

/// Ended when it is dropped, with its spiders.
struct Real {
    child: Child,
    at: String,
}

impl Real {
    fn start(folder: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let files = [
            ("news/__init__.py", String::new()),
            ("news/spiders.py", SPIDERS.to_owned()),
            (
                "news/settings.py",
                "BOT_NAME = 'news'\nSPIDER_MODULES = ['news.spiders']\nTELNETCONSOLE_ENABLED = False\n"
                    .to_owned(),
            ),
            ("scrapy.cfg", "[settings]\ndefault = news.settings\nnews = news.settings\n".to_owned()),
            (
                "scrapyd.conf",
                format!(
                    "[scrapyd]\nbind_address = 127.0.0.1\nhttp_port = {port}\npoll_interval = 0.2\n\
                     max_proc = 3\n[settings]\nnews = news.settings\n"
                ),
            ),
        ];
        std::fs::create_dir(folder.join("news")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let mut command = Command::new(program());
        command.current_dir(folder).env("PYTHONPATH", folder).stdin(Stdio::null());
        let log = std::fs::File::create(folder.join("scrapyd.log")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let real = Real { child: command.spawn().unwrap(), at: format!("127.0.0.1:{port}") };
        until("scrapyd listens", || TcpStream::connect(&real.at).is_ok());
        real
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.child.id().try_into().unwrap()), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "long: the example of capped spiders has a real scrapyd, too"]
fn a_real_scrapyd_runs_a_spider_once_across_a_killed_worker() {
    if !wants("scrapyd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (tenure, scrapyd) = (Tenure::start(), Real::start(folder.path()));
    let url = format!("http://{}/", scrapyd.at);
    let arguments = ["--scrapyd", &url, "--poll-every", "200ms", "--ttl", "3s", "-c", "3"];
    let job = |id: &str, spider: &str| {
        let payload = json!({"project":"news","spider":spider,"settings":{"LOG_LEVEL":"INFO"}});
        json!({"id":id,"queue":"q","payload":payload,"retry":{"max_attempts":1}})
    };
    let file = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let go = |id: &str| std::fs::write(folder.path().join(format!("go-{id}")), "").unwrap();

    let first = tenure.worker(&arguments);
    tenure.push(&job("a", "front"));
    until("it runs", || file("began-a") == "x\n");
    first.signal(Signal::SIGKILL);
    until("it is found out", || tenure.state("a") != "running");
    let _second = tenure.worker(&arguments);
    until("it is taken up", || tenure.state("a") == "running");
    go("a");
    let done = tenure.once("a", "succeeded");
    assert_eq!((&done["attempt"], file("began-a")), (&json!(1), "x\n".to_owned()));
    let result = &done["result"];
    assert_eq!((&result["finish_reason"], &result["items"]), (&json!("finished"), &json!(3)));

    tenure.push(&job("b", "dies"));
    let error = tenure.once("b", "failed")["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("the spider ended, but its log does not say how"), "{error}");

    tenure.push(&job("c", "nobody"));
    let error = tenure.once("c", "failed")["error"].clone();
    let said = "the spider was not started: schedule.json: spider 'nobody' not found";
    assert_eq!(error, Value::from(said));

    tenure.push(&job("d", "front"));
    until("it runs", || file("began-d") == "x\n");
    tenure.ask("POST /v1/jobs/d/cancel", &json!({}));
    tenure.once("d", "cancelled");
    assert_eq!(file("closed-d"), "shutdown");

    // The id is free again: the log of the run before is there, and does not count.
    tenure.ask("DELETE /v1/jobs/a", &json!({}));
    std::fs::remove_file(folder.path().join("go-a")).unwrap();
    tenure.push(&job("a", "front"));
    until("it runs again", || file("began-a") == "x\nx\n");
    go("a");
    tenure.once("a", "succeeded");
}
