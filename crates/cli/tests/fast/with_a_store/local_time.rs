//! Local times: read and shown by the clock of the machine's zone.

use tenure_testkit::tenure::told;

use crate::with_a_store::folder::Folder;

fn in_zone(folder: &Folder, zone: &str, arguments: &[&str]) -> (i32, String, String) {
    told(folder.command(arguments).env("TZ", zone))
}

#[test]
fn a_local_time_is_read_and_shown_by_the_clock_of_the_machine() {
    let folder = Folder::new();
    let push = ["push", "q", "--id", "a", "--at", "2100-12-01 09:55"];
    let (code, _, err) = in_zone(&folder, "Asia/Shanghai", &push);
    assert_eq!(code, 0, "{err}");
    let want = "tenure: '2100-12-01 09:55' is read as 2100-12-01T09:55:00+08:00 (Asia/Shanghai)\n";
    assert!(err.starts_with(want), "{err}");
    let shown = |zone, more: &[&str]| in_zone(&folder, zone, &[&["job", "a"], more].concat()).1;
    for (zone, more, run_at) in [
        ("Asia/Shanghai", &[][..], "2100-12-01T09:55:00+08:00"),
        ("Europe/Berlin", &[], "2100-12-01T02:55:00+01:00"),
        ("Europe/Berlin", &["--utc"], "2100-12-01T01:55:00Z"),
        ("UTC", &[], "2100-12-01T01:55:00Z"),
        ("<+08>-8", &[], "2100-12-01T01:55:00Z"),
    ] {
        let text = shown(zone, more);
        assert!(text.contains(&format!("run at   {run_at}\n")), "{zone}: {text}");
    }
    let (_, json, _) = in_zone(&folder, "Asia/Shanghai", &["--json", "job", "a"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["run_at"], "2100-12-01T01:55:00.000000Z");
    let events = in_zone(&folder, "Asia/Shanghai", &["events"]).1;
    assert!(events.split(' ').next().unwrap().ends_with("+08:00"), "{events}");
    let explained = in_zone(&folder, "Asia/Shanghai", &["explain", "a"]).1;
    assert!(explained.contains("2100-12-01T09:55:00+08:00"), "{explained}");
    let moved = ["reschedule", "a", "--at", "2100-12-02 09:55"];
    let (_, out, _) = in_zone(&folder, "Asia/Shanghai", &moved);
    assert_eq!(out, "a is scheduled, at 2100-12-02T09:55:00+08:00\n");
}

#[test]
fn an_ambiguous_or_skipped_time_or_unknown_zone_is_refused() {
    let folder = Folder::new();
    for (zone, at, part) in [
        (
            "Europe/Berlin",
            "2026-10-25 02:30",
            "2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00",
        ),
        (
            "Europe/Berlin",
            "2026-03-29 02:30",
            "2026-03-29T01:30:00+01:00 or 2026-03-29T03:30:00+02:00",
        ),
        ("<+08>-8", "2100-12-01 09:55", "the zone of this machine is not known: TZ names no zone"),
    ] {
        let (code, out, err) = in_zone(&folder, zone, &["push", "q", "--at", at]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(part), "{err}");
    }
}
