//! Keys: their file, and what they do to a text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{Context, SHA256};
use ring::hkdf::{HKDF_SHA256, Salt};
use tenure_core::secret::Json;
use tenure_engine_api::ids::fill_random;

use super::contents::ContentMut;
use super::place::{ContentPlace, Unopened};

/// Begins each sealed text. No JSON value begins so, except a string, in which form a sealed value is kept as JSON.
pub(super) const MARK: &str = "tenure:sealed:1:";
/// The most keys of a file: one that seals, and those of some years before it.
const KEYS_MAX: usize = 8;
const KEY_BYTES: usize = 32;
/// Bytes of the salt of a process, and of the number of a text: they stand before the ciphertext.
const SALT_BYTES: usize = 16;
const NUMBER_BYTES: usize = 8;
/// Salts whose ciphers are kept, for each key. A store has those of the processes that led it.
const OPENED_MAX: usize = 64;
/// Keeps the keys of processes apart from other keys that could be made of the same one.
const PURPOSE: &[u8] = b"tenure seal 1";
/// Bytes of its hash that name a key.
const NAME_BYTES: usize = 4;

/// Why a file of keys cannot be used. It quotes nothing of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SealKeyError {
    #[error("it has no key; make one: openssl rand -base64 32")]
    Empty,
    #[error(
        "line {line} is not a key, which is 32 bytes in base64; make one: openssl rand -base64 32"
    )]
    NoKey { line: usize },
    #[error("line {line} has the key of an earlier line; remove one of them")]
    Twice { line: usize },
    #[error("it has more than {KEYS_MAX} keys; remove those with which nothing is sealed any more")]
    Many,
    #[error("the system gives no random numbers")]
    NoRandom,
}

/// A key of the file. Each process seals with one of its own, which is made of this one and the salt of the process: so a
/// counter is a nonce, and need not survive the process.
pub(super) struct SealKey {
    name: String,
    bytes: [u8; KEY_BYTES],
    /// The ciphers of the salts that were met last.
    opened: Mutex<HashMap<[u8; SALT_BYTES], Arc<LessSafeKey>>>,
}

impl SealKey {
    fn new(bytes: [u8; KEY_BYTES]) -> SealKey {
        let mut hash = Context::new(&SHA256);
        hash.update(b"tenure seal key ");
        hash.update(&bytes);
        let name = HEXLOWER.encode(&hash.finish().as_ref()[..NAME_BYTES]);
        SealKey { name, bytes, opened: Mutex::default() }
    }

    /// The first bytes of its hash, in hexadecimal.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The cipher of a process (RFC 5869, HKDF).
    fn cipher(&self, salt: &[u8; SALT_BYTES]) -> LessSafeKey {
        let secret = Salt::new(HKDF_SHA256, salt).extract(&self.bytes);
        let Ok(key) = secret.expand(&[PURPOSE], &AES_256_GCM) else {
            panic!("a key of 32 bytes can always be made")
        };
        LessSafeKey::new(UnboundKey::from(key))
    }

    fn known_cipher(&self, salt: &[u8; SALT_BYTES]) -> Arc<LessSafeKey> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cipher) = opened.get(salt) {
            return cipher.clone();
        }
        if opened.len() == OPENED_MAX {
            opened.clear();
        }
        opened.entry(*salt).or_insert_with(|| Arc::new(self.cipher(salt))).clone()
    }
}

/// The number as a nonce.
fn nonce(number: [u8; NUMBER_BYTES]) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[NONCE_LEN - NUMBER_BYTES..].copy_from_slice(&number);
    Nonce::assume_unique_for_key(nonce)
}

pub(super) struct SealKeys {
    first: SealKey,
    others: Vec<SealKey>,
    /// The salt of this process, and its cipher.
    salt: [u8; SALT_BYTES],
    cipher: LessSafeKey,
    /// The number of the next text.
    next: AtomicU64,
}

impl SealKeys {
    pub(super) fn read(text: &str) -> Result<SealKeys, SealKeyError> {
        let mut keys: Vec<SealKey> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let (line, text) = (at + 1, line.trim());
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let bytes = BASE64.decode(text.as_bytes()).ok();
            let bytes = bytes.and_then(|bytes| <[u8; KEY_BYTES]>::try_from(bytes).ok());
            let key = SealKey::new(bytes.ok_or(SealKeyError::NoKey { line })?);
            if keys.iter().any(|there| there.name == key.name) {
                return Err(SealKeyError::Twice { line });
            }
            keys.push(key);
        }
        if keys.len() > KEYS_MAX {
            return Err(SealKeyError::Many);
        }
        let mut salt = [0; SALT_BYTES];
        fill_random(&mut salt).map_err(|_| SealKeyError::NoRandom)?;
        let mut keys = keys.into_iter();
        let first = keys.next().ok_or(SealKeyError::Empty)?;
        let cipher = first.cipher(&salt);
        Ok(SealKeys { first, others: keys.collect(), salt, cipher, next: AtomicU64::new(0) })
    }

    /// The key that seals.
    pub(super) fn first(&self) -> &SealKey {
        &self.first
    }

    pub(super) fn named(&self, name: &str) -> Option<&SealKey> {
        std::iter::once(&self.first).chain(&self.others).find(|key| key.name == name)
    }

    /// Writes a sealed text behind `text`.
    fn seal_into(&self, text: &mut String, place: &ContentPlace<'_>, clear: &str) {
        let number = self.next.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        let head = SALT_BYTES + NUMBER_BYTES;
        let mut bytes = Vec::with_capacity(head + clear.len() + AES_256_GCM.tag_len());
        bytes.extend_from_slice(&self.salt);
        bytes.extend_from_slice(&number);
        bytes.extend_from_slice(clear.as_bytes());
        let aad = Aad::from(place.bytes());
        let sealed = &mut bytes[head..];
        let Ok(tag) = self.cipher.seal_in_place_separate_tag(nonce(number), aad, sealed) else {
            // The cipher refuses texts of 64 GiB and more.
            panic!("a text was too long to be sealed");
        };
        bytes.extend_from_slice(tag.as_ref());
        text.push_str(MARK);
        text.push_str(&self.first.name);
        text.push(':');
        BASE64URL_NOPAD.encode_append(&bytes, text);
    }

    /// About what a sealed text takes.
    fn room(clear: &str) -> String {
        String::with_capacity(MARK.len() + 2 * NAME_BYTES + 64 + clear.len() * 4 / 3)
    }

    fn sealed(&self, place: &ContentPlace<'_>, clear: &str) -> String {
        let mut text = SealKeys::room(clear);
        self.seal_into(&mut text, place, clear);
        text
    }

    fn sealed_json(&self, place: &ContentPlace<'_>, clear: &Json) -> Json {
        let mut text = SealKeys::room(clear.text());
        text.push('"');
        self.seal_into(&mut text, place, clear.text());
        text.push('"');
        // None of its letters is escaped in JSON.
        let Some(json) = Json::parse(&text) else { panic!("a sealed text is a JSON string") };
        json
    }

    /// Seals a clear content.
    pub(super) fn seal(&self, place: &ContentPlace<'_>, content: ContentMut<'_>) {
        match content {
            ContentMut::Json(json) => *json = self.sealed_json(place, json),
            ContentMut::Text(text) => *text = self.sealed(place, text),
        }
    }

    /// Seals a content that is clear, or sealed with any of these keys.
    pub(super) fn reseal(
        &self,
        place: &ContentPlace<'_>,
        content: ContentMut<'_>,
    ) -> Result<(), Unopened> {
        match content {
            ContentMut::Json(json) => {
                let clear = self.open_json(place, std::mem::take(json))?;
                *json = self.sealed_json(place, &clear);
            }
            ContentMut::Text(text) => *text = self.sealed(place, &self.open(place, text)?),
        }
        Ok(())
    }

    pub(super) fn open<'t>(
        &self,
        place: &ContentPlace<'_>,
        text: &'t str,
    ) -> Result<Cow<'t, str>, Unopened> {
        let Some(sealed) = text.strip_prefix(MARK) else { return Ok(Cow::Borrowed(text)) };
        // The rows name each key that anything is sealed with, and all of those are here. Another text with this beginning
        // is one that a caller gave before contents were sealed.
        let named = sealed.split_once(':').and_then(|(name, rest)| Some((self.named(name)?, rest)));
        let Some((key, bytes)) = named else { return Ok(Cow::Borrowed(text)) };
        let mut bytes = BASE64URL_NOPAD.decode(bytes.as_bytes()).map_err(|_| Unopened)?;
        let (salt, rest) = bytes.split_first_chunk_mut::<SALT_BYTES>().ok_or(Unopened)?;
        let (number, sealed) = rest.split_first_chunk_mut::<NUMBER_BYTES>().ok_or(Unopened)?;
        let (cipher, aad) = (key.known_cipher(salt), Aad::from(place.bytes()));
        let clear = cipher.open_in_place(nonce(*number), aad, sealed).map_err(|_| Unopened)?;
        std::str::from_utf8(clear).map(|text| Cow::Owned(text.to_owned())).map_err(|_| Unopened)
    }

    pub(super) fn open_json(&self, place: &ContentPlace<'_>, json: Json) -> Result<Json, Unopened> {
        let text = json.text().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let Some(text) = text.filter(|text| text.starts_with(MARK)) else { return Ok(json) };
        match self.open(place, text)? {
            Cow::Owned(clear) => Json::parse(&clear).ok_or(Unopened),
            Cow::Borrowed(_) => Ok(json),
        }
    }
}
