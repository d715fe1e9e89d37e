//! Parts that bodies of several subjects share. Nothing here is sent by itself.

use serde::Serialize;
use tenure_core::lease::Later;
use tenure_core::requests::Patch;
use tenure_core::time::{Moment, Span};

/// A moment or a span, under the names of the contract.
#[derive(Serialize, Default)]
pub struct Wait {
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    span: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Moment>,
}

impl From<Later> for Wait {
    fn from(later: Later) -> Self {
        match later {
            Later::For(span) => Wait { span: Some(span), until: None },
            Later::Until(at) => Wait { span: None, until: Some(at) },
        }
    }
}
impl From<Option<Later>> for Wait {
    fn from(later: Option<Later>) -> Self {
        later.map(Wait::from).unwrap_or_default()
    }
}

/// A field of a patch: absent, null or a value.
pub fn field<T>(patch: &Patch<T>) -> Option<Option<&T>> {
    match patch {
        Patch::Keep => None,
        Patch::Reset => Some(None),
        Patch::Set(value) => Some(Some(value)),
    }
}

/// The body of a call that changes settings: each field absent, `null` or a value, and each of them means something else.
macro_rules! patch_body {
    ($(#[$doc:meta])* $body:ident of $patch:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(serde::Serialize)]
        struct $body<'a> {
            $(#[serde(skip_serializing_if = "Option::is_none")] $field: Option<Option<&'a $type>>,)*
        }
        impl<'a> From<&'a $patch> for $body<'a> {
            fn from(patch: &'a $patch) -> Self {
                $body { $($field: $crate::remote::body::field(&patch.$field)),* }
            }
        }
    };
}
pub(super) use patch_body;
