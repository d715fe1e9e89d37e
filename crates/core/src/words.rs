//! Enums whose variants are words, in JSON, in a store or in a text.

/// An enum that [`words!`](crate::words!) declares.
pub trait Worded: Sized + 'static {
    /// Each word with its meaning, in the order of their declaration.
    const WORDS: &'static [(&'static str, Self)];
}

/// Declares an enum with the word of each variant. `serde` does not read these words: it needs a `rename_all` that makes
/// the same ones.
#[doc(hidden)]
#[macro_export]
macro_rules! words {
    (
        $(#[$about:meta])*
        $vis:vis enum $type:ident {
            $($(#[$doc:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$about])*
        $vis enum $type {
            $($(#[$doc])* $variant,)+
        }
        impl $type {
            /// All of them, in the order of their declaration.
            $vis const ALL: [$type; [$($word),+].len()] = [$($type::$variant),+];

            /// The word of this variant.
            $vis const fn as_str(self) -> &'static str {
                match self { $($type::$variant => $word,)+ }
            }
        }
        impl $crate::words::Worded for $type {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $type::$variant)),+];
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
