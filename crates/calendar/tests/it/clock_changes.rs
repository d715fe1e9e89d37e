//! Days of the clock change, row by row, as the contract pins them.

use tenure_calendar::{Cron, Zone};
use tenure_core::time::Moment;

/// A day in a zone: from its beginning to the beginning of the next, or of the one after.
struct Day {
    zone: &'static str,
    from: &'static str,
    to: &'static str,
}

const BERLIN_SPRING: Day = Day {
    zone: "Europe/Berlin",
    from: "2027-03-28T00:00:00+01:00",
    to: "2027-03-29T00:00:00+02:00",
};
const BERLIN_AUTUMN: Day = Day {
    zone: "Europe/Berlin",
    from: "2027-10-31T00:00:00+02:00",
    to: "2027-11-01T00:00:00+01:00",
};

/// The moments of an expression from one moment to another, which is excluded.
fn moments(zone: &str, cron: &str, from: &str, to: &str) -> Vec<Moment> {
    let (zone, cron) = (Zone::parse(zone).unwrap(), Cron::parse(cron).unwrap());
    let [from, to]: [Moment; 2] = [from, to].map(|text| text.parse().unwrap());
    let before = Moment::from_us(from.us() - 1);
    let next = |after: Moment| cron.next_after(&zone, after).filter(|next| *next < to);
    std::iter::successors(next(before), |after| next(*after)).collect()
}

#[track_caller]
fn check(zone: &str, cron: &str, from: &str, to: &str, expected: &[&str]) {
    let expected: Vec<Moment> = expected.iter().map(|text| text.parse().unwrap()).collect();
    assert_eq!(moments(zone, cron, from, to), expected, "{cron} in {zone} from {from}");
}

#[track_caller]
fn on(day: &Day, cron: &str, expected: &[&str]) {
    check(day.zone, cron, day.from, day.to, expected);
}

#[test]
fn berlin_in_spring_has_no_hour_from_two_to_three() {
    for cron in ["30 2 * * *", "0 2 * * *", "0 3 * * *"] {
        on(&BERLIN_SPRING, cron, &["2027-03-28T03:00:00+02:00"]);
    }
    let next_day = |cron, expected| {
        let (from, to) = ("2027-03-29T00:00:00+02:00", "2027-03-30T00:00:00+02:00");
        check("Europe/Berlin", cron, from, to, &[expected]);
    };
    next_day("30 2 * * *", "2027-03-29T02:30:00+02:00");
    next_day("0 2 * * *", "2027-03-29T02:00:00+02:00");
    next_day("0 3 * * *", "2027-03-29T03:00:00+02:00");
    on(&BERLIN_SPRING, "0 2,14 * * *", &["2027-03-28T14:00:00+02:00"]);
    on(&BERLIN_SPRING, "*/30 2 * * *", &[]);
    check(
        "Europe/Berlin",
        "*/30 * * * *",
        "2027-03-28T01:00:00+01:00",
        "2027-03-28T04:00:00+02:00",
        &[
            "2027-03-28T01:00:00+01:00",
            "2027-03-28T01:30:00+01:00",
            "2027-03-28T03:00:00+02:00",
            "2027-03-28T03:30:00+02:00",
        ],
    );
}

#[test]
fn berlin_in_autumn_has_the_hour_from_two_to_three_twice() {
    on(&BERLIN_AUTUMN, "30 2 * * *", &["2027-10-31T02:30:00+02:00"]);
    on(&BERLIN_AUTUMN, "0 3 * * *", &["2027-10-31T03:00:00+01:00"]);
    on(
        &BERLIN_AUTUMN,
        "0 2,14 * * *",
        &["2027-10-31T02:00:00+02:00", "2027-10-31T02:00:00+01:00", "2027-10-31T14:00:00+01:00"],
    );
    check(
        "Europe/Berlin",
        "*/30 * * * *",
        "2027-10-31T01:30:00+02:00",
        "2027-10-31T03:30:00+01:00",
        &[
            "2027-10-31T01:30:00+02:00",
            "2027-10-31T02:00:00+02:00",
            "2027-10-31T02:30:00+02:00",
            "2027-10-31T02:00:00+01:00",
            "2027-10-31T02:30:00+01:00",
            "2027-10-31T03:00:00+01:00",
        ],
    );
}

#[test]
fn new_york_has_its_own_days() {
    let zone = "America/New_York";
    let (from, to) = ("2027-03-14T00:00:00-05:00", "2027-03-15T00:00:00-04:00");
    check(zone, "30 2 * * *", from, to, &["2027-03-14T03:00:00-04:00"]);
    let (from, to) = ("2027-11-07T00:00:00-04:00", "2027-11-08T00:00:00-05:00");
    check(zone, "30 1 * * *", from, to, &["2027-11-07T01:30:00-04:00"]);
}

#[test]
fn asuncion_has_a_day_without_midnight() {
    let (from, to) = ("2023-09-30T12:00:00-04:00", "2023-10-02T12:00:00-03:00");
    let expected = ["2023-10-01T01:00:00-03:00", "2023-10-02T00:00:00-03:00"];
    check("America/Asuncion", "0 0 * * *", from, to, &expected);
    check("America/Asuncion", "@daily", from, to, &expected);
}

#[test]
fn lord_howe_changes_by_half_an_hour() {
    let zone = "Australia/Lord_Howe";
    let (from, to) = ("2027-10-03T00:00:00+10:30", "2027-10-04T00:00:00+11:00");
    check(zone, "15 2 * * *", from, to, &["2027-10-03T02:30:00+11:00"]);
    let (from, to) = ("2027-04-04T00:00:00+11:00", "2027-04-05T00:00:00+10:30");
    check(zone, "45 1 * * *", from, to, &["2027-04-04T01:45:00+11:00"]);
}

#[test]
fn apia_has_no_thirtieth_of_december_2011() {
    let zone = "Pacific/Apia";
    let (from, to) = ("2011-12-29T00:00:00-10:00", "2012-01-01T00:00:00+14:00");
    check(
        zone,
        "0 12 * * *",
        from,
        to,
        &["2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00"],
    );
    // The gap begins at midnight of the day that does not exist; no moment is made up at its end.
    check(zone, "0 0 * * *", from, to, &["2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"]);
    check(zone, "0 12 30 12 *", from, to, &[]);
    check(
        zone,
        "0 */12 * * *",
        from,
        to,
        &[
            "2011-12-29T00:00:00-10:00",
            "2011-12-29T12:00:00-10:00",
            "2011-12-31T00:00:00+14:00",
            "2011-12-31T12:00:00+14:00",
        ],
    );
}

#[test]
fn a_search_in_a_repeated_hour_finds_no_second_fixed_occurrence() {
    let (from, to) = ("2027-10-31T02:15:00+01:00", "2027-11-01T00:00:00+01:00");
    check("Europe/Berlin", "30 2 * * *", from, to, &[]);
    check(
        "Europe/Berlin",
        "30 2,14 * * *",
        from,
        to,
        &["2027-10-31T02:30:00+01:00", "2027-10-31T14:30:00+01:00"],
    );
    // The search begins right after the gap that contained the time.
    let (from, to) = ("2027-03-28T03:00:01+02:00", "2027-03-29T00:00:00+02:00");
    check("Europe/Berlin", "30 2 * * *", from, to, &[]);
}

#[test]
fn an_expression_of_single_values_is_fixed_in_any_notation() {
    let day = &BERLIN_SPRING;
    for cron in ["30-30 2,2 * * *", "0 30 2 * * *", "30 2-3/2 * * *"] {
        on(day, cron, &["2027-03-28T03:00:00+02:00"]);
    }
    on(day, "15 30 2 * * *", &["2027-03-28T03:00:00+02:00"]);
    for cron in ["* 30 2 * * *", "0,30 30 2 * * *", "30 2-2,4 * * *"] {
        assert!(
            moments(day.zone, cron, day.from, "2027-03-28T04:00:00+02:00").is_empty(),
            "{cron}"
        );
    }
}
