//! No payload, no data of a resource, no token and no password is in the log of a server, at any level.

use crate::{Server, tenure, told};

/// Stands in everything that must not be seen.
const MARK: &str = "geheim7f3a";

#[test]
fn nothing_secret_is_logged_even_at_trace() {
    for format in ["text", "json"] {
        let home = tempfile::tempdir().unwrap();
        let token = format!("{MARK}-token-{}", "x".repeat(32));
        let store = format!("file:{}/store", home.path().display());
        let mut command = tenure(
            home.path(),
            &[
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--store",
                &store,
                "--log-level",
                "trace",
                "--log-format",
                format,
            ],
        );
        command.env("TENURE_TOKEN", &token);
        let server = Server::start(command);
        let url = format!("http://{}", server.at);
        let run = |arguments: &[&str]| {
            let mut command = tenure(home.path(), arguments);
            command.env("TENURE_URL", &url).env("TENURE_TOKEN", &token);
            let (code, out, err) = told(&mut command);
            assert_eq!(code, 0, "{arguments:?}: {out}{err}");
        };
        let secret = format!("{{\"password\":\"{MARK}\"}}");
        let gauge = format!("http://user:{MARK}@127.0.0.1:1/{MARK}?key={MARK}");
        let result =
            format!("echo {MARK} > $TENURE_RESULT_FILE; echo {MARK} > $TENURE_PROGRESS_FILE");
        let label = format!("kind={MARK}");
        run(&["pool", "add", "accounts", "139", "--data", &secret]);
        run(&[
            "limit",
            "set",
            "site",
            "--concurrency",
            "9",
            "--gauge",
            &gauge,
            "--gauge-count",
            "/n",
            "--gauge-every",
            "1s",
        ]);
        run(&[
            "push",
            "mail",
            &secret,
            "--id",
            "seen",
            "--need",
            "pool:accounts",
            "--label",
            &label,
        ]);
        run(&["work", "mail", "--max-jobs", "1", "--", "sh", "-c", &result]);
        run(&["push", "mail", &secret, "--id", "fails"]);
        let says = format!("echo {MARK} >&2; exit 65");
        run(&["work", "mail", "--max-jobs", "1", "--", "sh", "-c", &says]);
        run(&["push", "gauged", "--need", "limit:site"]);
        // What is wrong is not shown either: a body, a query, a header, a path that is no route.
        let bearer = format!("WITH Authorization: Bearer {token}");
        server.ask(
            &format!("POST /v1/jobs {bearer}"),
            &format!("{{\"queue\":\"mail\",\"{MARK}\":1}}"),
        );
        server.ask(&format!("GET /v1/jobs?label={MARK}:{MARK}&{MARK}=1 {bearer}"), "");
        server.ask(&format!("GET /v1/{MARK} {bearer}"), "");
        server.ask(&format!("GET /v1/stats WITH Authorization: Bearer {MARK}"), "");
        let ask = r#"{"queues":["gauged"],"max":1,"ttl":"30s","worker":"w","request_id":"g"}"#;
        server.ask(&format!("POST /v1/leases {bearer}"), ask);
        server.line("a gauge cannot be read");
        let (code, log) = server.stop();
        assert_eq!(code, 0);
        // The lines are there, and say which job it was.
        assert!(
            log.contains("seen") && log.contains("request") && log.contains("job.succeeded"),
            "{log}"
        );
        let shown: Vec<&str> = log.lines().filter(|line| line.contains(MARK)).collect();
        assert!(shown.is_empty(), "{format}: {shown:#?}");
    }
}
