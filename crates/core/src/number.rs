//! Numbers that cannot be confused: a fence, the number of a row and the number of a caller are three types.

/// Makes a type of `u64` that is ordered, displayed, read and written like that number.
#[macro_export]
macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default,
            ::serde::Serialize, ::serde::Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// The greatest possible number.
            pub const MAX: Self = $name(u64::MAX);

            pub const fn new(number: u64) -> Self {
                $name(number)
            }
            /// The plain number, to store it or to give it to a system that compares numbers.
            pub const fn get(self) -> u64 {
                self.0
            }
            /// The number that follows it.
            #[must_use]
            pub const fn next(self) -> Self {
                $name(self.0 + 1)
            }
        }
        $crate::schemas!($name = <u64 as $crate::view::HasSchema>::schema());
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&self.0, f)
            }
        }
        impl ::std::str::FromStr for $name {
            type Err = ::std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map($name)
            }
        }
    };
}
