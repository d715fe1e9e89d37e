//! The codec of text rows: about as short as [`codec`](crate::rows::codec), and always valid UTF-8.
//!
//! A number is digits of five bits, the lowest first: the last digit starts at `0`, each before it at `P`. A text is
//! its length and itself. Reading such a row needs no JSON parser, and the table of rows holds it like any other row.
//! The store's format number stands for this layout too. Reading never panics: a text of another form is `None`.

use tenure_core::time::{Moment, Span};

/// The base of a number's last digit.
const LAST: u8 = b'0';
/// The base of a digit that others follow.
const MORE: u8 = b'P';
/// Bits in one digit of a number.
const BITS: u32 = 5;

/// Writes values one after another.
#[derive(Default)]
pub(crate) struct TextWriter(String);

impl TextWriter {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        TextWriter(String::with_capacity(bytes))
    }
    pub(crate) fn finish(self) -> String {
        self.0
    }
    pub(crate) fn u64(&mut self, mut value: u64) {
        let digit = |value: u64| (value & 0x1f) as u8;
        while value > 0x1f {
            self.0.push(char::from(MORE + digit(value)));
            value >>= BITS;
        }
        self.0.push(char::from(LAST + digit(value)));
    }
    pub(crate) fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.0.push_str(text);
    }
    pub(crate) fn moment(&mut self, at: Moment) {
        self.u64(at.us());
    }
    pub(crate) fn span(&mut self, span: Span) {
        self.u64(span.us());
    }
}

/// Reads what [`TextWriter`] wrote, in the same order.
pub(crate) struct TextReader<'a>(&'a str);

impl<'a> TextReader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        TextReader(text)
    }
    /// True if all of the text was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn u64(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut shift = 0;
        for (at, byte) in self.0.bytes().enumerate() {
            let (digit, is_last) = match byte {
                LAST..MORE => (byte - LAST, true),
                MORE..=b'o' => (byte - MORE, false),
                _ => return None,
            };
            let bits = u64::from(digit) << shift;
            if shift >= u64::BITS || bits >> shift != u64::from(digit) {
                return None;
            }
            value |= bits;
            if is_last {
                self.0 = self.0.get(at + 1..)?;
                return Some(value);
            }
            shift += BITS;
            if shift >= u64::BITS {
                return None;
            }
        }
        None
    }
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.u64()?.try_into().ok()
    }
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let len = usize::try_from(self.u64()?).ok()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(text)
    }
    pub(crate) fn moment(&mut self) -> Option<Moment> {
        self.u64().map(Moment::from_us)
    }
    pub(crate) fn span(&mut self) -> Option<Span> {
        self.u64().map(Span::from_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_written() {
        let numbers = [0, 1, 31, 32, 1_023, 1_024, 1_700_000_000_000_000, u64::MAX];
        let mut writer = TextWriter::default();
        for number in numbers {
            writer.u64(number);
            writer.text("größe");
        }
        let text = writer.finish();
        let mut reader = TextReader::new(&text);
        for number in numbers {
            assert_eq!(reader.u64(), Some(number));
            assert_eq!(reader.text(), Some("größe"));
        }
        assert!(reader.is_at_end());
    }

    #[test]
    fn a_small_number_is_one_letter() {
        let mut writer = TextWriter::default();
        writer.u64(31);
        assert_eq!(writer.finish(), "O");
    }

    #[test]
    fn what_is_no_number_or_text_is_none() {
        // Nothing, a digit that others should follow, no digit, more than 64 bits, and the same by its last digit.
        for text in ["", "P", "!", "oooooooooooooo0", "ooooooooooooO"] {
            assert_eq!(TextReader::new(text).u64(), None, "{text}");
        }
        // Longer than the rest, and an end within a letter.
        for text in ["2a", "1ü"] {
            assert_eq!(TextReader::new(text).text(), None, "{text}");
        }
    }
}
