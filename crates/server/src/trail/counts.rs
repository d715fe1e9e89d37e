//! Counts calls that have no line of their own: those of producers, workers and readers, and repeated refusals. Each
//! minute they become a line for each caller, operation and namespace.

use std::collections::HashMap;

use tenure_core::bounds::TRAIL_COUNTS_MAX;
use tenure_core::trail::TrailLine;

/// Calls that are counted together.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct CountedAs {
    pub op: &'static str,
    pub caller: Option<String>,
    pub namespace: Option<String>,
    /// The address of a refused caller; `None` for calls that were not refused.
    pub peer: Option<String>,
    /// Of refusals: the HTTP status and the code.
    pub refused: Option<(u16, &'static str)>,
}

impl CountedAs {
    /// The same, together with all callers, when too many are counted apart.
    fn of_all(&self) -> Self {
        CountedAs { caller: None, namespace: None, peer: None, ..self.clone() }
    }
}

/// Refusals of a minute that have lines of their own; the others of one operation share a count. An attacker with many
/// addresses must not fill a disk, nor push the lines of others out of the trail.
const REFUSALS_MAX: usize = 64;

/// The counts of one minute.
#[derive(Debug, Default)]
pub(super) struct CallTallies {
    calls: HashMap<CountedAs, u64>,
    /// Refusals that have lines of their own.
    refusals: usize,
}

impl CallTallies {
    /// Counts one call.
    pub(super) fn add(&mut self, call: CountedAs) {
        let has_room = self.calls.len() < TRAIL_COUNTS_MAX || self.calls.contains_key(&call);
        *self.calls.entry(if has_room { call } else { call.of_all() }).or_default() += 1;
    }

    /// Counts a refusal. True for the first one of its kind in this minute, which is not counted: it gets a line of its
    /// own.
    pub(super) fn is_first(&mut self, refusal: CountedAs) -> bool {
        if let Some(count) = self.calls.get_mut(&refusal) {
            *count += 1;
            return false;
        }
        if self.refusals >= REFUSALS_MAX {
            *self.calls.entry(refusal.of_all()).or_default() += 1;
            return false;
        }
        self.refusals += 1;
        self.calls.insert(refusal, 0);
        true
    }

    /// Takes the counts as lines, and begins with none.
    pub(super) fn take(&mut self) -> Vec<TrailLine> {
        self.refusals = 0;
        let counts = self.calls.drain().filter(|(_, n)| *n > 0);
        let mut counts: Vec<(CountedAs, u64)> = counts.collect();
        counts.sort_unstable_by(|(one, _), (other, _)| {
            (&one.caller, one.op, &one.namespace).cmp(&(&other.caller, other.op, &other.namespace))
        });
        let line = |(call, count): (CountedAs, u64)| TrailLine {
            caller: call.caller,
            namespace: call.namespace,
            peer: call.peer,
            status: call.refused.map(|(status, _)| status),
            code: call.refused.map(|(_, code)| code.to_owned()),
            count: Some(count),
            ..TrailLine::of(call.op)
        };
        counts.into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(op: &'static str, caller: &str) -> CountedAs {
        let (caller, namespace) = (Some(caller.to_owned()), Some("default".to_owned()));
        CountedAs { op, caller, namespace, peer: None, refused: None }
    }

    #[test]
    fn calls_are_counted_by_caller_and_operation() {
        let mut tallies = CallTallies::default();
        for _ in 0..3 {
            tallies.add(call("push", "a"));
        }
        tallies.add(call("push", "b"));
        tallies.add(call("lease", "a"));
        let told = |lines: Vec<TrailLine>| -> Vec<(String, String, u64)> {
            let one = |line: TrailLine| (line.caller.unwrap(), line.op, line.count.unwrap());
            lines.into_iter().map(one).collect()
        };
        let all = told(tallies.take());
        let expected = [("a", "lease", 1), ("a", "push", 3), ("b", "push", 1)];
        let expected = expected.map(|(caller, op, n)| (caller.to_owned(), op.to_owned(), n));
        assert_eq!(all, expected);
        assert!(tallies.take().is_empty(), "a minute begins with none");
    }

    #[test]
    fn the_first_refusal_has_its_line_and_the_others_are_counted() {
        let mut tallies = CallTallies::default();
        let refused = Some((401, "unauthorized"));
        let refusal = CountedAs { refused, peer: Some("::1".to_owned()), ..call("push", "a") };
        assert!(tallies.is_first(refusal.clone()));
        assert!(tallies.take().is_empty(), "it has its line");
        assert!(tallies.is_first(refusal.clone()), "in the next minute again");
        assert!(!tallies.is_first(refusal.clone()) && !tallies.is_first(refusal));
        let lines = tallies.take();
        assert_eq!((lines.len(), lines[0].count, lines[0].status), (1, Some(2), Some(401)));
    }

    #[test]
    fn an_attacker_with_many_addresses_gets_few_lines() {
        let mut tallies = CallTallies::default();
        let refusal = |n: u64| CountedAs {
            peer: Some(n.to_string()),
            refused: Some((401, "unauthorized")),
            ..call("push", "a")
        };
        let many = 10_000;
        let first = (0..many).filter(|n| tallies.is_first(refusal(*n))).count();
        assert_eq!(first, REFUSALS_MAX);
        let lines = tallies.take();
        assert_eq!(lines.iter().filter_map(|line| line.count).sum::<u64>(), many - first as u64);
        assert_eq!(lines.len(), 1);
    }
}
