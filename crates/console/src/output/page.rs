//! One thing shown for people: a line per field, name and value.

use unicode_width::UnicodeWidthStr;

use crate::output::printable;

/// Fields and their values, in order.
#[derive(Debug, Default)]
pub struct Page {
    lines: Vec<Field>,
}

/// A name, its value, and what stands beside the value; the notes of all fields stand in one column.
#[derive(Debug)]
struct Field {
    name: String,
    value: String,
    note: String,
}

impl Page {
    pub fn field(&mut self, name: &str, value: impl ToString) -> &mut Self {
        self.noted(name, value, "")
    }
    /// Adds a field of one line with a note beside it; an empty note is left out.
    pub fn noted(&mut self, name: &str, value: impl ToString, note: &str) -> &mut Self {
        let (name, value) = (name.to_owned(), printable(&value.to_string()));
        self.lines.push(Field { name, value, note: printable(note) });
        self
    }
    /// Adds a field if it has a value.
    pub fn maybe<T: ToString>(&mut self, name: &str, value: Option<T>) -> &mut Self {
        if let Some(value) = value {
            self.field(name, value);
        }
        self
    }
    /// The text; a value of several lines goes on below itself.
    pub fn render(&self) -> String {
        let width = self.lines.iter().map(|field| field.name.width()).max().unwrap_or(0);
        let noted = self.lines.iter().filter(|field| !field.note.is_empty());
        let beside = noted.map(|field| field.value.width()).max().unwrap_or(0);
        let mut text = String::new();
        for Field { name, value, note } in &self.lines {
            for (at, line) in value.lines().enumerate() {
                let mut line = line.to_owned();
                let name = if at == 0 { name.as_str() } else { "" };
                if at == 0 && !note.is_empty() {
                    line.extend(std::iter::repeat_n(' ', beside + 2 - line.width().min(beside)));
                    line.push_str(note);
                }
                text.push_str(name);
                text.extend(std::iter::repeat_n(' ', width + 2 - name.width()));
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_several_lines_goes_on_below_itself() {
        let mut page = Page::default();
        page.field("id", "a").maybe("none", None::<u8>).field("error", "x\ny");
        assert_eq!(page.render(), "id     a\nerror  x\n       y\n");
    }
    #[test]
    fn notes_stand_in_one_column() {
        let mut page = Page::default();
        page.noted("id", "abc", "of x").noted("job", "q", "needs y").field("state", "a long one");
        page.noted("none", "z", "");
        assert_eq!(
            page.render(),
            "id     abc  of x\njob    q    needs y\nstate  a long one\nnone   z\n"
        );
    }
}
