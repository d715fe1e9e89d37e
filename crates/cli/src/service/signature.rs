//! Signatures of the scheme of Standard Webhooks, by which a service knows that a request is ours and was not changed.
//!
//! Nothing here shows a secret, nor its length.

use std::fmt;

use data_encoding::BASE64;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The beginning of every secret.
const PREFIX: &str = "whsec_";
/// Bytes of a secret, as the scheme has it.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// More than one secret is for the time in which a service changes from one to the next.
const SECRETS_MAX: usize = 4;

/// The secrets with which requests are signed, each for itself.
#[derive(Clone)]
pub struct SigningSecrets(Vec<Vec<u8>>);

/// Why a text holds no secrets. It shows nothing of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadSecret {
    /// It has another form.
    #[error(
        "the secret must be \"{PREFIX}\" and 24 to 64 bytes in base64; make one: echo {PREFIX}$(openssl rand -base64 32)"
    )]
    Form,
    /// Zero secrets, or too many.
    #[error("there must be 1 to {SECRETS_MAX} secrets, one in a line")]
    Count,
}

impl SigningSecrets {
    /// One secret in a line. Every request has a signature of each.
    ///
    /// # Errors
    /// [`BadSecret`].
    pub fn parse(text: &str) -> Result<Self, BadSecret> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let secrets: Vec<Vec<u8>> = lines.map(secret).collect::<Result<_, _>>()?;
        match secrets.len() {
            1..=SECRETS_MAX => Ok(SigningSecrets(secrets)),
            _ => Err(BadSecret::Count),
        }
    }

    /// The value of `webhook-signature`: signs the id, the seconds since 1970 and the body, joined by full stops.
    pub fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let sign = |secret: &Vec<u8>| {
            let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else {
                unreachable!("HMAC takes keys of any length")
            };
            mac.update(format!("{id}.{timestamp}.").as_bytes());
            mac.update(body);
            format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes()))
        };
        self.0.iter().map(sign).collect::<Vec<_>>().join(" ")
    }
}

fn secret(line: &str) -> Result<Vec<u8>, BadSecret> {
    let encoded = line.strip_prefix(PREFIX).ok_or(BadSecret::Form)?;
    let bytes = BASE64.decode(encoded.as_bytes()).map_err(|_| BadSecret::Form)?;
    if SECRET_BYTES.contains(&bytes.len()) { Ok(bytes) } else { Err(BadSecret::Form) }
}

impl fmt::Debug for SigningSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecrets(•••)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the scheme's own libraries.
    #[test]
    fn the_signature_is_that_of_the_scheme() {
        let secrets = SigningSecrets::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        let body = br#"{"test": 2432232314}"#;
        let signed = secrets.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn each_secret_signs_for_itself() {
        let (old, new) =
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
        let both = SigningSecrets::parse(&format!("{new}\n\n {old}\n")).unwrap();
        let alone = |text| SigningSecrets::parse(text).unwrap().sign("a", 1, b"{}");
        assert_eq!(both.sign("a", 1, b"{}"), format!("{} {}", alone(new), alone(old)));
        assert_eq!(format!("{both:?}"), "SigningSecrets(•••)");
    }

    #[test]
    fn what_is_no_secret_is_refused_without_being_shown() {
        let short = format!("whsec_{}", BASE64.encode(&[7; 23]));
        let long = format!("whsec_{}", BASE64.encode(&[7; 65]));
        for text in ["geheim", "whsec_", "whsec_geheim!", &short, &long, "MfKQ9r8GKYqrTwjUPD8I"] {
            let no = SigningSecrets::parse(text).unwrap_err();
            assert_eq!(no, BadSecret::Form, "{text}");
            assert!(!no.to_string().contains("geheim"));
        }
        assert_eq!(SigningSecrets::parse("\n").unwrap_err(), BadSecret::Count);
        let five = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n".repeat(5);
        assert_eq!(SigningSecrets::parse(&five).unwrap_err(), BadSecret::Count);
    }
}
