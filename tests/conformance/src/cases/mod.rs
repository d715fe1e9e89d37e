//! The table of all sentences; one that is missing does not compile, because it is never used.

mod events;
mod flows;
mod jobs;
mod leases;
mod needs;
mod schedules;
mod whole;

use crate::run::Case;

/// Passes every `subject { sentence … }` to another macro, after the content of the braces; that
/// macro's path stands in the brackets. Each table calls the next one.
#[doc(hidden)]
#[macro_export]
macro_rules! every_sentence {
    ([$($then:tt)+] { $($first:tt)* }) => {
        $crate::sentences_of_jobs! { [$($then)+] { $($first)* } }
    };
}

macro_rules! table {
    ({} $($subject:ident { $($sentence:ident)* })*) => {{
        let mut all = Vec::new();
        // The compiler takes seconds for all these closures in one function.
        $({
            fn of_subject() -> impl IntoIterator<Item = Case> {
                [$(Case {
                    name: concat!(stringify!($subject), "::", stringify!($sentence)),
                    run: |bench| Box::pin(crate::$subject::$sentence(bench)),
                }),*]
            }
            all.extend(of_subject());
        })*
        all
    }};
}

/// Every sentence, by subject.
pub fn all() -> Vec<Case> {
    every_sentence!([table] {})
}

/// Writes one `#[test]` per sentence, in a module per subject, so that `cargo test` names the
/// broken rule. The argument is an expression that makes a [`Factory`](crate::Factory).
#[macro_export]
macro_rules! conformance_tests {
    ($factory:expr) => {
        $crate::every_sentence!([$crate::tests_of_sentences] { $factory });
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! tests_of_sentences {
    ({ $factory:expr } $($subject:ident { $($sentence:ident)* })*) => {
        fn conformance_factory() -> impl $crate::Factory {
            $factory
        }
        $(mod $subject {
            $(#[test]
            fn $sentence() {
                let name = concat!(stringify!($subject), "::", stringify!($sentence));
                $crate::check(&super::conformance_factory(), name);
            })*
        })*
    };
}
