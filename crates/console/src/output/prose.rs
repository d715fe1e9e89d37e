//! Prose for people: lines no wider than the terminal.

use unicode_width::UnicodeWidthStr;

use crate::output::width;

/// A text in lines of at most `width` columns, each except the first behind `hang`. A word that is wider than that has
/// a line of its own, and stays whole: somebody will want to paste it.
pub fn wrapped(text: &str, width: usize, hang: &str) -> String {
    let (mut all, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        if used > 0 && used + 1 + word.width() > width {
            all.push('\n');
            all.push_str(hang);
            used = hang.width();
        } else if used > 0 {
            all.push(' ');
            used += 1;
        }
        all.push_str(word);
        used += word.width();
    }
    all
}

/// A page of Markdown as plain text: headings, paragraphs, lists and code.
pub fn plain(markdown: &str) -> String {
    let width = width::of_prose();
    let (mut text, mut block, mut is_code) = (String::new(), String::new(), false);
    let end = |block: &mut String, text: &mut String| {
        let hang = if block.starts_with("- ") { "  " } else { "" };
        if !block.is_empty() {
            text.push_str(&(wrapped(block, width, hang) + "\n"));
            block.clear();
        }
    };
    for line in markdown.lines() {
        let heading = line.trim_start_matches('#').trim_start();
        match line {
            line if line.starts_with("```") => {
                end(&mut block, &mut text);
                is_code = !is_code;
            }
            line if is_code => text.push_str(&format!("  {line}\n")),
            "" => {
                end(&mut block, &mut text);
                text.push('\n');
            }
            line if heading.len() < line.len() && line.starts_with('#') => {
                end(&mut block, &mut text);
                text.push_str(&format!("{heading}\n"));
            }
            line => {
                if line.starts_with("- ") {
                    end(&mut block, &mut text);
                }
                block.push_str(&format!("{} ", without_links(line)));
            }
        }
    }
    end(&mut block, &mut text);
    text
}

/// `[text](address)` is the text alone: the address is a file that is not here.
fn without_links(line: &str) -> String {
    let (mut text, mut rest) = (String::new(), line);
    while let Some((before, link)) = rest.split_once('[') {
        let parts = link
            .split_once("](")
            .and_then(|(shown, after)| Some((shown, after.split_once(')')?.1)));
        let Some((shown, after)) = parts else { break };
        text.push_str(before);
        text.push_str(shown);
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_no_wider_and_words_stay_whole() {
        assert_eq!(wrapped("one two three", 8, "  "), "one two\n  three");
        assert_eq!(wrapped("a verylongword b", 6, ""), "a\nverylongword\nb");
        assert_eq!(wrapped("", 6, "  "), "");
        assert_eq!(wrapped("größe 日本 x", 10, ""), "größe 日本\nx");
    }

    #[test]
    fn links_lose_their_addresses_and_brackets_stay() {
        for (line, plain) in [
            ("see [the guide](../a.md), [`b`](b.md)", "see the guide, `b`"),
            ("a [1, 2] b", "a [1, 2] b"),
            ("{\"a\":[]}", "{\"a\":[]}"),
        ] {
            assert_eq!(without_links(line), plain);
        }
    }
}
