//! The encoding of a job's row: small, exact, and read a million times at a start.
//!
//! Numbers are varints, texts are length and bytes, an absent value is a zero byte. The store's format number stands
//! for this layout: a change must raise that number and migrate. Reading never panics: bytes of another form are
//! `None`.

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
        self.bytes(text.as_bytes());
    }
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
    /// Writes a value that is often equal to the one `before`: then it takes one byte.
    pub(crate) fn again<'a>(&mut self, before: &mut Option<&'a [u8]>, value: &'a [u8]) {
        if *before == Some(value) {
            return self.byte(0);
        }
        *before = Some(value);
        self.u64(value.len() as u64 + 1);
        self.0.extend_from_slice(value);
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
    /// True if all bytes were read: a field that an older format lacks is then absent.
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
        std::str::from_utf8(self.bytes()?).ok()
    }
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u64()?;
        self.some(len)
    }
    fn some(&mut self, len: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }
    /// The counterpart of [`Writer::again`]; `read` is called only for a value unlike the one `before`.
    pub(crate) fn again<T: Clone>(
        &mut self,
        before: &mut Option<T>,
        read: impl FnOnce(&'a [u8]) -> Option<T>,
    ) -> Option<T> {
        if let Some(len) = self.u64()?.checked_sub(1) {
            *before = Some(read(self.some(len)?)?);
        }
        before.clone()
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
