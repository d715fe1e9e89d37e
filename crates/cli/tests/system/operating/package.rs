//! The Debian package, built from this binary and installed below a folder; and the unit in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_testkit::tenure::done;

use crate::operating::tenure;

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").canonicalize().unwrap()
}

/// `false`, and a line that says so, where this machine has no such program.
fn is_here(program: &str) -> bool {
    let here = Command::new(program).arg("--version").output().is_ok();
    if !here {
        eprintln!("left out: there is no {program} here");
    }
    here
}

fn built(into: &Path) -> PathBuf {
    let mut build = Command::new(packaging().join("deb/build"));
    build.arg(env!("CARGO_BIN_EXE_tenure")).arg(into).env("TENURE_DEB_COMPRESSION", "none");
    PathBuf::from(done(&mut build).trim())
}

/// Installs below a folder, scripts too, as an image of a machine is made.
fn install(package: &Path, root: &Path) {
    for name in ["var/lib/dpkg/updates", "var/lib/dpkg/info"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let status = root.join("var/lib/dpkg/status");
    if !status.exists() {
        fs::write(status, "").unwrap();
    }
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.display())).arg("--log=/dev/null");
    let forced = ["script-chrootless", "not-root", "depends", "bad-path"];
    dpkg.arg(format!("--force-{}", forced.join(",")));
    done(dpkg.arg("--install").arg(package));
}

#[test]
fn the_debian_package_installs_a_server_with_a_token_of_its_own() {
    if !is_here("dpkg-deb") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("root");
    let package = built(home.path());
    let field = |name: &str| done(Command::new("dpkg-deb").arg("--field").arg(&package).arg(name));
    assert_eq!(field("Version").trim(), concat!(env!("CARGO_PKG_VERSION"), "-1"));
    assert!(field("Depends").starts_with("libc6 (>= 2."), "{}", field("Depends"));

    install(&package, &root);
    for name in [
        "lib/systemd/system/tenure.service",
        "usr/share/man/man1/tenure.1.gz",
        "usr/share/man/man1/tenure-serve.1.gz",
        "usr/share/bash-completion/completions/tenure",
        "usr/share/zsh/vendor-completions/_tenure",
        "usr/share/fish/vendor_completions.d/tenure.fish",
        "usr/share/doc/tenure/copyright",
    ] {
        assert!(root.join(name).is_file(), "{name}");
    }
    let version = done(Command::new(root.join("usr/bin/tenure")).arg("version"));
    assert!(version.starts_with("tenure "), "{version}");
    let settings = root.join("etc/tenure/tenure.toml");
    let arguments = ["serve", "--config", settings.to_str().unwrap(), "--print-config"];
    let output = done(&mut tenure(home.path(), &arguments));
    assert!(output.contains("store = \"file:/var/lib/tenure\"  # "), "{output}");

    let token = root.join("etc/tenure/token");
    let first = fs::read_to_string(&token).unwrap();
    assert!(
        first.len() >= 32 && first.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    );
    assert_eq!(fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    // An upgrade keeps the file of an administrator.
    fs::write(&settings, "[serve]\npatience = '3s'\n").unwrap();
    install(&package, &root);
    assert_eq!(fs::read_to_string(&token).unwrap(), first);
    assert!(fs::read_to_string(&settings).unwrap().contains("patience"));
}

/// Seconds of `25s` and `10min`.
fn seconds(text: &str) -> u64 {
    match text.strip_suffix("min") {
        Some(minutes) => 60 * minutes.parse::<u64>().unwrap(),
        None => text.strip_suffix('s').unwrap().parse().unwrap(),
    }
}

#[test]
fn each_package_leaves_a_server_time_to_drain_and_close() {
    let home = tempfile::tempdir().unwrap();
    let output = done(&mut tenure(home.path(), &["serve", "--print-config"]));
    let drain = output.split("drain_timeout = \"").nth(1).unwrap().split('"').next().unwrap();
    let least = seconds(drain) + 10;
    for (file, key) in [
        ("systemd/tenure.service", "\nTimeoutStopSec="),
        ("systemd/tenure-worker@.service", "\nTimeoutStopSec="),
        ("docker/compose.yaml", "stop_grace_period: "),
        ("docker/compose.worker.yaml", "stop_grace_period: "),
        ("docker/compose.redis.yaml", "stop_grace_period: "),
        ("kubernetes/folder.yaml", "terminationGracePeriodSeconds: "),
        ("kubernetes/redis.yaml", "terminationGracePeriodSeconds: "),
        ("kubernetes/worker.yaml", "terminationGracePeriodSeconds: "),
        ("helm/tenure/values.yaml", "\nterminationGracePeriodSeconds: "),
    ] {
        let text = fs::read_to_string(packaging().join(file)).unwrap();
        let given = text.split(key).nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let given: u64 = given.trim_end_matches('s').parse().unwrap_or_default();
        assert!(given >= least, "{file} leaves {given} s, and it takes {least}");
    }
}

#[test]
fn systemd_takes_the_unit_for_a_safe_one() {
    if !is_here("systemd-analyze") {
        return;
    }
    let unit = packaging().join("systemd/tenure.service");
    let mut analyze = Command::new("systemd-analyze");
    // Of 10, in tenths; more than this fails.
    analyze.args(["security", "--offline=true", "--threshold=15"]).arg(unit);
    done(&mut analyze);
}

#[test]
fn commands_in_a_pod_find_the_token_that_its_server_reads() {
    let read = |file: &str| fs::read_to_string(packaging().join(file)).unwrap();
    let profiles = read("docker/client.toml");
    for file in
        ["kubernetes/folder.yaml", "kubernetes/redis.yaml", "helm/tenure/templates/servers.yaml"]
    {
        let text = read(file);
        let value = |name: &str| {
            let after = text.split(&format!("- name: {name}\n")).nth(1).unwrap_or_default();
            after.trim_start().strip_prefix("value: ").and_then(|rest| rest.lines().next())
        };
        let named = value("TENURE_PROFILE").unwrap();
        let profile = profiles.split(&format!("[profiles.{named}]\n")).nth(1).unwrap();
        let profile = profile.split("\n[").next().unwrap();
        let token_file =
            profile.split("token_file = \"").nth(1).and_then(|rest| rest.split('"').next());
        assert_eq!(token_file, value("TENURE_TOKEN_FILE"), "{file}");
        // A file that is mounted by itself never changes.
        let (folder, name) = token_file.and_then(|path| path.rsplit_once('/')).unwrap();
        assert!(text.contains(&format!("mountPath: {folder}\n")), "{file}");
        assert!(text.contains(&format!("path: {name}\n")) && !text.contains("subPath"), "{file}");
    }
}
