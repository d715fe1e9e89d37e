//! A server on a folder, and the output of each command on it: first nothing is there, then jobs wait, run and fail.

use std::process::{Command, Stdio};
use std::time::Duration;

use tenure_testkit::tenure::{Process, Server, until};

use super::{said, tenure};

/// How long something may take to be there.
const SOON: Duration = Duration::from_secs(60);

struct Scene {
    width: usize,
    url: String,
    folder: tempfile::TempDir,
    _server: Server,
}

impl Scene {
    fn start(width: usize) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("file:{}", folder.path().join("store").display());
        let mut serve = tenure(width, &["serve", "--listen", "127.0.0.1:0", "--store", &store]);
        let server = Server::start(&mut serve, SOON);
        Scene { width, url: server.url(), folder, _server: server }
    }
    fn place(&self, command: &mut Command) {
        command.env("TENURE_URL", &self.url).current_dir(self.folder.path());
    }
    /// Starts a command that goes on.
    fn start_command(&self, arguments: &[&str]) -> Process {
        let mut command = tenure(self.width, arguments);
        self.place(&mut command);
        Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()), SOON)
    }
    /// The output of a line; its words are split at spaces, except within quotes.
    fn say(&self, line: &str) -> String {
        let words = words(line);
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        said(self.width, &format!("tenure {line}"), &arguments, |command| self.place(command))
    }
    fn says(&self, lines: &[&str]) -> String {
        lines.iter().map(|line| self.say(line)).collect::<Vec<_>>().join("\n")
    }
    fn wait_until(&self, is: impl Fn(&Scene) -> bool) {
        until(SOON, "the next scene", || is(self));
    }
    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }
}

fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

/// Each output with the name of its file.
pub fn play(width: usize) -> Vec<(&'static str, String)> {
    let scene = Scene::start(width);
    let mut all = Vec::new();
    all.push((
        "nothing-there",
        scene.says(&[
            "jobs",
            "queue",
            "limit",
            "pool",
            "schedule",
            "flow",
            "leases",
            "workers",
            "stats",
            "status",
            "failures",
            "job none",
            "result none",
            "explain none",
            "limit none",
            "pool none",
            "schedule none",
            "leases none",
            "cancel none",
            "audit",
        ]),
    ));
    scene.file("accounts.csv", "id,tags,slots\nann,cn;new,1\nbob,,2\n");
    scene.file("sources.csv", "id,every,queue,url\nfeed-1,30d,news,http://a/\n");
    all.push(("settings", scene.says(&[
        "queue set mail --needs limit:smtp --max-waiting 10 --timeout 5m",
        "limit set smtp --concurrency 1",
        "queue set mail --needs limit:smtp --max-waiting 10 --timeout 5m",
        "limit set 'site:*' --concurrency 2 --rate 10/1s --gap 500ms",
        "limit set api --rate 10/1s --burst 5",
        "limit set shut --concurrency 0",
        "limit observe smtp 1",
        "limit observe smtp 0",
        "limit pause api --for 1h",
        "limit resume api",
        "pool sync accounts accounts.csv",
        "pool add accounts eve --tag cn",
        "pool cool accounts eve --for 10m",
        "pool ban accounts bob --reason captcha",
        "pool restore accounts bob",
        "pool set accounts --cooldown 5s --max-uses 100",
        "pool remove accounts eve",
        "queue pause bulk",
        "queue resume bulk",
        "queue delete bulk",
        "schedule set news-42 --cron '0 9 * * 1-5' --zone Europe/Berlin --queue news '{\"source\":42}'",
        "schedule sync sources sources.csv",
        "schedule pause news-42",
            "schedule delete news-42",
    ])));
    all.push(("pushes", scene.says(&[
        "push mail '{\"to\":\"ann\"}' --id mail-1 --kind welcome --label customer=7",
        "push mail 2 --id mail-2 --group tenant-7 --priority 5",
        "push crawl '{\"url\":\"http://a/\"}' --id page-1 --need limit:site:a --need pool:accounts#cn",
        "push crawl 1 --id page-2 --need limit:shut",
        "push report 1 --id report-1 --unique daily --delay 1h",
        "push report 1 --unique daily --on-conflict reject",
        "push publish --id last-1 --after page-1 --flow import-7",
        "push mail text",
    ])));
    let needs =
        ["lease", "--need", "limit:site:a", "--need", "pool:accounts#cn", "--", "sleep", "600"];
    let holder = scene.start_command(&needs);
    scene.wait_until(|scene| scene.say("stats").contains("leases        1"));
    // The worker finds no job that can be granted, and the waiting jobs stand in line.
    let worker = scene.start_command(&["work", "crawl", "-c", "1", "--", "true"]);
    scene.wait_until(|scene| scene.say("explain page-1").contains("is blocked"));
    scene.wait_until(|scene| scene.say("explain page-2").contains("is blocked"));
    all.push((
        "looks",
        scene.says(&[
            "jobs",
            "jobs --state ready,blocked --queue mail",
            "job mail-1",
            "job last-1",
            "explain mail-1",
            "explain page-1",
            "explain page-2",
            "explain report-1",
            "explain last-1",
            "parents last-1",
            "children page-1",
            "flow",
            "flow import-7",
            "queue",
            "queue mail",
            "limit",
            "limit site:a",
            "pool",
            "pool accounts",
            "schedule",
            "schedule feed-1",
            "leases",
            "workers",
            "stats",
            "status",
            "lock x --no-wait -- true",
            "lease --need pool:accounts#cn --no-wait -- true",
        ]),
    ));
    scene.say("limit set shut --concurrency 1");
    let fails =
        "work crawl mail --until-empty -c 1 -- sh -c 'echo connection refused >&2; exit 65'";
    // They give back what they hold.
    for process in [holder, worker] {
        process.stop();
    }
    scene.say(fails);
    all.push((
        "ends",
        scene.says(&[
            "result mail-1",
            "job mail-1",
            "failures",
            "status",
            "retry mail-2",
            "cancel mail-2 report-1",
            "retry --state failed",
            "cancel --queue mail",
            "delete --state cancelled",
            "run-now report-1",
            "reschedule page-1 --delay 1h",
            "explain page-1",
            "audit",
            "version",
            "error queue_full",
            "error queue_ful",
        ]),
    ));
    all.push((
        "errors",
        scene.says(&[
            "pusch",
            "metrics",
            "push",
            "push mail 1 --delay 5",
            "push a/b 1",
            "push mail 1 --nope",
            "jobs --state done",
            "limit set",
            "lock x echo hi",
            "work mail ./send-mail",
            "work mail",
            "schedule preview",
            "reschedule x",
            "--url ftp://host stats",
            "--accept-loss version",
            "doctor memory:",
            "help nope",
        ]),
    ));
    all
}
