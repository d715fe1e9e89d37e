//! The languages of the pages, and the form of their sentences.
//!
//! Each file has a table of its sentences, with both languages side by side, so that nobody changes one without seeing
//! the other. No sentence stands in a template.

use http::header::{ACCEPT_LANGUAGE, HeaderMap};

/// A language of the pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tongue {
    English,
    Chinese,
}

impl Tongue {
    /// The language that a browser prefers; English if its header names neither.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let header = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let mut best = (0, Tongue::English);
        for part in header.unwrap_or_default().split(',') {
            let (tag, weight) = part.split_once(";q=").unwrap_or((part, "1"));
            let primary = tag.trim().split('-').next().unwrap_or_default();
            let tongue = match primary.to_ascii_lowercase().as_str() {
                "en" => Tongue::English,
                "zh" => Tongue::Chinese,
                _ => continue,
            };
            let weight = weight.trim().parse::<f32>().unwrap_or(0.0).clamp(0.0, 1.0);
            // In thousandths, like the header.
            let weight = (weight * 1_000.0) as u32;
            if weight > best.0 {
                best = (weight, tongue);
            }
        }
        best.1
    }

    /// The language code of HTML.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Tongue::English => "en",
            Tongue::Chinese => "zh-CN",
        }
    }
}

/// A table of sentences: `sentences! { Says; gone: "It is gone.", "已不存在。"; full(n): "{n} wait.", "{n} 个在等待。"; }` makes
/// a type with a method for each sentence, in the language with which the value was made.
macro_rules! sentences {
    ($Name:ident; $($key:ident $(($($part:ident),+))?: $english:literal, $chinese:literal;)*) => {
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $Name(pub(crate) $crate::language::Tongue);

        impl $Name {
            $(pub(crate) fn $key(self $($(, $part: impl ::std::fmt::Display)+)?) -> String {
                match self.0 {
                    $crate::language::Tongue::English => format!($english),
                    $crate::language::Tongue::Chinese => format!($chinese),
                }
            })*
        }
    };
}
pub(crate) use sentences;

#[cfg(test)]
mod tests {
    use super::*;

    sentences! { Says;
        empty: "Nothing is here.", "这里什么都没有。";
        full(name, n): "{name} is full: {n} wait.", "{name} 已满：{n} 个在等待。";
    }

    #[test]
    fn the_language_is_the_one_that_the_browser_likes_best() {
        for (header, tongue) in [
            ("", Tongue::English),
            ("zh-CN,zh;q=0.9,en;q=0.8", Tongue::Chinese),
            ("en-GB,en;q=0.9,zh;q=0.8", Tongue::English),
            ("de-DE,de;q=0.9,zh-TW;q=0.5,en;q=0.4", Tongue::Chinese),
            ("fr", Tongue::English),
            ("zh;q=x", Tongue::English),
            ("zh;q=0, en;q=0", Tongue::English),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_LANGUAGE, header.parse().unwrap());
            assert_eq!(Tongue::of(&headers), tongue, "{header}");
        }
    }

    #[test]
    fn a_sentence_is_said_in_its_language() {
        assert_eq!(Says(Tongue::English).full("site", 3), "site is full: 3 wait.");
        assert_eq!(Says(Tongue::Chinese).full("site", 3), "site 已满：3 个在等待。");
        assert_eq!(Says(Tongue::Chinese).empty(), "这里什么都没有。");
    }
}
