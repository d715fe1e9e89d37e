//! Codecs: what turns values into bytes and back, what it may bind them to, and the form of a sealed value.
//!
//! The form is the same in all clients of Tenure. Nothing here calls an engine.

use std::fmt;

use serde::{Deserialize, Serialize};
use tenure_core::secret::Json;
use tenure_engine_api::{CallError, Fault};

/// The member by which a value says that it is sealed.
const SEALED: &str = "\"$sealed\"";

/// Which value of a job it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ValuePart {
    /// The payload, as it was pushed or changed.
    Payload,
    /// The result, as its handler returned it.
    Result,
    /// The last report of its handler.
    Progress,
}

impl ValuePart {
    /// The word for it: `payload`, `result` or `progress`.
    pub fn as_str(self) -> &'static str {
        match self {
            ValuePart::Payload => "payload",
            ValuePart::Result => "result",
            ValuePart::Progress => "progress",
        }
    }
}

impl fmt::Display for ValuePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a value stands: what a codec may bind its bytes to.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ValuePlace {
    /// Which value of the job.
    pub part: ValuePart,
    /// The queue of the job.
    pub queue: String,
    /// The kind of the job; `""` if it has none.
    pub kind: String,
}

impl ValuePlace {
    /// A value of a job with this queue and kind.
    pub fn new(part: ValuePart, queue: impl Into<String>, kind: impl Into<String>) -> Self {
        ValuePlace { part, queue: queue.into(), kind: kind.into() }
    }
    /// The place as bytes, the same in all clients: the associated data of an AEAD.
    ///
    /// ```
    /// use tenure::{ValuePart, ValuePlace};
    ///
    /// let place = ValuePlace::new(ValuePart::Payload, "mail", "send");
    /// assert_eq!(place.associated_data(), b"payload\0mail\0send");
    /// ```
    pub fn associated_data(&self) -> Vec<u8> {
        format!("{}\0{}\0{}", self.part, self.queue, self.kind).into_bytes()
    }
}

/// Any error of a codec.
pub(crate) type CodecFault = Box<dyn std::error::Error + Send + Sync>;

/// Turns values into bytes and back, with keys that the server does not have. [`Client::codec`] takes one.
///
/// ```
/// # tenure::testing::example(async |client| {
/// use tenure::{Codec, Job, ValuePlace};
///
/// /// A toy: it hides nothing.
/// struct Reversed;
///
/// type Bytes = Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>>;
/// impl Codec for Reversed {
///     fn name(&self) -> &str {
///         "reversed"
///     }
///     fn encode(&self, clear: &[u8], _: &ValuePlace) -> Bytes {
///         Ok(clear.iter().rev().copied().collect())
///     }
///     fn decode(&self, sealed: &[u8], _: &ValuePlace) -> Bytes {
///         Ok(sealed.iter().rev().copied().collect())
///     }
/// }
///
/// let bare = client.clone();
/// let client = client.codec(Reversed);
/// let pushed = client.push("mail").payload(&"ann@example.com")?.await?;
/// let stored = bare.job(&pushed.id).view().await?.payload.unwrap();
/// assert!(!stored.text().contains("ann"), "{}", stored.text());
///
/// let run = async |job: Job| {
///     assert!(job.sealed().is_none());
///     println!("{}", job.payload_json());
/// };
/// client.worker(["mail"]).until_empty().run(run).await?;
/// # Ok(()) });
/// ```
pub trait Codec: Send + Sync + 'static {
    /// By which a reader knows whether a value is of its codec; not the id of a key.
    fn name(&self) -> &str;
    /// True: values are read, and sent as they are. For the time until all readers have the codec.
    fn read_only(&self) -> bool {
        false
    }
    /// Seals a value, which is JSON in UTF-8.
    ///
    /// # Errors
    /// It cannot be sealed: nothing is sent.
    fn encode(&self, clear: &[u8], place: &ValuePlace) -> Result<Vec<u8>, CodecFault>;
    /// Returns the JSON that `encode` was given.
    ///
    /// # Errors
    /// It is of another key or place. In a run this fails the job for good.
    fn decode(&self, sealed: &[u8], place: &ValuePlace) -> Result<Vec<u8>, CodecFault>;
}

/// Why a value stays sealed, or could not be sealed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// It is sealed, and this client has no codec.
    #[error(
        "the {part} is sealed by the codec {codec:?}, and this client has no codec; give the client the codec, then \
         retry the job or ask again"
    )]
    NoCodec {
        /// The value that stays sealed.
        part: ValuePart,
        /// The codec that it names.
        codec: String,
    },
    /// It is sealed by a codec of another name.
    #[error(
        "the {part} is sealed by the codec {codec:?}, and this client has {has:?}; give the client the codec, then \
         retry the job or ask again"
    )]
    WrongCodec {
        /// The value that stays sealed.
        part: ValuePart,
        /// The codec that it names.
        codec: String,
        /// The codec of this client.
        has: String,
    },
    /// The codec failed, or the value was sealed for another place: a wrong key, a changed value.
    #[error("the codec {codec:?} {failed}")]
    Failed {
        /// The codec of this client.
        codec: String,
        /// What failed, and what to do.
        failed: String,
    },
}

impl CodecError {
    /// For programs, and the same in all clients: `no_codec`, `wrong_codec` or `codec_failed`.
    pub fn code(&self) -> &'static str {
        match self {
            CodecError::NoCodec { .. } => "no_codec",
            CodecError::WrongCodec { .. } => "wrong_codec",
            CodecError::Failed { .. } => "codec_failed",
        }
    }
}

/// A sealed value as it is sent.
#[derive(Serialize, Deserialize)]
pub(crate) struct Sealed {
    #[serde(rename = "$sealed")]
    pub bytes: String,
    #[serde(default)]
    pub codec: String,
    #[serde(default)]
    pub queue: String,
    #[serde(default)]
    pub kind: String,
}

impl Sealed {
    pub fn of(value: &Json) -> Option<Sealed> {
        // Most values are not sealed, and are neither read nor copied for it.
        let text = value.text();
        (text.starts_with('{') && text.contains(SEALED)).then(|| value.read().ok()).flatten()
    }
}

/// The end of a call for which a value could not be sealed.
pub(crate) fn not_sent(why: CodecError) -> CallError {
    CallError::Fault(Fault::Broken(why.to_string()))
}
