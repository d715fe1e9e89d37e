//! Tables for people: columns as wide as what stands in them, two spaces between, nothing else.

use tenure_core::time::{Moment, Span};
use unicode_width::UnicodeWidthStr;

use crate::output::printable;

/// Longest text shown in one cell; what is cut can be seen with `--json`.
const CELL_WIDTH_MAX: usize = 60;

/// A table of texts.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this head.
    pub fn new(head: &[&str]) -> Self {
        Table { rows: vec![head.iter().map(|cell| (*cell).to_owned()).collect()] }
    }
    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| shorten(&cell)).collect());
    }
    /// Whether it has nothing but its head.
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }
    /// The text, each line with its end; `nothing` if there are no rows.
    pub fn render(&self, nothing: &str) -> String {
        if self.is_empty() {
            return format!("{nothing}\n");
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|at| self.rows.iter().filter_map(|row| row.get(at)).map(|c| c.width()).max())
            .map(|width| width.unwrap_or(0))
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width + 2 - cell.width()));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn shorten(cell: &str) -> String {
    let one_line = printable(cell).replace(['\n', '\t'], " ");
    // A word without a space is a name or an id: somebody will want to paste it.
    if one_line.width() <= CELL_WIDTH_MAX || !one_line.contains(' ') {
        return one_line;
    }
    let mut short = String::new();
    for c in one_line.chars() {
        if short.width() + 2 > CELL_WIDTH_MAX {
            break;
        }
        short.push(c);
    }
    short + "…"
}

/// `-` for what is not there.
pub fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// A moment to the second.
pub fn second(moment: Moment) -> String {
    let text = moment.to_string();
    match text.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => text,
    }
}

/// How long ago, or how far ahead, in at most two units: `3m12s ago`, `in 2h`. For people only: it
/// compares this machine's clock with the store's.
pub fn when(moment: Moment, now: Moment) -> String {
    if moment > now {
        format!("in {}", rough(moment.since(now)))
    } else {
        format!("{} ago", rough(now.since(moment)))
    }
}

/// A duration in at most two units.
pub fn rough(span: Span) -> String {
    let s = span.us() / 1_000_000;
    match s {
        0 => "0s".to_owned(),
        1..60 => format!("{s}s"),
        60..3_600 => format!("{}m{}s", s / 60, s % 60),
        3_600..86_400 => format!("{}h{}m", s / 3_600, s % 3_600 / 60),
        _ => format!("{}d{}h", s / 86_400, s % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_stands_in_them() {
        let mut table = Table::new(&["NAME", "N"]);
        table.row(["größe".into(), "1".into()]);
        table.row(["日本".into(), "22".into()]);
        assert_eq!(table.render("nothing"), "NAME   N\ngröße  1\n日本   22\n");
        assert_eq!(Table::new(&["A"]).render("no jobs"), "no jobs\n");
    }

    #[test]
    fn a_cell_is_one_short_line_that_steers_no_terminal() {
        assert_eq!(shorten("a\nb\u{1b}[31m"), "a b\u{fffd}[31m");
        assert!(shorten(&"x y".repeat(200)).width() <= CELL_WIDTH_MAX);
        assert_eq!(shorten(&"x".repeat(200)).len(), 200);
    }

    #[test]
    fn times_are_said_in_at_most_two_units() {
        let now = Moment::from_us(1_000_000_000_000);
        for (s, text) in [(0, "0s ago"), (59, "59s ago"), (192, "3m12s ago"), (90_000, "1d1h ago")]
        {
            assert_eq!(when(now.minus(Span::from_s(s)), now), text);
        }
        assert_eq!(when(now.plus(Span::from_s(7_200)), now), "in 2h0m");
    }
}
