//! Failed jobs, counted in groups: of the same queue, the same kind, and the same beginning of the last error.
//!
//! An engine finds the jobs and adds them one by one to [`FailureCounts`]. The groups are formed here, so that every
//! engine answers the same.

use crate::bounds::{FAILURE_CHARS, LIST_DEFAULT, LIST_SCAN_MAX};
use crate::names::{JobId, QueueName};
use crate::time::Moment;
use crate::view;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Counts similar failed jobs. It scans no more than 10,000, beginning with those that are kept longest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListFailures {
    /// Only jobs of this queue.
    pub queue: Option<QueueName>,
    /// Only jobs of this kind; `""` for those without one.
    pub kind: Option<String>,
    /// Only jobs that ended at this moment or later.
    pub finished_after: Option<Moment>,
    /// Answers with at most this many groups, 1 to 1,000: the largest ones.
    pub max: usize,
}

impl Default for ListFailures {
    fn default() -> Self {
        ListFailures { queue: None, kind: None, finished_after: None, max: LIST_DEFAULT }
    }
}

view! {
    /// A group of failed jobs with the same [`error_line`].
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct FailureGroup {
        /// The queue of these jobs.
        pub queue: QueueName,
        /// The kind of these jobs.
        pub kind: String,
        /// What their last errors have in common: the first 120 characters, without numbers and ids.
        pub error: String,
        /// How many jobs failed so.
        pub count: u64,
        /// When the first of them ended.
        pub first_at: Moment,
        /// When the last of them ended.
        pub last_at: Moment,
        /// The id of the one that ended last.
        pub job: JobId,
    }

    /// Groups of failed jobs, the largest first: at most as many as the call asked for.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct Failures {
        /// Failed jobs that have queue, kind and the beginning of the error in common, the most frequent first.
        pub items: Vec<FailureGroup>,
        /// Whether only a part of the failed jobs was looked at.
        #[serde(default)]
        pub partial: bool,
    }
}

/// The text by which errors are compared: the first line, with each run of ASCII digits replaced by one `#`, cut to 120
/// characters. So `http 502` and `http 503`, or two ids in the same sentence, are one failure. A status code stays:
/// three digits from 100 to 599, as in SMTP and HTTP, at the beginning of the line or after the word *status* (`状态`).
/// There the code is the failure, and not a number in it.
pub fn error_line(error: &str) -> String {
    let line = error.split('\n').next().unwrap_or_default();
    let line = line.strip_suffix('\r').unwrap_or(line);
    let mut text = String::with_capacity(line.len().min(4 * FAILURE_CHARS));
    let (mut at, mut chars) = (0, 0);
    while let Some(c) = line[at..].chars().next()
        && chars < FAILURE_CHARS
    {
        let digits = line[at..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            text.push(c);
            at += c.len_utf8();
            chars += 1;
            continue;
        }
        let (before, run, after) = (&line[..at], &line[at..at + digits], &line[at + digits..]);
        let shown = if is_status_code(before, run, after) { run } else { "#" };
        let room = shown.len().min(FAILURE_CHARS - chars);
        text.push_str(&shown[..room]);
        at += digits;
        chars += room;
    }
    text
}

/// Words before a status code of three digits; a sign and blanks may stand in between.
const STATUS_WORDS: [&str; 8] =
    ["status", "status code", "status_code", "statuscode", "状态", "状态码", "返回码", "错误码"];

/// Recognises a status code by its surroundings. `100ms`, `500.3` and `v200` are plain numbers.
fn is_status_code(before: &str, run: &str, after: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if run.len() != 3
        || !matches!(run.as_bytes()[0], b'1'..=b'5')
        || after.starts_with(is_part)
        || after
            .strip_prefix('.')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        return false;
    }
    let opens =
        |c: char| c.is_whitespace() || matches!(c, '[' | '(' | '<' | '（' | '【' | '"' | '\'');
    let joins = |c: char| opens(c) || matches!(c, ':' | '=' | '：' | '＝');
    let before = before.trim_end_matches(joins);
    // A code in brackets may begin a line, too.
    if before.is_empty() {
        return true;
    }
    STATUS_WORDS.iter().any(|word| {
        let at = before.len().checked_sub(word.len());
        let end = at.and_then(|at| before.get(at..).map(|end| (&before[..at], end)));
        end.is_some_and(|(front, end)| end.eq_ignore_ascii_case(word) && !front.ends_with(is_part))
    })
}

/// A failed job, as an engine found it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedJob {
    /// The queue that its shape names.
    pub queue: QueueName,
    /// Empty for a job without one.
    pub kind: String,
    /// Its last error; empty if it has none.
    pub error: String,
    /// When it failed for good.
    pub finished_at: Moment,
    /// The id that views show.
    pub job: JobId,
}

/// Counts failed jobs for one request while an engine finds them.
#[derive(Clone, Debug)]
pub struct FailureCounts {
    asked: ListFailures,
    groups: HashMap<(QueueName, String, String), FailureGroup>,
    looked: usize,
}

impl FailureCounts {
    /// Counts of no jobs.
    pub fn new(asked: ListFailures) -> Self {
        FailureCounts { asked, groups: HashMap::new(), looked: 0 }
    }

    /// Number of failed jobs that may still be scanned.
    pub fn left(&self) -> usize {
        LIST_SCAN_MAX.saturating_sub(self.looked)
    }

    /// Counts jobs that were scanned and do not match, or could not be read.
    pub fn pass_over(&mut self, jobs: usize) {
        self.looked += jobs;
    }

    /// Scans one failed job, and counts it if it matches.
    pub fn look_at(&mut self, one: FailedJob) {
        self.looked += 1;
        let ListFailures { queue, kind, finished_after, .. } = &self.asked;
        let meant = queue.as_ref().is_none_or(|queue| *queue == one.queue)
            && kind.as_ref().is_none_or(|kind| *kind == one.kind)
            && finished_after.is_none_or(|from| one.finished_at >= from);
        if !meant {
            return;
        }
        let FailedJob { queue, kind, error, finished_at, job } = one;
        let error = error_line(&error);
        let key = (queue.clone(), kind.clone(), error.clone());
        let group = self.groups.entry(key).or_insert_with(|| FailureGroup {
            queue,
            kind,
            error,
            count: 0,
            first_at: finished_at,
            last_at: finished_at,
            job: job.clone(),
        });
        group.count += 1;
        group.first_at = group.first_at.min(finished_at);
        // Of two jobs that ended in one step, every engine names the same.
        if (finished_at, &job) > (group.last_at, &group.job) {
            (group.last_at, group.job) = (finished_at, job);
        }
    }

    /// The groups. `partial` is true if there were more failed jobs than were scanned.
    pub fn finish(self, partial: bool) -> Failures {
        let mut items: Vec<FailureGroup> = self.groups.into_values().collect();
        // Groups of the same size are sorted by the latest failure, then by name, so that the order is always defined.
        items.sort_by(|a, b| {
            let size = |one: &FailureGroup| std::cmp::Reverse((one.count, one.last_at));
            let name =
                |one: &FailureGroup| (one.queue.clone(), one.kind.clone(), one.error.clone());
            size(a).cmp(&size(b)).then_with(|| name(a).cmp(&name(b)))
        });
        items.truncate(self.asked.max);
        Failures { items, partial }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_compared_by_its_first_line_without_its_numbers() {
        let long = "x".repeat(FAILURE_CHARS);
        let cut = format!("{}é", "é".repeat(FAILURE_CHARS));
        for (error, line) in [
            ("", ""),
            ("http 502", "http #"),
            ("http 502\nbody 7", "http #"),
            ("550 mailbox 17 unavailable", "550 mailbox # unavailable"),
            ("503", "503"),
            ("429: slow down", "429: slow down"),
            ("600 jobs", "# jobs"),
            ("5031 jobs", "# jobs"),
            ("550-5.1.1 no such user 17", "550-#.#.# no such user #"),
            ("[502] bad gateway", "[502] bad gateway"),
            ("404页面不存在，用户12", "404页面不存在，用户#"),
            ("【503】服务不可用", "【503】服务不可用"),
            ("100ms passed", "#ms passed"),
            ("500.3 s passed", "#.# s passed"),
            ("got status 502 from node 12", "got status 502 from node #"),
            ("Status Code: 404, id 404", "Status Code: 404, id #"),
            ("status_code=429", "status_code=429"),
            ("substatus 404", "substatus #"),
            ("status 1404", "status #"),
            ("请求失败：状态码502，第3次", "请求失败：状态码502，第#次"),
            ("服务器返回状态码：404", "服务器返回状态码：404"),
            ("错误码（500）用户12345不存在", "错误码（500）用户#不存在"),
            ("第12页有404个错误", "第#页有#个错误"),
            ("gone\r\nmore", "gone"),
            ("\nsecond", ""),
            ("a1b22c333", "a#b#c#"),
            ("1.5s at 0x1f", "#.#s at #x#f"),
            ("٣ Arabic digits stay", "٣ Arabic digits stay"),
            (&format!("{long}tail"), &long),
            (&cut, &"é".repeat(FAILURE_CHARS)),
            // A run of digits that begins before the cut is one character; one that begins behind it is cut off.
            (&format!("{}12345", &long[1..]), &format!("{}#", &long[1..])),
            (&format!("{long}12345"), &long),
            // A run of digits counts as one character before the cut.
            (&format!("{}{long}", "7".repeat(500)), &format!("#{}", &long[1..])),
        ] {
            assert_eq!(error_line(error), line, "{error:?}");
        }
    }

    fn failed(queue: &str, kind: &str, error: &str, at: u64, job: &str) -> FailedJob {
        FailedJob {
            queue: QueueName::parse(queue).unwrap(),
            kind: kind.to_owned(),
            error: error.to_owned(),
            finished_at: Moment::from_us(at),
            job: JobId::parse(job).unwrap(),
        }
    }

    fn counted(asked: ListFailures) -> Vec<(String, u64, u64, u64, String)> {
        let mut counts = FailureCounts::new(asked);
        for one in [
            failed("q", "k", "http 500", 5, "a"),
            failed("q", "k", "http 502\nmore", 9, "c"),
            failed("q", "k", "http 404", 9, "b"),
            failed("q", "", "http 404", 3, "d"),
            failed("r", "k", "http 404", 7, "e"),
            failed("r", "k", "refused", 7, "f"),
        ] {
            counts.look_at(one);
        }
        assert_eq!(counts.left(), LIST_SCAN_MAX - 6);
        let shown = |one: FailureGroup| {
            let name = format!("{} {} {}", one.queue, one.kind, one.error);
            (name, one.count, one.first_at.us(), one.last_at.us(), one.job.to_string())
        };
        counts.finish(false).items.into_iter().map(shown).collect()
    }

    #[test]
    fn failures_are_counted_largest_first_then_latest_first() {
        let all = counted(ListFailures::default());
        let group = |name: &str, count, first, last, job: &str| {
            (name.to_owned(), count, first, last, job.to_owned())
        };
        let expected = [
            group("q k http #", 3, 5, 9, "c"),
            group("r k http #", 1, 7, 7, "e"),
            group("r k refused", 1, 7, 7, "f"),
            group("q  http #", 1, 3, 3, "d"),
        ];
        assert_eq!(all, expected);
        assert_eq!(counted(ListFailures { max: 2, ..ListFailures::default() }), expected[..2]);
        let of = |queue: &str| Some(QueueName::parse(queue).unwrap());
        let asked = ListFailures { queue: of("r"), ..ListFailures::default() };
        assert_eq!(counted(asked), expected[1..3]);
        let asked = ListFailures { kind: Some(String::new()), ..ListFailures::default() };
        assert_eq!(counted(asked), expected[3..]);
        let from = Some(Moment::from_us(9));
        let asked = ListFailures { finished_after: from, ..ListFailures::default() };
        assert_eq!(counted(asked), [group("q k http #", 2, 9, 9, "c")]);
    }
}
