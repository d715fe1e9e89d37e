//! Macro that makes refusals of cases, so that no case can have a code without a sentence and a hint.

/// Makes an enum of cases, and a refusal of each.
///
/// A case is its variant, its code, its parameters, the problem and the next step; then, where programs need them, the
/// seconds after which a repeat may succeed, the job that is in the way and the caller whose token has used up its
/// bounds. The texts are format strings with the names of the parameters.
macro_rules! refusals {
    (
        $(#[$about:meta])*
        $type:ident:
        $(
            $variant:ident $code:ident
                $({ $($field:ident: $kind:ty),+ $(,)? })?
                detail($detail:literal $(, $told:expr)* $(,)?)
                hint($hint:literal $(, $advised:expr)* $(,)?)
                $(retry_after_s($wait:expr))?
                $(job($job:expr))?
                $(caller($caller:expr))?;
        )+
    ) => {
        $(#[$about])*
        // The sentence of a case is its doc.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum $type {
            $(
                #[doc = concat!("`", $detail, "`")]
                $variant $({ $($field: $kind),+ })?,
            )+
        }

        #[cfg(test)]
        impl $type {
            /// Each case once: its name, its texts as the table writes them, and a refusal with sample parameters.
            pub(super) fn samples() -> Vec<(&'static str, [&'static str; 2], $crate::refusal::Refusal)> {
                use $crate::sentences::tests::Sample;
                vec![$((
                    concat!(stringify!($type), "::", stringify!($variant)),
                    [$detail, $hint],
                    $type::$variant $({ $($field: Sample::sample(stringify!($field))),+ })?.into(),
                )),+]
            }
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
