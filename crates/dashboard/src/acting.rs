//! From a form to the body of the API's call, and back to a page that says what was done.

use serde_json::{Map, Value};

use crate::pairs;
use crate::visit::{Drawn, Unanswered, Visit};

/// How a field of a form becomes a field of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    /// As text; left out if it is empty.
    Text,
    /// As text; null, which is the default, if it is there and empty; left out if the form has no such field.
    TextOrNull,
    /// As a number; left out if it is empty. What is no number stays text, and is refused by the reader of the API with
    /// its own sentence.
    Number,
    /// As a number; null if it is there and empty; left out if the form has no such field.
    NumberOrNull,
}

/// The body that the fields of a form come to, as JSON.
pub(crate) fn said(visit: &Visit, fields: &[(&str, Field)]) -> String {
    Value::Object(body(visit, fields)).to_string()
}

/// The same, for a page that adds to it.
pub(crate) fn body(visit: &Visit, fields: &[(&str, Field)]) -> Map<String, Value> {
    let mut body = Map::new();
    for (name, field) in fields {
        let text = visit.form.get(name).map(str::trim).filter(|text| !text.is_empty());
        let value = match (field, text) {
            (Field::Text | Field::TextOrNull, Some(text)) => Value::from(text),
            (Field::Number | Field::NumberOrNull, Some(text)) => number(text),
            (Field::TextOrNull | Field::NumberOrNull, None) if visit.form.has(name) => Value::Null,
            (_, None) => continue,
        };
        body.insert((*name).to_owned(), value);
    }
    body
}

fn number(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from)
}

/// To the page at these parts of a path, with a query that says what was done.
pub(crate) fn back_to(
    visit: &Visit,
    parts: &[&str],
    query: &[(&str, &str)],
) -> Result<Drawn, Unanswered> {
    Ok(Drawn::Elsewhere(visit.link_with(&pairs::path(parts), query)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_stays_what_it_is() {
        assert_eq!(number("8"), Value::from(8));
        assert_eq!(number("-3"), Value::from(-3));
        assert_eq!(number("8.5"), Value::from("8.5"));
        assert_eq!(number("many"), Value::from("many"));
    }
}
