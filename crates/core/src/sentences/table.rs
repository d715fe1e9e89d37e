//! Macro that makes refusals of cases, so that no case can have a code without a sentence and a hint.

use crate::refusal::Code;

/// One case as the table writes it, for tests that compare other texts with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentenceRow {
    /// The stable name of the case.
    pub name: &'static str,
    /// The names of its parameters.
    pub parameters: &'static [&'static str],
    pub code: Code,
    /// The problem, with a name in braces for each parameter.
    pub detail: &'static str,
    /// The next step, with a name in braces for each parameter, and for a text that several cases share.
    pub hint: &'static str,
}

/// Makes an enum of cases, and a refusal of each.
///
/// A case is its variant, its stable name, its parameters, its code, the problem and the next step; then, where
/// programs need them, the seconds after which a repeat may succeed, the job that is in the way and the caller whose
/// token has used up its bounds. The texts are format strings with the names of the parameters.
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
                $(job($job:expr))?
                $(caller($caller:expr))?;
        )+
    ) => {
        $(#[$about])*
        // The sentence of a case is its doc, and its parameters have the names of the contract.
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
                        $(no.caller = Some($caller);)?
                        no
                    })+
                }
            }
        }
    };
}
pub(super) use refusals;
