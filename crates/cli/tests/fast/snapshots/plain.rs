//! The output of a run, without the parts that differ in each run.

pub fn normalised(text: &str) -> String {
    text.lines().map(|line| line_of(line) + "\n").collect()
}

fn line_of(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut plain: Vec<String> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let before = words[..at].iter().rev().find(|word| !word.is_empty()).copied();
        let after = words[at + 1..].iter().find(|word| !word.is_empty()).copied();
        let said = plain_word(word, before, after);
        plain.push(said);
    }
    let line = plain.join(" ");
    let text = line.trim_start();
    let mut squeezed = text.to_owned();
    while squeezed.contains("   ") {
        squeezed = squeezed.replace("   ", "  ");
    }
    format!("{}{squeezed}", &line[..line.len() - text.len()])
}

fn plain_word(word: &str, before: Option<&str>, after: Option<&str>) -> String {
    let core = word.trim_matches(|c: char| "(),;:'\"`".contains(c));
    let plain = match core {
        core if is_span(core)
            && (before == Some("in") || after.is_some_and(|w| w.starts_with("ago"))) =>
        {
            "TIME"
        }
        core if is_span(core) && matches!(before, Some("since" | "for")) => "TIME",
        core if is_date(core) => "DATE",
        core if is_clock(core) => "CLOCK",
        core if core.starts_with('+') && core.contains(':') => "OFFSET",
        core if is_made(core) => "MADE",
        core if is_process(core) => "HOST:PID",
        core if core.starts_with("http://127.0.0.1:") => "http://SERVER",
        core if core.starts_with("127.0.0.1:") => "SERVER",
        core if core.contains("/tmp") || core.starts_with("file:/") => "FOLDER",
        core if matches!(after, Some("KiB" | "MiB" | "GiB" | "ms,")) && is_number(core) => "N",
        core if matches!(after, Some("KiB," | "MiB," | "GiB,")) && is_number(core) => "N",
        // A store may grow past a unit in one run and not in another.
        "KiB" | "MiB" | "GiB" => "BYTES",
        core if matches!(after, Some("things" | "asked")) && is_number(core) => "N",
        _ => return word.to_owned(),
    };
    word.replacen(core, plain, 1)
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// A span such as `3m12s`.
fn is_span(word: &str) -> bool {
    word.ends_with(['s', 'm', 'h', 'd'])
        && word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || "smhd".contains(c))
}

/// `2026-12-01`, and what may follow without a space.
fn is_date(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 10
        && word.starts_with("20")
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[..4].iter().all(u8::is_ascii_digit)
}

/// A time such as `09:55:00`.
fn is_clock(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 8 && bytes[2] == b':' && bytes[5] == b':' && bytes[0].is_ascii_digit()
}

/// `job_01h…` and the like, cut or whole; a lease's id; an event's.
fn is_made(word: &str) -> bool {
    let rest = ["job_", "worker_", "req_"].iter().find_map(|begin| word.strip_prefix(begin));
    // The code of an error begins like a job's id.
    let made = rest.is_some_and(|rest| rest.contains(|c: char| c.is_ascii_digit()));
    let parts: Vec<&str> = word.split('-').collect();
    let is_hex = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_hexdigit());
    // A worker's: host, pid and random digits.
    let worker = word.rsplit_once(':').is_some_and(|(rest, _)| is_process(rest));
    made || worker || (parts.len() >= 2 && parts[0].len() >= 12 && parts.iter().all(is_hex))
}

/// `host:pid` on this machine.
fn is_process(word: &str) -> bool {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let pid = word.strip_prefix(host.trim()).and_then(|rest| rest.strip_prefix(':'));
    pid.is_some_and(|pid| !pid.is_empty() && pid.chars().all(|c| c.is_ascii_digit()))
}

#[test]
fn what_is_another_in_each_run_is_a_word() {
    for (line, plain) in [
        ("a   3s ago   b", "a  TIME ago  b"),
        ("expires in 28s", "expires in TIME"),
        ("takes 28s", "takes 28s"),
        ("run at  2026-11-25 08:00:00", "run at  DATE CLOCK"),
        ("(lease 661159d8f514e-0)", "(lease MADE)"),
        ("no   change", "no  change"),
        ("  mail-1   x", "  mail-1  x"),
    ] {
        assert_eq!(normalised(line), format!("{plain}\n"));
    }
}
