//! `tenure trail`: who changed what, as the trail of a server says; and `tenure trail verify`, which reads its files.

use std::path::Path;

use serde_json::Value;
use tenure::remote::Callee;
use tenure::url::StoreUrl;
use tenure_core::count::{counted, grouped, of};
use tenure_core::decode::Queried;
use tenure_core::percent::encoded;
use tenure_core::requests::Listed;
use tenure_core::trail::{ReadTrail, TrailLine};
use tenure_server::{VerifiedTrail, verify_trail};
use tokio::task::spawn_blocking;

use crate::args::trail::{TrailAction, TrailArgs, TrailVerifyArgs};
use crate::cmd::doctor::server;
use crate::cmd::next_page;
use crate::exit::{Failure, NO, UNAVAILABLE};
use crate::output::clock::{now, second};
use crate::output::table::{Table, or_dash};
use crate::output::{Output, hint};
use crate::store;

/// The longest page: 1,000 lines of some 300 bytes, and long ones among them.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// Runs the action.
pub async fn run(out: Output, args: TrailArgs, url: &str) -> Result<(), Failure> {
    match args.action {
        Some(TrailAction::Verify(args)) => verify(out, args).await,
        None => show(out, args, url).await,
    }
}

async fn show(out: Output, args: TrailArgs, url: &str) -> Result<(), Failure> {
    let TrailArgs { since, caller, op, target, page, namespace, .. } = args;
    let since = since.map(|since| since.moment(now()));
    let asked = ReadTrail { since, caller, op, target, namespace, page: page.page() };
    let pairs = asked.pairs().into_iter();
    let query: Vec<String> =
        pairs.map(|(name, value)| format!("{name}={}", encoded(&value))).collect();
    let url = store::address(url)?;
    let callee = Callee::of(&url).ok_or_else(|| {
        Failure::usage(format!("{url} is opened by this command itself, and only servers write a trail"))
            .hint("name a server (tenure --url http://HOST:7171 trail), or check files: tenure trail verify DIR")
    })?;
    let answer =
        server::first_good(&callee, &url, "/v1/trail", &query.join("&"), PAGE_BYTES_MAX).await?;
    if out.json {
        // Exactly the answer of the call, with fields that this release does not know.
        let answer: Value = serde_json::from_slice(&answer).map_err(|_| no_server(&url))?;
        return out.document(&answer);
    }
    let read: Listed<TrailLine> = serde_json::from_slice(&answer).map_err(|_| no_server(&url))?;
    next_page::answer(out, &read, people)
}

fn no_server(url: &StoreUrl) -> Failure {
    Failure::new(UNAVAILABLE, format!("{url} is no server of Tenure"))
}

fn people(lines: &[TrailLine]) -> String {
    let mut table =
        Table::new(&["AT", "CALLER", "FROM", "OPERATION", "NAMESPACE", "WHAT", "RESULT"]);
    for line in lines {
        table.row([
            second(line.at),
            or_dash(line.caller.clone()),
            or_dash(line.peer.clone()),
            line.op.clone(),
            or_dash(line.namespace.clone()),
            what(line),
            result(line),
        ]);
    }
    table.render("no line matches")
}

/// The targets, and what changed about them.
fn what(line: &TrailLine) -> String {
    let mut words = line.targets.clone();
    if let Some(count) = line.targets_count {
        words.push(format!("of {}", grouped(count)));
    }
    words.extend(line.changed.iter().map(|(name, change)| changed(name, change)));
    words.extend(line.detail.clone());
    if words.is_empty() { "-".to_owned() } else { words.join(" ") }
}

/// `concurrency=5->8`.
fn changed(name: &str, change: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let [old, new] = ["old", "new"].map(|side| change.get(side).map(text));
    match (old, new) {
        (Some(old), Some(new)) => format!("{name}={old}->{new}"),
        (None, Some(new)) => format!("{name}={new}"),
        (Some(old), None) => format!("{name}={old}->"),
        (None, None) => name.to_owned(),
    }
}

fn result(line: &TrailLine) -> String {
    let count = line.count.map(|count| format!("{} times", grouped(count)));
    let status = line.status.filter(|status| *status != 200).map(|status| status.to_string());
    let done = line.status.filter(|status| *status == 200).map(|_| "done".to_owned());
    let words: Vec<String> =
        [status, line.code.clone(), done, count].into_iter().flatten().collect();
    if words.is_empty() { "-".to_owned() } else { words.join(" ") }
}

async fn verify(out: Output, args: TrailVerifyArgs) -> Result<(), Failure> {
    let TrailVerifyArgs { folder, anchor } = args;
    let shown = folder.display().to_string();
    let reads = spawn_blocking(move || verify_trail(&folder, anchor.as_deref()));
    let read = reads.await.map_err(|why| Failure::bug(why.to_string()))?;
    let read =
        read.map_err(|why| Failure::file(format!("cannot read the trail in '{shown}'"), &why))?;
    let verified = match read {
        Ok(verified) => verified,
        Err(broken) => {
            if out.json {
                out.document(&broken)?;
            }
            let file = Path::new(&shown).join(&broken.file);
            let place = format!("'{}', line {}", file.display(), broken.line);
            return Err(Failure::new(NO, format!("{place}: {}", broken.why)).hint(
                "the lines before it are as they were written; compare the files with a copy from elsewhere",
            ));
        }
    };
    out.answer(&verified, in_words)?;
    if verified.incomplete_bytes > 0 && !out.json {
        hint(
            "the last line is incomplete: a server is writing it, or its end cut it short; the next start removes it",
        );
    }
    if verified.has_anchor == Some(false) {
        return Err(Failure::new(
            NO,
            "no line has the hash of --anchor: lines are missing at the end",
        )
        .hint("or the line was in a file that was deleted for its age or size"));
    }
    Ok(())
}

fn in_words(verified: &VerifiedTrail) -> String {
    let VerifiedTrail { files, lines, first_seq, last_seq, last_hash, .. } = verified;
    let (Some(first), Some(last), Some(hash)) = (first_seq, last_seq, last_hash) else {
        return "there is no line\n".to_owned();
    };
    format!(
        "{} {} in {}: none was changed, cut or moved\nlines {first} to {last}, the last with the hash {hash}\n",
        grouped(*lines),
        of(*lines, "line", "lines"),
        counted(*files, "file", "files")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_says_what_was_changed_and_how_it_ended() {
        let mut line = TrailLine::of("patch_limit").about(["limit:site".to_owned()]);
        line.status = Some(200);
        line.changed.insert("concurrency".to_owned(), json!({"old": 5, "new": 8}));
        line.changed.insert("gap".to_owned(), json!({"new": "1s"}));
        assert_eq!(what(&line), "limit:site concurrency=5->8 gap=1s");
        assert_eq!(result(&line), "done");
        let refused = TrailLine {
            status: Some(403),
            code: Some("forbidden".to_owned()),
            count: Some(3),
            ..TrailLine::of("push")
        };
        assert_eq!(
            (what(&refused).as_str(), result(&refused).as_str()),
            ("-", "403 forbidden 3 times")
        );
    }
}
