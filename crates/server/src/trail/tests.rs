//! Files of a trail: the chain, its breaks, days, sizes, and lines that cannot be written.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tenure_core::access::{GivenGrants, Grants};
use tenure_core::bounds::TRAIL_BYTES_DEFAULT;
use tenure_core::decode;
use tenure_core::refusal::Code;
use tenure_core::requests::Listed;
use tenure_core::time::{Moment, Span};
use tenure_core::trail::{ReadTrail, TrailLine};
use tenure_testkit::TempDir;

use super::files::TrailFiles;
use super::*;

const DAY: Span = Span::from_s(24 * 60 * 60);

fn moment(text: &str) -> Moment {
    text.parse().unwrap()
}

fn files(folder: &Path) -> TrailFiles {
    TrailFiles::open(folder, TRAIL_BYTES_DEFAULT).unwrap().0
}

fn append(files: &mut TrailFiles, at: Moment, op: &str) {
    files.append(at, &mut TrailLine::of(op)).unwrap();
}

fn verified(folder: &Path) -> VerifiedTrail {
    verify_trail(folder, None).unwrap().unwrap()
}

fn broken(folder: &Path) -> (String, u64) {
    let found = verify_trail(folder, None).unwrap().unwrap_err();
    (found.file, found.line)
}

/// Three lines on one day and two on the next.
fn two_days(folder: &Path) -> [std::path::PathBuf; 2] {
    let mut files = files(folder);
    let first = moment("2026-11-27T23:59:58Z");
    for second in 0..5 {
        let at = first.plus(Span::from_s(if second < 3 { 0 } else { second }));
        append(&mut files, at, &format!("op_{second}"));
    }
    ["2026-11-27.ndjson", "2026-11-28.ndjson"].map(|name| folder.join(name))
}

#[test]
fn a_day_has_a_file_and_all_files_are_one_chain() {
    let folder = TempDir::new();
    let [first, second] = two_days(folder.path());
    assert_eq!(fs::read_to_string(&first).unwrap().lines().count(), 3);
    assert_eq!(fs::read_to_string(&second).unwrap().lines().count(), 2);
    assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
    let found = verified(folder.path());
    assert_eq!((found.files, found.lines), (2, 5));
    assert_eq!((found.first_seq, found.last_seq), (Some(0), Some(4)));
    // After a restart, and after a step back of the clock, the chain goes on at its end.
    append(&mut files(folder.path()), moment("2026-11-20T00:00:00Z"), "later");
    assert_eq!(fs::read_to_string(&second).unwrap().lines().count(), 3);
    let found = verified(folder.path());
    assert_eq!((found.files, found.lines, found.last_seq), (2, 6, Some(5)));
}

#[test]
fn the_folder_is_for_one_writer() {
    let folder = TempDir::new();
    let _files = files(folder.path());
    let other = TrailFiles::open(folder.path(), TRAIL_BYTES_DEFAULT);
    assert!(other.unwrap_err().to_string().contains("another process"));
}

#[test]
fn each_kind_of_tampering_is_found_at_its_line() {
    /// Changes the lines of a file.
    type Tamper = fn(&mut Vec<String>);
    let cases: [(&str, usize, Tamper, (usize, u64)); 8] = [
        ("the first line of all cut out", 0, |lines| drop(lines.remove(0)), (0, 1)),
        ("a changed byte", 0, |lines| lines[1] = lines[1].replace("op_1", "op_x"), (0, 3)),
        (
            "a changed byte in the last line of a day",
            0,
            |lines| lines[2] = lines[2].replace("op_2", "op_x"),
            (1, 1),
        ),
        ("a line cut out", 0, |lines| drop(lines.remove(1)), (0, 2)),
        ("the last line of a day cut out", 0, |lines| drop(lines.pop()), (1, 1)),
        ("two lines swapped", 0, |lines| lines.swap(0, 1), (0, 1)),
        ("a line twice", 1, |lines| lines.insert(1, lines[0].clone()), (1, 2)),
        ("a line that is none", 1, |lines| lines[0] = "{}".to_owned(), (1, 1)),
    ];
    for (what, file, tamper, (at, line)) in cases {
        let folder = TempDir::new();
        let paths = two_days(folder.path());
        let text = fs::read_to_string(&paths[file]).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        tamper(&mut lines);
        fs::write(&paths[file], lines.join("\n") + "\n").unwrap();
        let name = paths[at].file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(broken(folder.path()), (name, line), "{what}");
    }
}

#[test]
fn a_missing_file_is_found_unless_it_is_the_oldest() {
    let folder = TempDir::new();
    let [first, second] = two_days(folder.path());
    append(&mut files(folder.path()), moment("2026-11-29T00:00:00Z"), "later");
    let kept = fs::read(&second).unwrap();
    fs::remove_file(&second).unwrap();
    assert_eq!(broken(folder.path()), ("2026-11-29.ndjson".to_owned(), 1));
    fs::write(&second, kept).unwrap();
    fs::remove_file(first).unwrap();
    assert_eq!(verified(folder.path()).first_seq, Some(3), "old files are deleted by the server");
}

#[test]
fn missing_lines_at_the_end_are_found_by_a_hash_from_elsewhere() {
    let folder = TempDir::new();
    let [_, second] = two_days(folder.path());
    let hash = verified(folder.path()).last_hash.unwrap();
    let has = |hash: &str| verify_trail(folder.path(), Some(hash)).unwrap().unwrap().has_anchor;
    assert_eq!(has(&hash), Some(true));
    let text = fs::read_to_string(&second).unwrap();
    fs::write(&second, text.lines().next().unwrap().to_owned() + "\n").unwrap();
    assert_eq!(has(&hash), Some(false));
}

#[test]
fn an_incomplete_line_is_cut_off_at_the_start() {
    for torn in [&b"{\"seq\":5,\"at"[..], b"\0\0\0\0", b"{"] {
        let folder = TempDir::new();
        let [_, second] = two_days(folder.path());
        let mut bytes = fs::read(&second).unwrap();
        let whole = bytes.len();
        bytes.extend_from_slice(torn);
        fs::write(&second, &bytes).unwrap();
        assert_eq!(verified(folder.path()).incomplete_bytes, torn.len() as u64);
        let (mut files, cut) = TrailFiles::open(folder.path(), TRAIL_BYTES_DEFAULT).unwrap();
        let cut = cut.unwrap();
        assert_eq!((cut.file.as_str(), cut.bytes), ("2026-11-28.ndjson", torn.len() as u64));
        assert_eq!(fs::metadata(&second).unwrap().len(), whole as u64);
        append(&mut files, moment("2026-11-28T00:00:09Z"), "next");
        let found = verified(folder.path());
        assert_eq!((found.lines, found.incomplete_bytes), (6, 0));
    }
}

#[test]
fn the_first_line_of_a_day_may_be_the_incomplete_one() {
    let folder = TempDir::new();
    two_days(folder.path());
    fs::write(folder.path().join("2026-11-29.ndjson"), b"{\"seq\":").unwrap();
    let (mut files, cut) = TrailFiles::open(folder.path(), TRAIL_BYTES_DEFAULT).unwrap();
    assert_eq!(cut.unwrap().bytes, 7);
    append(&mut files, moment("2026-11-29T00:00:09Z"), "next");
    assert_eq!((verified(folder.path()).files, verified(folder.path()).lines), (3, 6));
}

#[test]
fn a_cut_line_before_the_newest_file_is_found() {
    let folder = TempDir::new();
    let [first, _] = two_days(folder.path());
    let text = fs::read_to_string(&first).unwrap();
    fs::write(&first, text.trim_end()).unwrap();
    assert_eq!(broken(folder.path()), ("2026-11-27.ndjson".to_owned(), 3));
}

#[test]
fn the_oldest_files_are_deleted_by_age_and_by_size() {
    let folder = TempDir::new();
    let start = moment("2026-01-01T12:00:00Z");
    let mut files = files(folder.path());
    for day in 0..100 {
        append(&mut files, start.plus(Span::from_us(DAY.us() * day)), "op");
    }
    let now = start.plus(Span::from_us(DAY.us() * 99));
    let gone = files.retire(now).unwrap();
    assert_eq!((gone.len(), gone[0].as_str()), (9, "2026-01-01.ndjson"));
    assert_eq!(verified(folder.path()).files, 91);
    assert!(files.retire(now).unwrap().is_empty());

    let folder = TempDir::new();
    let (mut files, _) = TrailFiles::open(folder.path(), 64 * 1024).unwrap();
    for n in 0..1_000 {
        append(&mut files, now, &format!("op_{n}"));
    }
    let before = verified(folder.path());
    assert!(before.files > 8, "a day with many lines has several files: {before:?}");
    assert!(!files.retire(now).unwrap().is_empty());
    let bytes: u64 = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes <= 64 * 1024, "{bytes}");
    assert_eq!(verified(folder.path()).last_seq, Some(999));
    append(&mut files, now, "next");
    assert_eq!(verified(folder.path()).last_seq, Some(1_000));
}

#[test]
fn a_file_that_somebody_removed_or_changed_gets_no_more_lines() {
    let folder = TempDir::new();
    let now = moment("2026-11-28T00:00:09Z");
    let [_, second] = two_days(folder.path());
    let mut files = files(folder.path());
    append(&mut files, now, "before");
    assert_eq!(files.leave_lost_file(), None);
    let mut bytes = fs::read(&second).unwrap();
    bytes.truncate(bytes.len() / 2);
    fs::write(&second, bytes).unwrap();
    assert_eq!(files.leave_lost_file().as_deref(), Some("2026-11-28.ndjson"));
    append(&mut files, now, "after");
    assert!(folder.path().join("2026-11-28.2.ndjson").is_file());
    assert_eq!(broken(folder.path()).0, "2026-11-28.ndjson", "the loss is found");
}

fn options(folder: &Path, is_required: bool) -> TrailOptions {
    TrailOptions {
        place: TrailPlace::Folder(folder.to_owned()),
        is_required,
        most_bytes: TRAIL_BYTES_DEFAULT,
        server: "127.0.0.1:7171".to_owned(),
    }
}

fn everybody() -> Grants {
    Grants::all_of_anyone()
}

fn read(trail: &Trail, query: &[(&str, &str)], grants: &Grants) -> Listed<TrailLine> {
    let asked: ReadTrail = decode::read_trail(query).unwrap();
    trail.read(&asked, grants).unwrap()
}

fn ops(list: &Listed<TrailLine>) -> Vec<&str> {
    list.items.iter().map(|line| line.op.as_str()).collect()
}

#[test]
fn lines_that_could_not_be_written_are_counted_and_changes_wait_for_them() {
    let home = TempDir::new();
    let folder = home.path().join("trail");
    // A file stands where the folder would be.
    fs::write(&folder, "").unwrap();
    for is_required in [true, false] {
        let trail = Trail::open(options(&folder, is_required));
        assert!(!trail.write(TrailLine::of("lost")));
        let refused = trail.permit_change().err().map(|no| no.code);
        assert_eq!(refused, is_required.then_some(Code::TrailUnwritable));
    }
    let trail = Trail::open(options(&folder, true));
    assert!(trail.permit_change().is_err());
    fs::remove_file(&folder).unwrap();
    assert!(trail.permit_change().is_ok(), "it is tried again");
    assert!(trail.write(TrailLine::of("kept")));
    let list = read(&trail, &[], &everybody());
    assert_eq!(ops(&list), ["kept", "trail_missed"]);
    assert_eq!(list.items[1].count, Some(1), "the line of the start");
    assert_eq!(verified(&folder).lines, 2);
}

#[test]
fn pages_go_back_through_the_files() {
    let folder = TempDir::new();
    let trail = Trail::open(options(folder.path(), false));
    for n in 0..2_000 {
        let line =
            TrailLine { caller: Some(format!("c{}", n % 7)), ..TrailLine::of(&format!("op_{n}")) };
        assert!(trail.write(line));
    }
    let (mut seen, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut query = vec![("max", "300"), ("caller", "c3")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let list = read(&trail, &query, &everybody());
        seen.extend(list.items.iter().map(|line| line.seq));
        cursor = list.next;
        if cursor.is_none() {
            break;
        }
    }
    // The first line is that of the start.
    let expected: Vec<u64> = (0..2_000).rev().filter(|n| n % 7 == 3).map(|n| n + 1).collect();
    assert_eq!(seen, expected);
    let asked = decode::read_trail(&[("cursor", "12")]).unwrap();
    let no = trail.read(&asked, &everybody()).unwrap_err();
    assert_eq!((no.code, no.pointer.as_deref()), (Code::InvalidField, Some("/query/cursor")));
    // A place in the middle of a line shows no half line.
    let name = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let name = name.map(|name| name.into_string().unwrap()).find(|name| name != "lock").unwrap();
    let cursor = format!("{name}:100000");
    assert_eq!(read(&trail, &[("cursor", &cursor), ("max", "1")], &everybody()).items.len(), 1);
}

#[test]
fn one_call_looks_through_a_bounded_number_of_lines() {
    let folder = TempDir::new();
    let trail = Trail::open(options(folder.path(), false));
    for _ in 0..10_050 {
        assert!(trail.write(TrailLine::of("op")));
    }
    let list = read(&trail, &[("op", "server_started")], &everybody());
    assert!(list.items.is_empty() && list.partial && list.next.is_some());
    let list =
        read(&trail, &[("op", "server_started"), ("cursor", &list.next.unwrap())], &everybody());
    assert_eq!((ops(&list), list.partial), (vec!["server_started"], false));
    assert_eq!(list.next, None);
}

#[test]
fn a_caller_sees_the_lines_of_its_namespaces_alone() {
    let folder = TempDir::new();
    let trail = Trail::open(options(folder.path(), false));
    for namespace in ["web", "team"] {
        let line = TrailLine { namespace: Some(namespace.to_owned()), ..TrailLine::of(namespace) };
        assert!(trail.write(line));
    }
    let given = GivenGrants {
        name: "a".to_owned(),
        scopes: vec!["admin".to_owned()],
        namespaces: vec!["web*".to_owned()],
        ..GivenGrants::default()
    };
    let list = read(&trail, &[], &Grants::read(&given).unwrap());
    assert_eq!(ops(&list), ["web"]);
    assert_eq!(ops(&read(&trail, &[], &everybody())), ["team", "web", "server_started"]);
    let since = trail_moment_after(&trail);
    assert!(read(&trail, &[("since", &since)], &everybody()).items.is_empty());
}

/// A moment after the last line.
fn trail_moment_after(trail: &Trail) -> String {
    let last = read(trail, &[("max", "1")], &everybody()).items[0].at;
    last.plus(Span::from_s(1)).to_string()
}

#[test]
fn the_last_changes_are_those_of_earlier_processes_too() {
    let folder = TempDir::new();
    let change = |op: &str| TrailLine {
        status: Some(200),
        namespace: Some("default".to_owned()),
        ..TrailLine::of(op).about(["queue:mail".to_owned()])
    };
    let trail = Trail::open(options(folder.path(), false));
    for op in ["pause_queue", "lease", "resume_queue"] {
        assert!(trail.write(change(op)));
    }
    drop(trail);
    let trail = Trail::open(options(folder.path(), false));
    assert!(trail.write(change("patch_queue")));
    trail.0.as_ref().unwrap().look(0);
    let last = |most| {
        let last = trail.last_changes(&Namespace::main(), "queue:mail", most);
        last.iter().map(|line| line.op.clone()).collect::<Vec<_>>()
    };
    assert_eq!(last(5), ["patch_queue", "resume_queue", "pause_queue"]);
    assert_eq!(last(2), ["patch_queue", "resume_queue"]);
    assert!(Trail::default().last_changes(&Namespace::main(), "queue:mail", 5).is_empty());
}

#[test]
fn a_server_without_files_has_nothing_to_read() {
    let refused = |trail: Trail| trail.read(&ReadTrail::default(), &everybody()).unwrap_err().code;
    assert_eq!(refused(Trail::default()), Code::WrongState);
    assert!(!Trail::default().is_readable());
}

#[test]
fn the_end_of_a_server_writes_its_counts() {
    let folder = TempDir::new();
    let trail = Trail::open(options(folder.path(), false));
    for _ in 0..3 {
        trail.count(CountedAs {
            op: "push",
            caller: Some("a".to_owned()),
            namespace: Some("web".to_owned()),
            peer: None,
            refused: None,
        });
    }
    trail.close();
    let list = read(&trail, &[], &everybody());
    assert_eq!(ops(&list), ["server_stopped", "push", "server_started"]);
    assert_eq!(list.items[1].count, Some(3));
    assert_eq!(list.items[1].server, "127.0.0.1:7171");
}
