//! One line of a payload, for lists. It must never show more than a line, no character that draws as something else,
//! and no secret that can be recognised: the login in an address, and text below a name such as `password`.

use maud::{Markup, html};
use tenure_core::leased::without_leased;
use tenure_core::secret::{HIDDEN, Json};

use super::bidi::turns;

/// Characters of a line.
const SHOWN_MAX: usize = 160;
/// Bytes of a payload that are read. A text that ends behind them is not shown, since its end may show that it has a
/// login.
const READ_MAX: usize = 4 * 1024;
/// Parts of the names, in small letters, whose texts are hidden. Numbers are shown: `max_tokens` is one.
const SECRET_NAMES: [&str; 9] = [
    "password",
    "passwd",
    "secret",
    "token",
    "authorization",
    "cookie",
    "credential",
    "apikey",
    "api_key",
];

/// The first line of a payload as it was pushed, without its blanks; `None` if it is null or empty.
pub(crate) fn payload_line(payload: &Json) -> Option<String> {
    let text = payload.text();
    let line = match text.trim() {
        "" | "null" | "{}" | "[]" => return None,
        text => written(text),
    };
    let cut = line.char_indices().nth(SHOWN_MAX).map(|(at, _)| at);
    Some(match cut {
        Some(at) => format!("{}…", &line[..at]),
        None => line,
    })
}

/// JSON without blanks between its parts, up to `READ_MAX`, with secrets hidden.
fn written(text: &str) -> String {
    let mut line = String::with_capacity(SHOWN_MAX * 2);
    let mut rest = text;
    // For each open object or array whether its content is hidden, and whether the value after the last name is.
    let (mut open, mut is_hidden): (Vec<bool>, bool) = (Vec::new(), false);
    while let Some(c) = rest.chars().next() {
        if line.len() > SHOWN_MAX * 4 || text.len() - rest.len() > READ_MAX {
            line.push('…');
            break;
        }
        if c != '"' {
            match c {
                '{' | '[' => open.push(is_hidden),
                '}' | ']' => {
                    open.pop();
                    is_hidden = open.last().copied().unwrap_or(false);
                }
                ',' => is_hidden = open.last().copied().unwrap_or(false),
                _ => {}
            }
            if !c.is_whitespace() {
                line.push(c);
            }
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let end = end_of_string(rest).filter(|end| *end <= READ_MAX);
        let Some(string) =
            end.and_then(|end| serde_json::from_str::<String>(&rest[..end]).ok().map(|s| (s, end)))
        else {
            line.push_str("\"…");
            break;
        };
        let (string, end) = string;
        rest = &rest[end..];
        let is_name = rest.trim_start().starts_with(':');
        if is_name {
            let name = string.to_lowercase();
            is_hidden |= SECRET_NAMES.iter().any(|part| name.contains(part));
        }
        let shown =
            if is_hidden && !is_name { HIDDEN.to_owned() } else { without_leased(&string, &[]) };
        push_visible(&mut line, &serde_json::Value::from(shown).to_string());
    }
    line
}

/// The end of the JSON string with which a text begins.
fn end_of_string(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !is_escaped => return Some(at + 1),
            b'\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    None
}

/// Characters that end a line, draw nothing, or change the direction of text are written as their numbers.
fn push_visible(line: &mut String, text: &str) {
    for c in text.chars() {
        let is_unseen = matches!(c, '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{feff}');
        if c.is_control() || is_unseen || turns(c) {
            line.extend(c.escape_unicode());
        } else {
            line.push(c);
        }
    }
}

/// The line below a row of a list: `boxes` and `cells` are the columns of the row, and the cells of boxes stay empty.
pub(crate) fn payload_row(line: Option<&str>, has_boxes: bool, cells: usize) -> Markup {
    html! {
        @if let Some(line) = line {
            tr class="carries" {
                @if has_boxes { td class="c-box" {} }
                td colspan=(cells) class="mono faint" title=(line) { (line) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<String> {
        payload_line(&Json::parse(text).unwrap())
    }

    #[test]
    fn a_payload_is_one_line_that_shows_no_secret_and_turns_no_text() {
        for (payload, shown) in [
            (
                r#"{"url": "https://a.b/c",  "n": [1, 2.50]}"#,
                r#"{"url":"https://a.b/c","n":[1,2.50]}"#,
            ),
            ("{\n  \"a\": \"b c\"\n}", r#"{"a":"b c"}"#),
            (r#""two\nlines""#, r#""two\nlines""#),
            (
                "\"bad\u{202e}tpircs \u{85}\u{2028}\u{200b}\"",
                r#""bad\u{202e}tpircs \u{85}\u{2028}\u{200b}""#,
            ),
            (r#""bad\u202etpircs""#, r#""bad\u{202e}tpircs""#),
            (r#"{"\u202ek":1}"#, r#"{"\u{202e}k":1}"#),
            (r#"{"q":"\"\\"}"#, r#"{"q":"\"\\"}"#),
            ("7", "7"),
            (r#"{"proxy":"http://ann:pw@p:1/x"}"#, r#"{"proxy":"http://•••@p:1/x"}"#),
            (r#"{"proxy":"http:\/\/ann:pw@p:1"}"#, r#"{"proxy":"http://•••@p:1"}"#),
            (r#"{"user":"ann","Password":"pw"}"#, r#"{"user":"ann","Password":"•••"}"#),
            (
                r#"{"max_tokens":5,"token":"t","n":"x"}"#,
                r#"{"max_tokens":5,"token":"•••","n":"x"}"#,
            ),
            (
                r#"{"cookies":[{"a":"b"},"c"],"d":"e"}"#,
                r#"{"cookies":[{"a":"•••"},"•••"],"d":"e"}"#,
            ),
            (r#"{"\u0070assword":"pw"}"#, r#"{"password":"•••"}"#),
        ] {
            assert_eq!(line(payload).as_deref(), Some(shown), "{payload}");
        }
        for none in ["null", "{}", "[]", " {} "] {
            assert_eq!(line(none), None, "{none}");
        }
    }

    #[test]
    fn a_line_is_short_however_long_its_payload() {
        let long =
            line(&format!(r#"{{"a":"{}","b":"http://ann:pw@h"}}"#, "é".repeat(1_000))).unwrap();
        assert_eq!(long.chars().count(), SHOWN_MAX + 1);
        assert!(long.ends_with("é…"), "{long}");
        // The end that shows the login is behind the part that is read.
        let cut = line(&format!(r#"["http://ann:{}@h"]"#, "p".repeat(READ_MAX))).unwrap();
        assert_eq!(cut, "[\"…");
        let cut = line(&format!("[{}1]", "1,".repeat(5_000))).unwrap();
        assert_eq!(cut.chars().count(), SHOWN_MAX + 1);
    }
}
