use super::*;
use tenure_core::job::Backoff;
use tenure_core::time::Span;

const ID: &str = "news/42";

fn at(us: u64) -> Moment {
    Moment::from_us(us)
}

fn id() -> ScheduleId {
    ScheduleId::parse(ID).unwrap()
}

fn job() -> ScheduledJob {
    let mut job = ScheduledJob::new(QueueName::parse("größe").unwrap());
    job.payload = Json::parse(r#"{"url":"ü"}"#);
    job
}

/// An interval with only its required values.
fn new() -> Schedule {
    Schedule {
        shell: false,
        owner: Owner::parse("feeds").ok(),
        timing: TimingSpec { every: Some(Span::from_s(900)), ..TimingSpec::default() },
        catch_up_max: 100,
        job: job_text(&job()),
        version: 7,
        era: 7,
        cursor: at(1_700_000_000_000_001),
        created_at: at(1_700_000_000_000_001),
        changed_at: at(1_700_000_000_000_001),
        place: Some(at(1_700_000_900_000_000)),
        ..Schedule::shell(id())
    }
}

/// A schedule with every possible value.
fn full() -> Schedule {
    let job = |name| JobId::parse(name).unwrap();
    let planned = |us| PlannedMoment { moment: at(us), due: at(us + 5), passed: us };
    Schedule {
        timing: TimingSpec {
            cron: Some("0 8 * * 1".to_owned()),
            zone: Some("Europe/Berlin".to_owned()),
            every: Some(Span::from_s(1)),
            starts_at: Some(at(1)),
            ends_at: Some(Moment::MAX),
            jitter: Span::from_s(9),
        },
        overlap: Overlap::Allow,
        catch_up: CatchUp::All,
        era: 3,
        cursor: at(9),
        decided: at(8),
        plan: [planned(10), planned(12), planned(11)].into(),
        planned_all: true,
        moved: Some(at(10)),
        paused_until: Some(Moment::MAX),
        unfinished: 2,
        last_made: Some(job("a")),
        last: Some(LastFired { at: at(7), job: job("b") }),
        last_ended: Some(LastEnded { job: job("c"), state: JobState::Failed, finished_at: at(6) }),
        last_succeeded_at: Some(at(5)),
        fired: 1,
        skipped: 2,
        missed: u64::MAX,
        changed_at: at(4),
        wanted_at: Some(at(3)),
        awaits_job: true,
        ..new()
    }
}

fn text(schedule: &Schedule) -> String {
    format!("{schedule:?}")
}

#[test]
fn a_schedule_is_unpacked_as_it_was_packed() {
    for schedule in [new(), full(), Schedule { unfinished: 1, ..Schedule::shell(id()) }] {
        let packed = schedule.packed();
        assert_eq!(Schedule::id_of_packed(&packed), Some(ID));
        assert_eq!(Schedule::unpacked(&packed).map(|read| text(&read)), Some(text(&schedule)));
    }
}

#[test]
fn a_row_has_all_but_what_a_start_computes() {
    for schedule in [new(), full()] {
        let known = Schedule {
            plan: VecDeque::new(),
            planned_all: false,
            unfinished: 0,
            place: None,
            wanted_at: None,
            awaits_job: false,
            ..schedule.clone()
        };
        let read = Schedule::of_row(id(), &schedule.row()).unwrap();
        assert_eq!(text(&read), text(&known));
    }
}

#[test]
fn a_schedule_that_rests_is_short() {
    let (schedule, job) = (new(), job());
    let payload = job.payload.as_ref().map_or(0, |json| json.text().len());
    let said = ID.len() + "feeds".len() + job.queue.as_str().len() + payload;
    assert!(schedule.packed().len() <= said + 50, "{}", schedule.packed());
}

#[test]
fn a_long_job_is_no_part_of_the_row() {
    let mut long = job();
    long.payload = Some("x".repeat(JOB_WITH_ROW_MAX).as_str().into());
    let schedule = Schedule { job: job_text(&long), ..new() };
    let row = schedule.row();
    assert!(schedule.has_job_row() && row.len() < 100);
    let read = Schedule::of_row(id(), &row).unwrap();
    assert!(read.job.is_empty());
    let unpacked = Schedule::unpacked(&schedule.packed()).unwrap();
    assert_eq!(unpacked.scheduled_job(), Some(long));
}

#[test]
fn a_job_is_read_as_it_was_written() {
    let full = ScheduledJob {
        queue: QueueName::parse("q").unwrap(),
        kind: "k".to_owned(),
        payload: None,
        priority: -100,
        group: Group::parse("g").ok(),
        needs: Some(Vec::new()),
        retry: Some(Retry {
            max_attempts: 3,
            max_lost: 2,
            max_snoozes: None,
            backoff: Backoff::Fixed { base: Span::from_s(1), jitter: true },
        }),
        timeout: Some(Span::from_s(1)),
        retain: Some(Span::ZERO),
        expires_in: Some(Span::from_s(2)),
        labels: Labels::from([("a".to_owned(), "b".to_owned())]),
    };
    let plain = ScheduledJob::new(QueueName::parse("q").unwrap());
    for job in [plain, job(), full] {
        assert_eq!(job_of_text(&job_text(&job)), Some(job));
    }
}

#[test]
fn what_was_cut_or_goes_on_is_no_row() {
    for row in [new().row(), full().row()] {
        for end in (0..row.len()).filter(|end| row.is_char_boundary(*end)) {
            assert!(Schedule::of_row(id(), &row[..end]).is_none(), "{}", &row[..end]);
        }
        assert!(Schedule::of_row(id(), &format!("{row}0")).is_none());
    }
    let unknown = format!("{}{}", "ooo3", &new().row()[1..]);
    assert!(Schedule::of_row(id(), &unknown).is_none());
}
