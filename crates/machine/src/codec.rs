//! The bytes of a job's row: small, exact, and read a million times at a start.
//!
//! Numbers are varints, texts are length and bytes, an absent value is a zero byte. The store's
//! format number stands for this layout: whoever changes it raises that number and migrates.
//! Reading never panics: bytes that are not of this form are `None`.

use tenure_core::time::{Moment, Span};

/// Writes values one after another.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Writer(Vec::with_capacity(bytes))
    }
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
    pub(crate) fn u64(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
    pub(crate) fn u32(&mut self, value: u32) {
        self.u64(u64::from(value));
    }
    pub(crate) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }
    pub(crate) fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }
    pub(crate) fn moment(&mut self, at: Moment) {
        self.u64(at.us());
    }
    pub(crate) fn span(&mut self, span: Span) {
        self.u64(span.us());
    }
    pub(crate) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            None => self.byte(0),
            Some(value) => {
                self.byte(1);
                write(self, value);
            }
        }
    }
}

/// Reads what [`Writer`] wrote, in the same order.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// Whether all was read: a field that an older format did not have is absent then.
    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn u64(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            shift += 7;
            if shift > 63 {
                return None;
            }
        }
    }
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.u64()?.try_into().ok()
    }
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let len = usize::try_from(self.u64()?).ok()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
    pub(crate) fn moment(&mut self) -> Option<Moment> {
        self.u64().map(Moment::from_us)
    }
    pub(crate) fn span(&mut self) -> Option<Span> {
        self.u64().map(Span::from_us)
    }
    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            1 => Some(Some(read(self)?)),
            _ => None,
        }
    }
    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let len = self.u64()?;
        (0..len).map(|_| read(self)).collect()
    }
}
