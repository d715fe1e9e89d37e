//! Accepted forms with their meaning, and refused forms with the faulty part.

use tenure_core::refusal::{Code, Refusal};
use tenure_core::time::Moment;

use super::{Cron, CronFault, CronField};
use crate::zone::Zone;

/// The first moments of an expression in UTC, after a moment.
fn moments(cron: &str, after: &str, count: usize) -> Vec<String> {
    let cron = Cron::parse(cron).unwrap_or_else(|error| panic!("{cron}: {error}"));
    let mut at: Moment = after.parse().unwrap();
    let mut found = Vec::new();
    while found.len() < count {
        let Some(next) = cron.next_after(&Zone::utc(), at) else { break };
        let text = next.to_string();
        assert!(text.ends_with(".000000Z"), "{text}");
        found.push(text.replace(".000000Z", "").replace('T', " "));
        at = next;
    }
    found
}

/// The days of the moments of an expression whose time of day is midnight.
fn days(cron: &str, after: &str, count: usize) -> Vec<String> {
    let moments = moments(cron, after, count);
    moments.iter().map(|moment| moment.strip_suffix(" 00:00:00").unwrap().to_owned()).collect()
}

#[test]
fn every_form_of_the_contract_is_taken() {
    for (cron, expected) in [
        ("* * * * *", ["2026-12-01 08:01:00", "2026-12-01 08:02:00", "2026-12-01 08:03:00"]),
        ("* * * * * *", ["2026-12-01 08:00:01", "2026-12-01 08:00:02", "2026-12-01 08:00:03"]),
        ("30 9 * * *", ["2026-12-01 09:30:00", "2026-12-02 09:30:00", "2026-12-03 09:30:00"]),
        ("05 09 * * *", ["2026-12-01 09:05:00", "2026-12-02 09:05:00", "2026-12-03 09:05:00"]),
        ("15 30 9 * * *", ["2026-12-01 09:30:15", "2026-12-02 09:30:15", "2026-12-03 09:30:15"]),
        ("0,30 * * * *", ["2026-12-01 08:30:00", "2026-12-01 09:00:00", "2026-12-01 09:30:00"]),
        ("50-52 7 * * *", ["2026-12-02 07:50:00", "2026-12-02 07:51:00", "2026-12-02 07:52:00"]),
        ("*/25 * * * *", ["2026-12-01 08:25:00", "2026-12-01 08:50:00", "2026-12-01 09:00:00"]),
        ("*/59 * * * *", ["2026-12-01 08:59:00", "2026-12-01 09:00:00", "2026-12-01 09:59:00"]),
        ("10-40/15 9 * * *", ["2026-12-01 09:10:00", "2026-12-01 09:25:00", "2026-12-01 09:40:00"]),
        ("10-12/15 9 * * *", ["2026-12-01 09:10:00", "2026-12-02 09:10:00", "2026-12-03 09:10:00"]),
        ("*/20,7 * * * *", ["2026-12-01 08:07:00", "2026-12-01 08:20:00", "2026-12-01 08:40:00"]),
        ("0 */9 * * *", ["2026-12-01 09:00:00", "2026-12-01 18:00:00", "2026-12-02 00:00:00"]),
        ("@hourly", ["2026-12-01 09:00:00", "2026-12-01 10:00:00", "2026-12-01 11:00:00"]),
        (" \t0  9 *\t* * ", ["2026-12-01 09:00:00", "2026-12-02 09:00:00", "2026-12-03 09:00:00"]),
    ] {
        assert_eq!(moments(cron, "2026-12-01T08:00:00Z", 3), expected, "{cron}");
    }
    // 2026-12-01 is a Tuesday.
    for (cron, expected) in [
        ("@daily", ["2026-12-02", "2026-12-03", "2026-12-04"]),
        ("@weekly", ["2026-12-06", "2026-12-13", "2026-12-20"]),
        ("@monthly", ["2027-01-01", "2027-02-01", "2027-03-01"]),
        ("@yearly", ["2027-01-01", "2028-01-01", "2029-01-01"]),
        ("0 0 1,15 * *", ["2026-12-15", "2027-01-01", "2027-01-15"]),
        ("0 0 */10 * *", ["2026-12-11", "2026-12-21", "2026-12-31"]),
        ("0 0 */31 * *", ["2027-01-01", "2027-02-01", "2027-03-01"]),
        ("0 0 31 * *", ["2026-12-31", "2027-01-31", "2027-03-31"]),
        ("0 0 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        ("0 0 29 FEB ?", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        ("0 0 1 JAN,JUL *", ["2027-01-01", "2027-07-01", "2028-01-01"]),
        ("0 0 1 FEB-APR *", ["2027-02-01", "2027-03-01", "2027-04-01"]),
        ("0 0 1 */5 *", ["2027-01-01", "2027-06-01", "2027-11-01"]),
        ("0 0 1 2-12/5 *", ["2027-02-01", "2027-07-01", "2027-12-01"]),
        ("0 0 ? * 3", ["2026-12-02", "2026-12-09", "2026-12-16"]),
        ("0 0 * * WED", ["2026-12-02", "2026-12-09", "2026-12-16"]),
        ("0 0 * * 0", ["2026-12-06", "2026-12-13", "2026-12-20"]),
        ("0 0 * * 7", ["2026-12-06", "2026-12-13", "2026-12-20"]),
        ("0 0 * * 5-7", ["2026-12-04", "2026-12-05", "2026-12-06"]),
        ("0 0 * * FRI-SUN", ["2026-12-04", "2026-12-05", "2026-12-06"]),
        ("0 0 * * SUN-TUE", ["2026-12-06", "2026-12-07", "2026-12-08"]),
        ("0 0 * * MON-FRI", ["2026-12-02", "2026-12-03", "2026-12-04"]),
        ("0 0 * * 1-5/2", ["2026-12-02", "2026-12-04", "2026-12-07"]),
        ("0 0 * * */7", ["2026-12-06", "2026-12-13", "2026-12-20"]),
        ("0 0 * * SAT,2", ["2026-12-05", "2026-12-08", "2026-12-12"]),
        ("0 0 L * *", ["2026-12-31", "2027-01-31", "2027-02-28"]),
        ("0 0 L,15 * ?", ["2026-12-15", "2026-12-31", "2027-01-15"]),
        // The nearest workday of Tuesday, of Friday 2027-01-15 and of Monday 2027-02-15 is the day itself.
        ("0 0 15W * *", ["2026-12-15", "2027-01-15", "2027-02-15"]),
        // Saturday 2027-05-15 goes to the Friday before, Sunday 2027-08-15 to the Monday after.
        ("0 0 15W 5,8 *", ["2027-05-14", "2027-08-16", "2028-05-15"]),
        // Never in another month: Saturday 2027-05-01, Sunday 2027-10-31; and nothing in a month without that day.
        ("0 0 1W 5 *", ["2027-05-03", "2028-05-01", "2029-05-01"]),
        ("0 0 31W 9,10 *", ["2027-10-29", "2028-10-31", "2029-10-31"]),
        ("0 0 15W,20 * *", ["2026-12-15", "2026-12-20", "2027-01-15"]),
        ("0 0 * * 5#2", ["2026-12-11", "2027-01-08", "2027-02-12"]),
        ("0 0 * * 5#5", ["2027-01-29", "2027-04-30", "2027-07-30"]),
        ("0 0 * * 0#1", ["2026-12-06", "2027-01-03", "2027-02-07"]),
        ("0 0 * * 7#1", ["2026-12-06", "2027-01-03", "2027-02-07"]),
        ("0 0 * * 5L", ["2026-12-25", "2027-01-29", "2027-02-26"]),
        ("0 0 * * 7L", ["2026-12-27", "2027-01-31", "2027-02-28"]),
        ("0 0 * * 2#1,4L", ["2026-12-31", "2027-01-05", "2027-01-28"]),
        // Day and weekday: either.
        ("0 0 3 * FRI", ["2026-12-03", "2026-12-04", "2026-12-11"]),
        ("0 0 L * 1#1", ["2026-12-07", "2026-12-31", "2027-01-04"]),
        // 1-31 names every day, but it is a list of days and no star.
        ("0 0 1-31 * WED", ["2026-12-02", "2026-12-03", "2026-12-04"]),
        ("0 0 13 * 0-7", ["2026-12-02", "2026-12-03", "2026-12-04"]),
        // A field that begins with a star: both. Only the first character decides.
        ("0 0 */2 * MON", ["2026-12-07", "2026-12-21", "2027-01-11"]),
        ("0 0 1,15 * */2", ["2026-12-15", "2027-04-01", "2027-04-15"]),
        ("0 0 */2 * */2", ["2026-12-03", "2026-12-05", "2026-12-13"]),
        ("0 0 */30 * WED", ["2027-03-31", "2027-09-01", "2027-12-01"]),
        ("0 0 */10,2 * WED", ["2026-12-02", "2027-03-31", "2027-04-21"]),
        ("0 0 2,*/10 * WED", ["2026-12-02", "2026-12-09", "2026-12-11"]),
        ("0 0 13 * */5,FRI", ["2026-12-13", "2027-06-13", "2027-08-13"]),
        ("0 0 13 * FRI,*/5", ["2026-12-04", "2026-12-06", "2026-12-11"]),
        ("0 0 */2 * 5#2", ["2026-12-11", "2027-04-09", "2027-06-11"]),
        // `?` is not a star of cron: it leaves the day open, as `*` alone does.
        ("0 0 ? * */3", ["2026-12-02", "2026-12-05", "2026-12-06"]),
    ] {
        assert_eq!(days(cron, "2026-12-01T08:00:00Z", 3), expected, "{cron}");
    }
}

#[test]
fn what_is_not_listed_is_refused_with_its_field() {
    use CronFault::*;
    use CronField::*;
    for (cron, fault, part, hint) in [
        ("", Fields(0), "", "minute, hour, day, month and weekday"),
        ("* * * *", Fields(4), "* * * *", "minute, hour"),
        ("0 0 9 * * 1 2027", Fields(7), "0 0 9 * * 1 2027", "minute, hour"),
        ("now", Fields(1), "now", "minute, hour"),
        ("@midnight", Shorthand, "@midnight", "\"@daily\""),
        ("@Daily", Shorthand, "@Daily", "did you mean \"@daily\"?"),
        ("@annually", Shorthand, "@annually", "\"@yearly\""),
        ("@reboot", Shorthand, "@reboot", "five fields"),
        ("@every 5m", Fields(2), "@every 5m", "minute, hour"),
        // A step of one number.
        ("5/15 * * * *", Form(Minute), "5/15", "write 5-59/15, or */15"),
        ("* * 2/3 * *", Form(Day), "2/3", "write 2-31/3, or */3"),
        // Steps beyond the range.
        ("*/60 * * * *", Step(Minute), "*/60", "1 to 59"),
        ("*/0 * * * *", Step(Minute), "*/0", "1 to 59"),
        ("0 */24 * * *", Step(Hour), "*/24", "1 to 23"),
        ("0 0 */32 * *", Step(Day), "*/32", "1 to 31"),
        ("0 0 1 */13 *", Step(Month), "*/13", "1 to 12"),
        ("0 0 * * */8", Step(Weekday), "*/8", "1 to 7"),
        ("*/99999999999 * * * *", Step(Minute), "*/99999999999", "1 to 59"),
        // Ranges that wrap.
        ("0 22-2 * * *", Backwards(Hour), "22-2", "22-23,0-2"),
        ("0 0 * * FRI-MON", Backwards(Weekday), "FRI-MON", "does not wrap"),
        ("0 0 * * 7-1", Backwards(Weekday), "7-1", "does not wrap"),
        ("0 0 1 NOV-FEB *", Backwards(Month), "NOV-FEB", "does not wrap"),
        // Lower case.
        ("0 0 * * fri", Form(Weekday), "fri", "capitals"),
        ("0 0 1 jan *", Form(Month), "jan", "capitals"),
        ("0 0 * * Mon-Fri", Form(Weekday), "Mon-Fri", "capitals"),
        ("0 0 l * *", Form(Day), "l", "capitals"),
        ("0 0 15w * *", Form(Day), "15w", "capitals"),
        // Days.
        ("0 0 LW * *", Form(Day), "LW", "15W"),
        ("0 0 WL * *", Form(Day), "WL", "15W"),
        ("0 0 L-3 * *", Form(Day), "L-3", "the last day"),
        ("0 0 15W-20 * *", Form(Day), "15W-20", "15W"),
        ("0 0 W * *", Form(Day), "W", "15W"),
        ("0 0 0W * *", Outside(Day), "0W", "1 to 31"),
        ("0 0 32W * *", Outside(Day), "32W", "1 to 31"),
        // Weekdays.
        ("0 0 * * FRI#2", Form(Weekday), "FRI#2", "5#2"),
        ("0 0 * * FRIL", Form(Weekday), "FRIL", "5L"),
        ("0 0 * * L", Form(Weekday), "L", "5L"),
        ("0 0 * * 5#6", Form(Weekday), "5#6", "5#2"),
        ("0 0 * * 5#0", Form(Weekday), "5#0", "5#2"),
        ("0 0 * * 5#L", Form(Weekday), "5#L", "5L"),
        ("0 0 * * 5#", Form(Weekday), "5#", "5#2"),
        ("0 0 * * 8#1", Outside(Weekday), "8#1", "0 to 7"),
        ("0 0 * * 8L", Outside(Weekday), "8L", "0 to 7"),
        ("0 0 * * 1#1-5", Form(Weekday), "1#1-5", "5#2"),
        // Forms that belong to another field.
        ("? * * * *", Form(Minute), "?", "a number"),
        ("0 ? * * *", Form(Hour), "?", "a number"),
        ("0 0 * ? *", Form(Month), "?", "JAN to DEC"),
        ("L * * * *", Form(Minute), "L", "a number"),
        ("0 0 * JANL *", Form(Month), "JANL", "JAN to DEC"),
        ("JAN * * * *", Form(Minute), "JAN", "a number"),
        ("0 0 * MON *", Form(Month), "MON", "JAN to DEC"),
        ("0 0 * * JAN", Form(Weekday), "JAN", "SUN to SAT"),
        // Numbers outside.
        ("60 * * * *", Outside(Minute), "60", "0 to 59"),
        ("60 0 0 * * *", Outside(Second), "60", "0 to 59"),
        ("0 24 * * *", Outside(Hour), "24", "0 to 23"),
        ("0 0 0 * *", Outside(Day), "0", "1 to 31"),
        ("0 0 32 * *", Outside(Day), "32", "1 to 31"),
        ("0 0 1 0 *", Outside(Month), "0", "1 to 12"),
        ("0 0 1 13 *", Outside(Month), "13", "1 to 12"),
        ("0 0 * * 8", Outside(Weekday), "8", "0 to 7"),
        ("0 20-30 * * *", Outside(Hour), "20-30", "0 to 23"),
        ("99999999999 * * * *", Outside(Minute), "99999999999", "0 to 59"),
        // No forms at all.
        ("*,5 * * * *", Form(Minute), "*", "a list"),
        ("0 0 ?,5 * *", Form(Day), "?", "a list"),
        ("0 0 ?/2 * *", Form(Day), "?/2", "* or ?"),
        ("1,,2 * * * *", Form(Minute), "", "a list"),
        (", * * * *", Form(Minute), "", "a list"),
        ("1- * * * *", Form(Minute), "1-", "a range"),
        ("-5 * * * *", Form(Minute), "-5", "a range"),
        ("1-2-3 * * * *", Form(Minute), "1-2-3", "a range"),
        ("*-5 * * * *", Form(Minute), "*-5", "a range"),
        ("1-5/ * * * *", Form(Minute), "1-5/", "a step"),
        ("*/2/2 * * * *", Form(Minute), "*/2/2", "a step"),
        ("/5 * * * *", Form(Minute), "/5", "a step"),
        ("** * * * *", Form(Minute), "**", "a number"),
        ("*/+5 * * * *", Form(Minute), "*/+5", "a step"),
        ("+5 * * * *", Form(Minute), "+5", "a number"),
        ("1.5 * * * *", Form(Minute), "1.5", "a number"),
        ("H * * * *", Form(Minute), "H", "a number"),
        ("~ * * * *", Form(Minute), "~", "a number"),
        ("٣ * * * *", Form(Minute), "٣", "a number"),
        ("0 9 * * *\n", Form(Weekday), "*\n", "a number"),
        ("0 9 * * 1\u{a0}", Form(Weekday), "1\u{a0}", "a number"),
    ] {
        let error = match Cron::parse(cron) {
            Ok(_) => panic!("{cron:?} was taken"),
            Err(error) => error,
        };
        assert_eq!((error.fault, error.part.as_str()), (fault, part), "{cron:?}");
        let no = Refusal::from(error);
        assert_eq!(no.code, Code::InvalidField, "{cron:?}");
        assert!(no.hint.contains(hint), "{cron:?}: {}", no.hint);
        if let Form(field) | Outside(field) | Backwards(field) | Step(field) = fault {
            assert!(no.detail.contains(field.as_str()), "{cron:?}: {}", no.detail);
        }
    }
    let long = Refusal::from(Cron::parse(&"x".repeat(1_000)).unwrap_err());
    assert!(long.detail.len() < 200);
}

#[test]
fn a_moment_is_strictly_later() {
    for (after, next) in [
        ("2026-12-01T08:59:59.999999Z", "2026-12-01 09:00:00"),
        ("2026-12-01T09:00:00Z", "2026-12-02 09:00:00"),
        ("2026-12-01T09:00:00.000001Z", "2026-12-02 09:00:00"),
        ("1970-01-01T00:00:00Z", "1970-01-01 09:00:00"),
    ] {
        assert_eq!(moments("0 9 * * *", after, 1), [next], "{after}");
    }
}

#[test]
fn a_day_that_never_comes_is_looked_for_ten_years_and_no_more() {
    for cron in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "* * * 31 4 *", "0 0 30W 2 *"] {
        assert_eq!(moments(cron, "2026-12-01T00:00:00Z", 1), [""; 0], "{cron}");
    }
    // 2100 has no 29 February, so the next one after 2096 is eight years later.
    assert_eq!(days("0 0 29 2 *", "2096-03-01T00:00:00Z", 1), ["2104-02-29"]);
    // The thirtieth of February, or any Monday.
    assert_eq!(days("0 0 30 2 1", "2026-12-01T00:00:00Z", 1), ["2027-02-01"]);
}

#[test]
fn the_last_moment_that_can_be_written_is_the_last_one() {
    let last = "2255-06-05T23:47:34Z";
    assert_eq!(moments("* * * * * *", "2255-06-05T23:47:33Z", 5), ["2255-06-05 23:47:34"]);
    assert_eq!(moments("* * * * * *", last, 5), [""; 0]);
    let cron = Cron::parse("* * * * * *").unwrap();
    for zone in [Zone::utc(), Zone::parse("Europe/Berlin").unwrap()] {
        assert_eq!(cron.next_after(&zone, Moment::MAX), None);
    }
}
