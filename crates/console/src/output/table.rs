//! Tables for people: columns as wide as what stands in them, two spaces between, nothing else.

use tenure_core::count::rough;
use tenure_core::time::Moment;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::{printable, width};

/// Longest text shown in one cell; what is cut can be seen with `--json`.
const CELL_WIDTH_MAX: usize = 60;

/// Spaces between two columns; one where the table would not fit otherwise.
const GAP: usize = 2;
/// Stands for what is left out of a cell.
pub const CUT: char = '…';
/// An id that does not fit is cut in the middle, to no fewer than this.
const ID_WIDTH_MIN: usize = 16;
/// Other cells that do not fit are cut at their end, to no fewer than this.
const TEXT_WIDTH_MIN: usize = 12;

/// A table of texts.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    numbers: Vec<String>,
    ids: Vec<String>,
}

impl Table {
    /// A table with this head.
    pub fn new(head: &[&str]) -> Self {
        let head = head.iter().map(|cell| (*cell).to_owned()).collect();
        Table { rows: vec![head], ..Table::default() }
    }
    /// The columns under these heads are numbers, which are read from their last digit.
    pub fn numbers(mut self, heads: &[&str]) -> Self {
        self.numbers = heads.iter().map(|head| (*head).to_owned()).collect();
        self
    }
    /// The columns under these heads are long ids of the machine: the first to be cut where the table is too wide.
    pub fn ids(mut self, heads: &[&str]) -> Self {
        self.ids = heads.iter().map(|head| (*head).to_owned()).collect();
        self
    }
    /// Adds a row; texts wider than `CELL_WIDTH_MAX` are cut.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| shorten(&cell)).collect());
    }
    /// Whether it has nothing but its head.
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }
    /// The text, each line with its end; `nothing` if there are no rows. No wider than the terminal.
    pub fn render(&self, nothing: &str) -> String {
        self.render_within(width::of_stdout(), nothing)
    }
    /// The same, no wider than `most` columns.
    pub fn render_within(&self, most: Option<usize>, nothing: &str) -> String {
        if self.is_empty() {
            return format!("{nothing}\n");
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..columns)
            .map(|at| self.rows.iter().filter_map(|row| row.get(at)).map(|c| c.width()).max())
            .map(|width| width.unwrap_or(0))
            .collect();
        let gap = most.map_or(GAP, |most| self.fit(&mut widths, most));
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let cell = cut(cell, *width);
                let rest = std::iter::repeat_n(' ', width - cell.width());
                if self.is_among(&self.numbers, at) {
                    line.extend(rest);
                    line.push_str(&cell);
                } else {
                    line.push_str(&cell);
                    line.extend(rest);
                }
                line.extend(std::iter::repeat_n(' ', gap));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
    fn is_among(&self, heads: &[String], at: usize) -> bool {
        self.rows[0].get(at).is_some_and(|head| heads.contains(head))
    }
    /// Narrows the ids, and then the widest columns, until the table fits or nothing more can be cut. Returns the
    /// number of spaces between columns.
    fn fit(&self, widths: &mut [usize], most: usize) -> usize {
        let least = |at: usize| {
            let head = self.rows[0].get(at).map_or(0, |head| head.width());
            match (self.is_among(&self.numbers, at), self.is_among(&self.ids, at)) {
                (true, _) => usize::MAX,
                (_, true) => head.max(ID_WIDTH_MIN),
                _ => head.max(TEXT_WIDTH_MIN),
            }
        };
        let gaps = widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + GAP * gaps > most {
            let can_shrink = |at: &usize| widths[*at] > least(*at);
            let priority = |at: &usize| (self.is_among(&self.ids, *at), widths[*at]);
            let Some(at) = (0..widths.len()).filter(can_shrink).max_by_key(priority) else {
                return 1;
            };
            widths[at] -= 1;
        }
        GAP
    }
}

/// A cell within a width: a text without its end; an id without its middle, since what tells it from others may stand
/// at either end.
fn cut(cell: &str, width: usize) -> String {
    if cell.width() <= width {
        return cell.to_owned();
    }
    let kept = width.saturating_sub(1);
    let tail = if cell.contains(' ') { 0 } else { kept / 2 };
    let end = taken(cell.chars().rev(), tail).into_iter().rev();
    taken(cell.chars(), kept - tail).into_iter().chain([CUT]).chain(end).collect()
}

/// As many of these as fit.
fn taken(chars: impl Iterator<Item = char>, width: usize) -> Vec<char> {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= width
        })
        .collect()
}

fn shorten(cell: &str) -> String {
    let one_line = printable(cell).replace(['\n', '\t'], " ");
    // A word without a space is a name or an id: somebody will want to paste it.
    if one_line.width() <= CELL_WIDTH_MAX || !one_line.contains(' ') {
        return one_line;
    }
    cut(&one_line, CELL_WIDTH_MAX)
}

/// `-` for an absent value.
pub fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::time::Span;

    #[test]
    fn columns_are_as_wide_as_what_stands_in_them() {
        let mut table = Table::new(&["NAME", "N"]);
        table.row(["größe".into(), "1".into()]);
        table.row(["日本".into(), "22".into()]);
        assert_eq!(table.render("nothing"), "NAME   N\ngröße  1\n日本   22\n");
        assert_eq!(Table::new(&["A"]).render("no jobs"), "no jobs\n");
    }

    #[test]
    fn numbers_stand_at_the_right() {
        let mut table = Table::new(&["NAME", "N", "X"]).numbers(&["N"]);
        table.row(["a".into(), "1".into(), "x".into()]);
        table.row(["b".into(), "1,200".into(), "y".into()]);
        assert_eq!(
            table.render_within(None, ""),
            "NAME      N  X\na         1  x\nb     1,200  y\n"
        );
    }

    #[test]
    fn a_table_that_is_too_wide_loses_ids_first_and_no_number() {
        let mut table = Table::new(&["NOTE", "N", "LEASE"]).numbers(&["N"]).ids(&["LEASE"]);
        let (note, id) = ("it cannot be reached at all", "l_0123456789abcdefghijklmnopqrstuvwxyz");
        table.row([note.into(), "1234567".into(), id.into()]);
        let at = |width| table.render_within(width, "").lines().nth(1).unwrap().to_owned();
        assert_eq!(at(None), format!("{note}  1234567  {id}"));
        assert_eq!(at(Some(60)), format!("{note}  1234567  l_012345678…qrstuvwxyz"));
        assert_eq!(at(Some(50)), "it cannot be reached a…  1234567  l_012345…tuvwxyz".to_owned());
        for width in 46..80 {
            assert!(at(Some(width)).width() <= width);
        }
        // It cannot be as narrow as that.
        assert!(at(Some(10)).starts_with("it cannot b…"));
    }

    #[test]
    fn wide_letters_are_cut_whole() {
        assert_eq!(cut("日本語日本語", 6), "日…語");
        assert_eq!(cut("日本 語日本語", 6), "日本 …");
        assert_eq!(cut("abc", 3), "abc");
    }

    #[test]
    fn a_cell_is_one_short_line_that_steers_no_terminal() {
        assert_eq!(shorten("a\nb\u{1b}[31m"), "a b\\u001b[31m");
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
