//! The completions of bash, with names from a server that runs, that is away and that never answers.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tenure_testkit::tenure::told;

use crate::with_a_store::folder::Folder;
use crate::with_a_store::server::Server;

/// The offers of bash at the end of a line, and the screen beside them.
fn offered(folder: &Folder, url: &str, line: &str) -> (Vec<String>, String) {
    // As bash calls a completion: a word ends at a colon and at an equals sign, too.
    let script = r#"
        source <(tenure completions bash)
        COMP_LINE="$1" COMP_POINT=${#1}
        read -ra COMP_WORDS <<<"${1//[:=]/ : }"
        [[ $1 == *[[:space:]:=] ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _tenure_names tenure "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let bin = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash", line]).env_clear().env("PATH", path);
    bash.env("HOME", folder.0.path()).env("TENURE_URL", url);
    let (code, out, err) = told(&mut bash);
    assert_eq!(code, 0, "{line}: {err}");
    (out.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(), err)
}

#[test]
fn bash_completes_the_names_of_a_server_and_is_never_in_the_way() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0");
    for arguments in [
        &["push", "mail", "1", "--id", "m1"][..],
        &["push", "crawl", "1", "--id", "c1"],
        &["push", "elsewhere", "1", "--namespace", "team"],
        &["limit", "set", "site:example.com", "--concurrency", "1"],
        &["limit", "set", "lock:deploy", "--concurrency", "1"],
        &["pool", "add", "accounts", "ann"],
        &["schedule", "set", "nightly", "--cron", "0 3 * * *", "--queue", "mail"],
    ] {
        server.done(&folder, arguments);
    }
    let url = format!("http://{}", server.at());
    for (line, expected) in [
        ("tenure work ma", &["mail"][..]),
        ("tenure push c", &["crawl"]),
        ("tenure jobs --queue ma", &["mail"]),
        ("tenure jobs --queue=ma", &["mail"]),
        ("tenure --namespace team work e", &["elsewhere"]),
        ("tenure explain ", &["c1", "m1"]),
        ("tenure limit site:ex", &["example.com"]),
        ("tenure push q 1 --need limit:site:", &["example.com"]),
        ("tenure lock de", &["deploy"]),
        ("tenure pool acc", &["accounts"]),
        ("tenure schedule pause ", &["nightly"]),
        ("tenure work mail -- m", &[]),
    ] {
        // Of options, clap knows the names: they come at once.
        let named = || {
            let (mut names, err) = offered(&folder, &url, line);
            names.retain(|name| !name.starts_with('-'));
            (names, err)
        };
        let (mut names, mut err) = named();
        // It asks for 300 ms and then offers none: on a machine that is busy, maybe not at once.
        let deadline = Instant::now() + Duration::from_secs(60);
        while names.is_empty() && !expected.is_empty() && Instant::now() < deadline {
            (names, err) = named();
        }
        let mut names: Vec<_> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!((names.as_slice(), err.as_str()), (expected, ""), "{line}");
    }

    // Only the names that clap knows, and soon: a server that is away, one that never answers, a folder.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let deaf = format!("http://{}", deaf.local_addr().unwrap());
    let gone = format!("http://{}", server.kill());
    let store = format!("file:{}", folder.0.path().join("none").display());
    for url in [gone.as_str(), &deaf, &store, "no address at all"] {
        let begun = Instant::now();
        let (names, err) = offered(&folder, url, "tenure queue pa");
        assert_eq!((names, err.as_str()), (vec!["pause".to_owned()], ""), "{url}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{url}");
    }
    assert!(!folder.0.path().join("none").exists(), "a folder is not opened");
}
