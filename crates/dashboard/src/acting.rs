//! Turns a form into the body of an API call, and leads back to a page that shows the result.

use serde_json::{Map, Value};

use crate::pairs;
use crate::visit::{Drawn, Unanswered, Visit};

/// The conversion of a form's field into a field of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    /// As text; left out if it is empty.
    Text,
    /// As text; null, for the default, if the field is empty; left out if the form has no such field.
    TextOrNull,
    /// As a number; left out if it is empty. Any other text stays text, and the reader of the API refuses it with its
    /// own sentence.
    Number,
    /// As a number; null if the field is empty; left out if the form has no such field.
    NumberOrNull,
}

/// The body for the fields of a form, as JSON.
pub(crate) fn said(visit: &Visit, fields: &[(&str, Field)]) -> String {
    Value::Object(body(visit, fields)).to_string()
}

/// The same, for a page that adds fields.
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

/// Redirects to the page at these parts of a path, with a query that names the action.
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
