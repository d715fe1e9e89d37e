//! One thing shown for people: a line per field, name and value.

use unicode_width::UnicodeWidthStr;

use crate::output::printable;

/// Fields and their values, in order.
#[derive(Debug, Default)]
pub struct Page {
    lines: Vec<(String, String)>,
}

impl Page {
    /// Adds a field.
    pub fn field(&mut self, name: &str, value: impl ToString) -> &mut Self {
        self.lines.push((name.to_owned(), printable(&value.to_string())));
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
        let width = self.lines.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, value) in &self.lines {
            for (at, line) in value.lines().enumerate().map(|(at, line)| (at, line.trim_end())) {
                let name = if at == 0 { name.as_str() } else { "" };
                text.push_str(name);
                text.extend(std::iter::repeat_n(' ', width + 2 - name.width()));
                text.push_str(line);
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
}
