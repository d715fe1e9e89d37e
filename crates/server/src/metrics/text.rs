//! Prometheus's text format, version 0.0.4.

use std::fmt::Write;

use tenure_engine_api::histogram::Seen;

/// A metric: its name once, with a description for people.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The name in Prometheus.
    pub name: &'static str,
    /// `gauge`, `counter` or `histogram`.
    pub kind: &'static str,
    /// A sentence, and in brackets whether it adds up over servers.
    pub help: &'static str,
}

/// Receives the samples of a page: those of a family one after the other.
pub trait SampleSink: Send {
    /// One number, with its labels.
    fn sample(&mut self, family: &Family, labels: &[(&str, &str)], value: f64);

    /// Durations in buckets, with their labels.
    fn histogram(&mut self, family: &Family, labels: &[(&str, &str)], seen: &Seen);
}

/// A text that is being written. A family without a sample is left out.
#[derive(Debug, Default)]
pub(crate) struct Text {
    text: String,
    last: &'static str,
}

impl Text {
    fn family(&mut self, family: &Family) {
        if self.last != family.name {
            self.last = family.name;
            let Family { name, kind, help } = family;
            // Writing to a `String` cannot fail.
            let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        }
    }

    fn labels<'l>(&mut self, labels: impl Iterator<Item = (&'l str, &'l str)>) {
        let mut before = '{';
        for (name, value) in labels {
            let _ = write!(self.text, "{before}{name}=\"");
            for c in value.chars() {
                match c {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    c => self.text.push(c),
                }
            }
            self.text.push('"');
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
    }

    pub(crate) fn end(self) -> String {
        self.text
    }
}

impl SampleSink for Text {
    fn sample(&mut self, family: &Family, labels: &[(&str, &str)], value: f64) {
        self.family(family);
        self.text.push_str(family.name);
        self.labels(labels.iter().copied());
        let _ = writeln!(self.text, " {value}");
    }

    fn histogram(&mut self, family: &Family, labels: &[(&str, &str)], seen: &Seen) {
        self.family(family);
        let mut count = 0;
        for (at, times) in seen.buckets.iter().enumerate() {
            count += times;
            let bound = seen.bounds.get(at).map_or("+Inf".to_owned(), f64::to_string);
            let _ = write!(self.text, "{}_bucket", family.name);
            self.labels(labels.iter().copied().chain([("le", bound.as_str())]));
            let _ = writeln!(self.text, " {count}");
        }
        for (part, value) in [("sum", seen.sum), ("count", count as f64)] {
            let _ = write!(self.text, "{}_{part}", family.name);
            self.labels(labels.iter().copied());
            let _ = writeln!(self.text, " {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tenure_engine_api::histogram::Histogram;

    use super::*;

    #[test]
    fn names_stay_within_their_quotes() {
        let family = Family { name: "a", kind: "gauge", help: "H" };
        let mut text = Text::default();
        text.sample(&family, &[("queue", "x\"} 1\n\\")], 2.0);
        text.sample(&family, &[], 0.5);
        let wanted = "# HELP a H\n# TYPE a gauge\na{queue=\"x\\\"} 1\\n\\\\\"} 2\na 0.5\n";
        assert_eq!(text.end(), wanted);
    }

    #[test]
    fn buckets_add_up() {
        let family = Family { name: "t", kind: "histogram", help: "H" };
        let times = Histogram::default();
        for ms in [1, 1, 90_000_000] {
            times.count(Duration::from_millis(ms));
        }
        let mut text = Text::default();
        text.histogram(&family, &[("queue", "q")], &times.seen());
        let text = text.end();
        for line in [
            "t_bucket{queue=\"q\",le=\"0.001\"} 2",
            "t_bucket{queue=\"q\",le=\"86400\"} 2",
            "t_bucket{queue=\"q\",le=\"+Inf\"} 3",
            "t_sum{queue=\"q\"} 90000.002",
            "t_count{queue=\"q\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
