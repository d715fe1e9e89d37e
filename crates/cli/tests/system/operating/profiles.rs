//! Profiles of clients: which one counts, where its token goes, and what CMD sees of it.

use std::fs;

use tempfile::TempDir;
use tenure_testkit::tenure::fails;

use crate::operating::{Server, serving, start, tenure, told};

const TOKEN: &str = "geheim-token";

/// A server with a token, and a home with a profile for it.
fn set_up(more: &str) -> (TempDir, Server) {
    let home = tempfile::tempdir().unwrap();
    let mut command = serving(home.path(), &["--store", "memory:", "--log-format", "text"]);
    command.env("TENURE_TOKEN", TOKEN);
    let server = start(command);
    fs::create_dir_all(home.path().join(".config/tenure")).unwrap();
    let (at, text) = (&server.at, "token_command = 'echo geheim-token'\nnamespace = 'web'");
    let file = format!(
        "{more}[profiles.staging]\nurl = 'http://{at}'\n{text}\n[profiles.other]\nurl = 'http://127.0.0.1:1'\n"
    );
    fs::write(home.path().join(".config/tenure/config.toml"), file).unwrap();
    (home, server)
}

#[test]
fn flags_and_variables_override_the_settings_of_a_profile() {
    let (home, server) = set_up("");
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        told(tenure(home.path(), arguments).envs(variables.iter().copied()))
    };
    let (code, _, err) = run(&["--profile", "staging", "push", "q", "--id", "a"], &[]);
    assert_eq!(code, 0, "{err}");
    let named = [("TENURE_PROFILE", "staging")];
    assert_eq!(run(&["job", "a"], &named).0, 0);
    assert_eq!(
        run(&["job", "a", "--namespace", "default"], &named).0,
        1,
        "it is in the other namespace"
    );
    let (code, _, err) =
        run(&["job", "a"], &[("TENURE_PROFILE", "staging"), ("TENURE_TOKEN", "wrong")]);
    assert_eq!(code, 77, "the variable goes before the profile: {err}");
    // The same server under another name is not the address of the profile: it does not get the token.
    let url = server.at.replace("127.0.0.1", "localhost");
    let (code, _, err) = run(&["job", "a", "--url", &format!("http://{url}")], &named);
    assert_eq!(code, 77, "{err}");
    let away = [("TENURE_URL", "http://127.0.0.1:1")];
    let (code, _, err) = run(&["--profile", "staging", "job", "a"], &away);
    assert_eq!(code, 69);
    assert!(
        err.starts_with(
            "hint: TENURE_URL is set and goes before the address of the profile \"staging\""
        ),
        "{err}"
    );
}

#[test]
fn a_default_profile_counts_unless_another_is_named() {
    let (home, _server) = set_up("default_profile = 'staging'\n");
    let run = |arguments: &[&str]| told(&mut tenure(home.path(), arguments));
    assert_eq!(run(&["stats"]).0, 0);
    assert_eq!(run(&["--profile", "other", "stats"]).0, 69);
    // An empty name is no profile; then the usual address counts, where no server of this test is.
    let (_, _, err) = run(&["--profile", "", "--url", "http://127.0.0.1:1", "stats"]);
    assert!(!err.contains("staging"), "{err}");
}

#[test]
fn a_wrong_profile_is_told_with_those_that_there_are() {
    let (home, _server) = set_up("");
    let (code, _, err) = told(&mut tenure(home.path(), &["--profile", "stagin", "stats"]));
    let path = home.path().join(".config/tenure/config.toml");
    let said = format!(
        "tenure: there is no profile \"stagin\" in '{}'\nhint: did you mean \"staging\"? it has: other, staging\n",
        path.display()
    );
    assert_eq!((code, err), (2, said));
    fs::write(&path, "[profiles.a]\nurl = 'http://x'\ntoken = 'geheim'\n").unwrap();
    let (code, _, err) = told(&mut tenure(home.path(), &["--profile", "a", "stats"]));
    assert!(code == 2 && err.contains("config.toml:3: a token is not kept in this file"), "{err}");
    assert!(!err.contains("geheim"), "{err}");
    let xdg = home.path().join("elsewhere");
    let mut command = tenure(home.path(), &["--profile", "a", "stats"]);
    fails(2, command.env("XDG_CONFIG_HOME", &xdg), "elsewhere/tenure/config.toml'");
}

#[test]
fn cmd_gets_no_profile_without_pass_credentials() {
    let (home, _server) = set_up("default_profile = 'staging'\n");
    let binary = env!("CARGO_BIN_EXE_tenure");
    // `tenure` in CMD would find the default profile by itself.
    let script = format!(
        "'{binary}' --url http://127.0.0.1:1 version >/dev/null; echo \"[${{TENURE_PROFILE-unset}}]\""
    );
    let run = |more: &[&str]| {
        let arguments =
            [&["--profile", "staging", "lock", "x"], more, &["--", "sh", "-c", &script]].concat();
        told(&mut tenure(home.path(), &arguments))
    };
    assert_eq!(run(&[]), (0, "[]\n".to_owned(), String::new()));
    assert_eq!(run(&["--pass-credentials"]), (0, "[staging]\n".to_owned(), String::new()));
}
