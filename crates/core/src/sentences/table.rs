//! How cases become refusals: one macro, so that a case cannot have a code without a sentence and a hint.

use crate::refusal::Code;

/// One case as the table writes it, for tests that compare other texts with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentenceRow {
    /// Its stable name.
    pub name: &'static str,
    /// The names of its parameters.
    pub parameters: &'static [&'static str],
    /// Its code.
    pub code: Code,
    /// What is wrong, with a name in braces for each parameter.
    pub detail: &'static str,
    /// What to do next, with a name in braces for each parameter, and for a text that several cases have in common.
    pub hint: &'static str,
}

/// Makes an enum of cases, and of each case its refusal.
///
/// A case is its variant, its stable name, its parameters, its code, what is wrong and what to do next; then, where
/// programs need them, after how many seconds a repeat may go through and which job is in the way. The texts are
/// format strings in which the parameters have their names.
macro_rules! refusals {
    (
        $(#[$about:meta])*
        $type:ident:
        $(
            $variant:ident $name:literal
                $({ $($(#[$life:meta])* $field:ident: $kind:ty),+ $(,)? })?
                $code:ident
                detail($detail:literal $(, $told:expr)* $(,)?)
                hint($hint:literal $(, $advised:expr)* $(,)?)
                $(retry_after_s($wait:expr))?
                $(job($job:expr))?;
        )+
    ) => {
        $(#[$about])*
        // The sentence of a case says what it is, and its parameters have the names of the contract.
        #[allow(missing_docs)]
        #[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "case")]
        pub enum $type {
            $(
                #[doc = concat!("`", $detail, "`")]
                #[serde(rename = $name)]
                $variant $({ $($(#[$life])* $field: $kind),+ })?,
            )+
        }

        impl $type {
            /// The cases as the table writes them.
            pub const ROWS: &'static [$crate::sentences::SentenceRow] = &[$($crate::sentences::SentenceRow {
                name: $name,
                parameters: &[$($(stringify!($field)),+)?],
                code: $crate::refusal::Code::$code,
                detail: $detail,
                hint: $hint,
            }),+];
        }

        impl From<$type> for $crate::refusal::Refusal {
            fn from(case: $type) -> Self {
                match case {
                    $($type::$variant $({ $($field),+ })? => {
                        #[allow(unused_mut)]
                        let mut no = $crate::refusal::Refusal::made(
                            $crate::refusal::Code::$code,
                            format!($detail $(, $told)*),
                            format!($hint $(, $advised)*),
                        );
                        $(no.retry_after_s = Some($wait);)?
                        $(no.job = Some($job.to_string());)?
                        no
                    })+
                }
            }
        }
    };
}
pub(super) use refusals;
