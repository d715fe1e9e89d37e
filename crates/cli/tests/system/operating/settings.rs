//! Settings of `serve` and `work`: which layer counts, what is refused, and what is shown.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::operating::{start, tenure, told};

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_flag_goes_before_a_variable_and_a_variable_before_the_file() {
    let home = tempfile::tempdir().unwrap();
    let file = written(
        home.path(),
        "tenure.toml",
        "[serve]\nstore = 'memory:'\ndrain_timeout = '1s'\npatience = '1s'\nretain_bytes = 4096\n",
    );
    let arguments = ["serve", "--config", &file, "--drain-timeout", "3s", "--print-config"];
    let mut command = tenure(home.path(), &arguments);
    command.env("TENURE_DRAIN_TIMEOUT", "2s").env("TENURE_PATIENCE", "2s").env("TENURE_LISTEN", "");
    let (code, out, err) = told(&mut command);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for line in [
        "[serve]",
        "listen = \"127.0.0.1:7171\"  # default",
        &format!("store = \"memory:\"  # {file}:2"),
        "drain_timeout = \"3s\"  # command line",
        "patience = \"2s\"  # TENURE_PATIENCE",
        &format!("retain_bytes = \"4096\"  # {file}:5"),
        "# max_bytes is not set",
        "# there is no token",
    ] {
        assert!(out.lines().any(|found| found == line), "{line}: {out}");
    }
    // It prints a file with the same meaning.
    let again = written(home.path(), "again.toml", &out);
    let (code, same, err) =
        told(&mut tenure(home.path(), &["serve", "--config", &again, "--print-config"]));
    assert_eq!((code, err.as_str()), (0, ""));
    let values = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split("  # ").next().unwrap().to_owned()).collect()
    };
    assert_eq!(values(&same), values(&out));
}

#[test]
fn a_command_in_a_file_that_everybody_may_write_is_not_run() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join(".config/tenure")).unwrap();
    let command = "token_command = 'touch ran; echo token-of-32-characters-0123456789'\n";
    let of_server = written(home.path(), "tenure.toml", &format!("[serve]\n{command}"));
    let profiles = written(
        home.path(),
        ".config/tenure/config.toml",
        &format!("[profiles.p]\nurl = 'http://127.0.0.1:1'\n{command}"),
    );
    let serves = ["serve", "--config", &of_server, "--print-config"];
    let calls = ["--profile", "p", "status"];
    for (mode, may_be_run) in [(0o600, true), (0o664, true), (0o666, false), (0o777, false)] {
        for (file, arguments) in [(&of_server, &serves[..]), (&profiles, &calls[..])] {
            fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
            let mut tenure = tenure(home.path(), arguments);
            let (code, _, err) = told(tenure.current_dir(home.path()));
            let is_refused = err.contains("other users of this machine can write");
            assert_eq!(is_refused, !may_be_run, "{mode:o} {arguments:?} {code} {err}");
            assert_eq!(code == 2, !may_be_run, "{mode:o} {arguments:?} {code} {err}");
        }
        let ran = fs::remove_file(home.path().join("ran")).is_ok();
        assert_eq!(ran, may_be_run, "{mode:o}");
    }
}

#[test]
fn a_server_starts_as_its_file_says() {
    let home = tempfile::tempdir().unwrap();
    written(home.path(), "token", "right-token\n");
    fs::set_permissions(home.path().join("token"), Permissions::from_mode(0o644)).unwrap();
    let file = written(
        home.path(),
        "tenure.toml",
        "[serve]\nlisten = '127.0.0.1:0'\nstore = 'memory:'\ntoken_file = 'token'\nlog_format = 'text'\n",
    );
    let mut command = tenure(home.path(), &["serve"]);
    command.env("TENURE_CONFIG", &file);
    let server = start(command);
    let start = server.line("tenure serves");
    assert!(
        start.contains(&format!("token=\"from {file}:4\""))
            && start.contains(&format!("config={file:?}")),
        "{start}"
    );
    assert!(server.line("can be read by other users").contains("chmod 600"));
    for (token, status) in [("right-token", 200), ("wrong", 401)] {
        let answer =
            server.exchange(&format!("GET /v1/stats WITH Authorization: Bearer {token}"), "");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    assert!(!server.said().contains("right-token"));
}

#[test]
fn what_is_wrong_is_told_with_the_place_that_says_it() {
    let home = tempfile::tempdir().unwrap();
    for (text, variable, said) in [
        (
            "[serve]\ndrain_timout = '1s'\n",
            "",
            "t.toml:2: [serve] has no \"drain_timout\"\nhint: did you mean \"drain_timeout\"?\n",
        ),
        (
            "listen = '127.0.0.1:1'\n",
            "",
            "t.toml:1: \"listen\" must be in a table\nhint: put it below a line [serve]\n",
        ),
        ("[serv]\n", "", "t.toml:1: the file has no \"serv\"\nhint: did you mean \"serve\"?\n"),
        ("[serve]\n\ndrain_timeout = 'soon'\n", "", "t.toml:3: drain_timeout: write a duration as"),
        (
            "[serve]\ndurability = 'never'\n",
            "",
            "t.toml:2: durability: it is one of always, everysec\n",
        ),
        ("[serve]\nlisten = ['a', 'b']\n", "", "t.toml:2: listen has one value, not a list\n"),
        ("[serve]\nstore = \n", "", "t.toml:2: "),
        (
            "[serve]\ntoken = 'geheim'\n",
            "",
            "t.toml:2: a token is not kept in this file\nhint: name a file",
        ),
        ("[serve]\ntoken_file = 'a'\ntoken_command = 'b'\n", "", "two tokens are named: by "),
        ("", "geheim", "TENURE_PATIENCE: write a duration as"),
    ] {
        let file = written(home.path(), "t.toml", text);
        let mut command = tenure(home.path(), &["serve", "--print-config", "--config", &file]);
        command.env("TENURE_PATIENCE", variable);
        let (code, out, err) = told(&mut command);
        let err = err.replace(&format!("{}/", home.path().display()), "");
        assert_eq!((code, out.as_str()), (2, ""), "{text}: {err}");
        assert!(err.contains(said) && !err.contains("geheim"), "{text}: {err}");
    }
    let (code, _, err) = told(&mut tenure(home.path(), &["serve", "--config", "/nowhere/t.toml"]));
    assert_eq!((code, err.as_str()), (2, "tenure: --config: there is no file '/nowhere/t.toml'\n"));
}

#[test]
fn print_config_hides_passwords_and_ignores_the_current_folder() {
    let home = tempfile::tempdir().unwrap();
    let file =
        written(home.path(), "tenure.toml", "[serve]\nstore = 'redis://:geheim@127.0.0.1:6379'\n");
    let (code, out, err) =
        told(&mut tenure(home.path(), &["serve", "--config", &file, "--print-config"]));
    assert_eq!(code, 0, "{err}");
    let line = out.lines().find(|line| line.contains("store =")).unwrap();
    assert!(line.starts_with("# store = \"redis://•••@127.0.0.1:6379\"  # "), "{line}");
    assert!(!out.contains("geheim"), "{out}");
    let mut command = tenure(home.path(), &["serve", "--print-config"]);
    let (_, out, _) = told(command.current_dir(home.path()));
    assert!(out.contains("store = \"file:./tenure-data\"  # default"), "{out}");
}

#[test]
fn a_worker_is_set_up_by_variables_and_by_its_file() {
    let home = tempfile::tempdir().unwrap();
    let store = format!("file:{}/store", home.path().display());
    let file =
        written(home.path(), "t.toml", "[work]\nuntil_empty = true\nhttp = 'http://127.0.0.1:1'\n");
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = tenure(home.path(), arguments);
        told(command.env("TENURE_URL", &store).envs(variables.iter().copied()))
    };
    assert_eq!(run(&["push", "q", "--id", "a"], &[]).0, 0);
    // The command stands on the command line, so the service of the file does not count.
    let (code, _, err) = run(&["work", "q", "--config", &file, "--", "true"], &[]);
    assert_eq!(code, 0, "{err}");
    let (_, out, _) = run(&["job", "a", "--json"], &[]);
    assert!(out.contains("\"succeeded\""), "{out}");
    let ends = [("TENURE_CONFIG", file.as_str()), ("TENURE_UNTIL_EMPTY", "maybe")];
    let (code, _, err) = run(&["work", "q", "--", "true"], &ends);
    assert_eq!((code, err.as_str()), (2, "tenure: TENURE_UNTIL_EMPTY is true or false\n"));
    // One of the variables names the way, and then the command line need not.
    let service = [("TENURE_HTTP", "http://127.0.0.1:1"), ("TENURE_UNTIL_EMPTY", "true")];
    assert_eq!(run(&["work", "q"], &service).0, 0);
    let (code, _, err) = run(&["work", "q"], &[]);
    assert_eq!(code, 2, "{err}");
}
