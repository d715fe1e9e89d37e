//! Ids of leases: signed, and telling what the lease is, so that a holder can claim it again from a
//! store that has forgotten it.
//!
//! An id is made of what never changes in a lease's life, so all who show it make the same text. Whoever
//! calls treats it as opaque. Nothing here decides whether a lease lives; a text that was not signed with
//! the namespace's key is no lease's id, and nothing that is in it is believed.

use std::fmt;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use hmac::{Hmac, Mac};
use serde::Deserialize;
use sha1::{Digest, Sha1};
use sha2::Sha256;
use tenure_core::secret::Secret;
use tenure_engine::Fault;
use tenure_engine::ids::fill_random;

/// What an id begins with: its form. Both begin with the same letter.
const WHOLE: u8 = 1;
const BARE: u8 = 2;
/// Bytes of the signature.
const MAC_BYTES: usize = 16;
/// A lease that holds more than can be told in so many bytes has an id that does not tell it: it cannot
/// be claimed again, and no call grows beyond its bounds.
const CLAIM_BYTES_MAX: usize = 1024;
/// No id is longer, in letters.
const TEXT_MAX: usize = 1_500;
const KEY_BYTES: usize = 32;
const KID_BYTES: usize = 6;
/// Bytes of a job's digest.
const JOB_BYTES: usize = 8;
/// What leases of who did not say who they are show.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// What a lease holds, as the library tells it: ttl (µs) and timeout (µs, 0 for none) as they were
/// granted; limits with weight and booked cost; pools and resources.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub(crate) struct Held(
    pub u64,
    pub u64,
    #[serde(default)] pub Vec<(String, u64, u64)>,
    #[serde(default)] pub Vec<(String, String)>,
);

/// A lease, to be named.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub fence: u64,
    /// The number of its job's row, 0 without a job.
    pub seq: u64,
    /// As it is shown.
    pub holder: &'a str,
    pub job: Option<&'a str>,
    pub held: &'a Held,
}

/// What every id tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub fence: u64,
    pub seq: u64,
    /// In µs, as it was granted.
    pub ttl: u64,
}

/// What an id tells that can be claimed by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    pub head: Head,
    pub holder: Option<String>,
    /// The digest of its job's id, in hexadecimal.
    pub job: Option<String>,
    pub held: Held,
}

/// Signs and reads the ids of one namespace.
pub(crate) struct Signer {
    key: Secret,
    kid: String,
    mac: Hmac<Sha256>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Signer {
    /// With a key that nobody else has. An error is that the system has no random numbers.
    pub(crate) fn random() -> Result<Self, Fault> {
        let mut random = [0u8; KEY_BYTES + KID_BYTES];
        fill_random(&mut random)?;
        let (key, kid) = random.split_at(KEY_BYTES);
        Signer::of(written(key), written(kid))
            .ok_or_else(|| Fault::Broken("a new key of a namespace was not read".to_owned()))
    }

    /// With the key of a namespace, as it is stored there; `None` if it is none.
    pub(crate) fn of(key: String, kid: String) -> Option<Self> {
        let bytes = read(&key).filter(|bytes| bytes.len() == KEY_BYTES)?;
        let mac = Hmac::new_from_slice(&bytes).ok()?;
        Some(Signer { key: Secret::new(key), kid, mac })
    }

    /// The key, to be stored.
    pub(crate) fn key(&self) -> &Secret {
        &self.key
    }

    /// The name of the key: it tells nothing of it.
    pub(crate) fn kid(&self) -> &str {
        &self.kid
    }

    fn signature(&self, bytes: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(bytes);
        mac
    }

    /// The id of a lease.
    pub(crate) fn id(&self, lease: Named<'_>) -> String {
        let mut bytes = Vec::with_capacity(128);
        bytes.push(WHOLE);
        for number in [lease.fence, lease.seq, lease.held.0] {
            put_number(&mut bytes, number);
        }
        let head = bytes.len();
        put_claim(&mut bytes, &lease);
        if bytes.len() - head > CLAIM_BYTES_MAX {
            bytes.truncate(head);
            bytes[0] = BARE;
        }
        let signature = self.signature(&bytes).finalize().into_bytes();
        bytes.extend_from_slice(&signature[..MAC_BYTES]);
        written(&bytes)
    }

    /// The bytes that were signed, if these were.
    fn signed(&self, id: &str) -> Option<Vec<u8>> {
        let mut bytes = read(id)?;
        let at = bytes.len().checked_sub(MAC_BYTES)?;
        let signature = self.signature(&bytes[..at]);
        signature.verify_truncated_left(&bytes[at..]).ok()?;
        bytes.truncate(at);
        Some(bytes)
    }

    /// What an id of this namespace names; `None` for any other text.
    pub(crate) fn head(&self, id: &str) -> Option<Head> {
        Some(read_head(&mut Bytes(&self.signed(id)?))?.1)
    }

    /// All that an id of this namespace tells; `None` for any other text, and for an id that does not
    /// tell what its lease holds.
    pub(crate) fn claim(&self, id: &str) -> Option<Claim> {
        let bytes = self.signed(id)?;
        let mut bytes = Bytes(&bytes);
        match read_head(&mut bytes)? {
            (WHOLE, head) => read_claim(&mut bytes, head),
            _ => None,
        }
    }
}

/// What a text names that has the form of an id, be it signed by whomever.
pub(crate) fn unsigned_head(id: &str) -> Option<Head> {
    let bytes = read(id)?;
    let at = bytes.len().checked_sub(MAC_BYTES)?;
    Some(read_head(&mut Bytes(&bytes[..at]))?.1)
}

/// A job's digest, as the library makes it too: the head of its id's SHA-1.
fn digest(job: &str) -> [u8; JOB_BYTES] {
    let whole: [u8; 20] = Sha1::digest(job.as_bytes()).into();
    let mut head = [0; JOB_BYTES];
    head.copy_from_slice(&whole[..JOB_BYTES]);
    head
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

fn put_claim(bytes: &mut Vec<u8>, lease: &Named<'_>) {
    let Held(_, timeout, limits, resources) = lease.held;
    put_number(bytes, *timeout);
    put_text(bytes, if lease.holder == ANONYMOUS { "" } else { lease.holder });
    if lease.seq > 0 {
        bytes.extend_from_slice(&digest(lease.job.unwrap_or_default()));
    }
    put_number(bytes, limits.len() as u64);
    for (limit, weight, cost) in limits {
        put_text(bytes, limit);
        put_number(bytes, *weight);
        put_number(bytes, *cost);
    }
    put_number(bytes, resources.len() as u64);
    let mut before = "";
    for (pool, id) in resources {
        // No pool's name is empty: it is that of the one before.
        put_text(bytes, if pool == before { "" } else { pool });
        put_text(bytes, id);
        before = pool;
    }
}

/// Bytes that are read from their beginning.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }
    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            let bits = u64::from(byte & 0x7f);
            number |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }
    /// How many things follow, each of at least a byte.
    fn count(&mut self) -> Option<u64> {
        self.number().filter(|n| *n <= self.0.len() as u64)
    }
}

fn read_head(bytes: &mut Bytes<'_>) -> Option<(u8, Head)> {
    let form = *bytes.take(1)?.first()?;
    let (fence, seq, ttl) = (bytes.number()?, bytes.number()?, bytes.number()?);
    // Numbers that the library cannot hold name nothing.
    let exact = [fence, seq, ttl].iter().all(|number| *number < crate::encode::FOREVER_US);
    (matches!(form, WHOLE | BARE) && exact).then_some((form, Head { fence, seq, ttl }))
}

fn read_claim(bytes: &mut Bytes<'_>, head: Head) -> Option<Claim> {
    let timeout = bytes.number()?;
    let holder = Some(bytes.text()?).filter(|holder| !holder.is_empty());
    let job = match head.seq {
        0 => None,
        _ => Some(HEXLOWER.encode(bytes.take(JOB_BYTES)?)),
    };
    let mut limits = Vec::new();
    for _ in 0..bytes.count()? {
        limits.push((bytes.text()?, bytes.number()?, bytes.number()?));
    }
    let mut resources: Vec<(String, String)> = Vec::new();
    for _ in 0..bytes.count()? {
        let pool = Some(bytes.text()?).filter(|pool| !pool.is_empty());
        let pool = pool.or_else(|| resources.last().map(|(pool, _)| pool.clone()))?;
        resources.push((pool, bytes.text()?));
    }
    let whole = bytes.0.is_empty();
    whole.then_some(Claim { head, holder, job, held: Held(head.ttl, timeout, limits, resources) })
}

/// The letters of an id: those of base64 that need no escape in an address.
fn written(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

/// The bytes of a text; `None` if it is not the one text of any bytes. So a lease has one id.
fn read(text: &str) -> Option<Vec<u8>> {
    if text.len() > TEXT_MAX {
        return None;
    }
    BASE64URL_NOPAD.decode(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer() -> Signer {
        Signer::of(written(&[7; KEY_BYTES]), "kid".to_owned()).expect("a key")
    }

    fn held() -> Held {
        Held(
            30_000_000,
            300_000_000,
            vec![("lock:a".to_owned(), 1, 0), ("größe".to_owned(), 7, 1_000_000)],
            vec![
                ("accounts".to_owned(), "139".to_owned()),
                ("accounts".to_owned(), "137".to_owned()),
                ("proxies".to_owned(), "p".to_owned()),
            ],
        )
    }

    const FENCE: u64 = 1_800_000_000_000_123;

    fn of_job(held: &Held) -> Named<'_> {
        Named { fence: FENCE, seq: 70_000, holder: "w_1", job: Some("job_1"), held }
    }

    #[test]
    fn an_id_tells_all_that_the_lease_is() {
        let held = held();
        let id = signer().id(of_job(&held));
        assert!(id.starts_with('A'), "no option of a command begins so: {id}");
        let claim = signer().claim(&id).expect("it is signed");
        assert_eq!(claim.head, Head { fence: FENCE, seq: 70_000, ttl: 30_000_000 });
        assert_eq!(signer().head(&id), Some(claim.head));
        assert_eq!(unsigned_head(&id), Some(claim.head));
        assert_eq!(claim.holder.as_deref(), Some("w_1"));
        // The head of sha1("job_1").
        assert_eq!(claim.job, Some(HEXLOWER.encode(&digest("job_1"))));
        assert_eq!(claim.held, held);
    }

    #[test]
    fn a_lease_without_a_job_or_a_name_is_told_too() {
        let held = Held(1_000_000, 0, vec![("lock:a".to_owned(), 1, 0)], Vec::new());
        let lease = Named { fence: 1, seq: 0, holder: ANONYMOUS, job: None, held: &held };
        let claim = signer().claim(&signer().id(lease)).expect("it is signed");
        assert_eq!((claim.holder, claim.job, claim.held), (None, None, held));
    }

    #[test]
    fn the_same_lease_has_the_same_id_and_another_another() {
        let held = held();
        let id = signer().id(of_job(&held));
        assert_eq!(id, signer().id(of_job(&held.clone())));
        let others = [
            Named { fence: FENCE + 1, ..of_job(&held) },
            Named { seq: 1, ..of_job(&held) },
            Named { holder: "w_2", ..of_job(&held) },
            Named { job: Some("job_2"), ..of_job(&held) },
        ];
        assert!(others.into_iter().all(|other| signer().id(other) != id));
    }

    #[test]
    fn what_was_changed_or_signed_by_another_is_no_id() {
        let held = held();
        let id = signer().id(of_job(&held));
        for at in 0..id.len() {
            let mut changed = id.clone().into_bytes();
            changed[at] = if changed[at] == b'B' { b'C' } else { b'B' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(signer().head(&changed), None, "{at}");
            assert_eq!(signer().claim(&changed), None, "{at}");
        }
        for at in 0..id.len() {
            assert_eq!(signer().head(&id[..at]), None, "{at}");
        }
        let other = Signer::random().expect("random numbers");
        assert_eq!(other.head(&id), None);
        for text in ["", "A", "AQ", "6390f5c7f8f0e-10", "größe", &"A".repeat(2_000)] {
            assert_eq!(signer().head(text), None, "{text}");
            assert_eq!(unsigned_head(text), None, "{text}");
        }
    }

    #[test]
    fn a_lease_that_holds_too_much_has_an_id_that_does_not_tell_it() {
        let many = (0..500).map(|n| ("proxies".to_owned(), format!("proxy-{n}"))).collect();
        let held = Held(30_000_000, 0, Vec::new(), many);
        let id = signer().id(of_job(&held));
        assert!(id.len() < 64 && id.starts_with('A'), "{id}");
        assert_eq!(signer().head(&id).map(|head| head.fence), Some(FENCE));
        assert_eq!(signer().claim(&id), None);
    }

    #[test]
    fn the_longest_id_that_tells_all_can_be_read() {
        let resources = |bytes| vec![("p".to_owned(), "r".repeat(bytes))];
        let longest = (0..CLAIM_BYTES_MAX).rev().find_map(|bytes| {
            let held = Held(30_000_000, 0, Vec::new(), resources(bytes));
            signer().claim(&signer().id(of_job(&held)))
        });
        assert!(longest.is_some_and(|claim| claim.held.3[0].1.len() > CLAIM_BYTES_MAX - 64));
    }

    #[test]
    fn a_usual_id_is_short() {
        let held = Held(30_000_000, 0, Vec::new(), Vec::new());
        let id = signer().id(Named { holder: "w_01ARZ3NDEKTSV4RRFFQ69G5FAV", ..of_job(&held) });
        assert!(id.len() <= 96, "{} letters", id.len());
    }

    #[test]
    fn a_key_is_not_shown() {
        let signer = Signer::random().expect("random numbers");
        let shown = format!("{signer:?}");
        assert!(shown.contains("•••") && !shown.contains(signer.key().reveal()), "{shown}");
        assert!(Signer::of("short".to_owned(), String::new()).is_none());
        let again = Signer::of(signer.key().reveal().to_owned(), signer.kid().to_owned());
        let held = held();
        assert_eq!(again.map(|again| again.id(of_job(&held))), Some(signer.id(of_job(&held))));
    }

    #[test]
    fn letters_are_those_of_the_standard() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg"),
            (&[0xfb, 0xff, 0xfe], "-__-"),
        ] {
            assert_eq!(written(bytes), text);
            assert_eq!(read(text).as_deref(), Some(bytes));
        }
        for text in ["Z", "Zh", "Zm9", "Zg==", "Z+", "a b "] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
