//! Characters that change the direction of text: a name with one reads as another name. Pages show their numbers
//! instead.

/// Whether a character changes the direction of the text after it.
pub(super) fn turns(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A page with such characters in its text written as `\u{202e}`. Values that a form sends back, and the text of a
/// `textarea`, stay as they are.
pub(crate) fn without_turns(page: String) -> String {
    if !page.contains(turns) {
        return page;
    }
    let mut shown = String::with_capacity(page.len() + 64);
    let mut rest = page.as_str();
    // In text a `<` always begins a tag, and in a tag a `>` ends it: both are escaped elsewhere.
    while let Some((text, tagged)) = rest.split_once('<') {
        let end = if tagged.starts_with("textarea") { "</textarea>" } else { ">" };
        let (tag, after) =
            tagged.split_at(tagged.find(end).map_or(tagged.len(), |at| at + end.len()));
        push_shown(&mut shown, text);
        shown.push('<');
        shown.push_str(tag);
        rest = after;
    }
    push_shown(&mut shown, rest);
    shown
}

fn push_shown(shown: &mut String, text: &str) {
    for c in text.chars() {
        if turns(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_as_it_is_stored_and_forms_send_what_they_got() {
        let page = "<a title=\"x\u{202e}y\">bad\u{202e}tpircs</a><input value=\"\u{2066}\">\
                    <textarea name=\"p\">\u{202e}</textarea>a\u{200f}b";
        let shown = "<a title=\"x\u{202e}y\">bad\\u{202e}tpircs</a><input value=\"\u{2066}\">\
                     <textarea name=\"p\">\u{202e}</textarea>a\\u{200f}b";
        assert_eq!(without_turns(page.to_owned()), shown);
        assert_eq!(without_turns("<p>plain</p>".to_owned()), "<p>plain</p>");
    }
}
