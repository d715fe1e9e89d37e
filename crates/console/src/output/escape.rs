//! Characters that steer a terminal, or turn around the text beside them, are written as escapes.
//!
//! A name may hold any text that somebody typed elsewhere. Escaped, it shows every character and cannot be taken for
//! something else.

use std::borrow::Cow;
use std::fmt::Write;

/// Text for people. Line breaks and tabs stay: tables and pages are made of them.
pub fn text(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_unseen(c) && !matches!(c, '\n' | '\t'))
}

/// A JSON document, which stays the same document: outside of ASCII a character can only stand in a string, where its
/// escape means the same.
pub fn json(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_unseen(c) && (!c.is_ascii() || c == '\u{7f}'))
}

/// Control characters, those that end a line, and those that set the direction of what follows.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            // All of them lie below U+FFFF, where one escape of JSON is enough. A string takes all that is written to it.
            let _ = write!(clean, "\\u{:04x}", u32::from(c));
        } else {
            clean.push(c);
        }
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSEEN: &str = "\u{7f}\u{80}\u{85}\u{9b}\u{9f}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}";

    #[test]
    fn what_steers_a_terminal_is_shown_as_what_it_is() {
        assert_eq!(
            text("a\u{1b}[31m\r\u{9b}2J\u{202e}b\n\tc"),
            "a\\u001b[31m\\u000d\\u009b2J\\u202eb\n\tc"
        );
        for c in UNSEEN.chars() {
            assert_eq!(text(&c.to_string()), format!("\\u{:04x}", u32::from(c)));
        }
        for seen in ["größe 日本 🎉", "שלום", "a\u{a0}b", "👩\u{200d}🚀"] {
            assert!(matches!(text(seen), Cow::Borrowed(_)), "{seen}");
        }
    }

    #[test]
    fn a_document_stays_the_same_document() {
        let value = serde_json::json!({ UNSEEN: [format!("\u{1b}\\{UNSEEN}\"ä\n"), 1.5, null] });
        for written in [serde_json::to_string(&value), serde_json::to_string_pretty(&value)] {
            let written = written.unwrap();
            let clean = json(&written);
            assert!(!clean.chars().any(|c| is_unseen(c) && c != '\n'), "{clean}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&clean).unwrap(), value);
        }
        // White space between the parts of a document is no part of it.
        assert_eq!(json("{\r\n\t\"a\": 1}"), "{\r\n\t\"a\": 1}");
    }
}
