//! The tokens of a server: a caller that shows one of them may call. They can be replaced while it serves, so that callers change
//! theirs one by one and none is refused meanwhile.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use subtle::{Choice, ConstantTimeEq};
use tenure_core::secret::Secret;

/// No server takes more tokens at once.
pub const TOKENS_MAX: usize = 8;

/// See the module. Clones share them.
#[derive(Clone, Default)]
pub struct Tokens(Option<Arc<RwLock<Arc<[Secret]>>>>);

impl Tokens {
    /// These; none at all: nobody is asked for one.
    pub fn of(tokens: Vec<Secret>) -> Self {
        Tokens((!tokens.is_empty()).then(|| Arc::new(RwLock::new(tokens.into()))))
    }

    /// Whether callers are asked for one.
    pub fn are_asked_for(&self) -> bool {
        self.0.is_some()
    }

    /// Those that are valid now.
    pub fn all(&self) -> Arc<[Secret]> {
        match &self.0 {
            Some(tokens) => tokens.read().unwrap_or_else(PoisonError::into_inner).clone(),
            None => Arc::default(),
        }
    }

    /// Whether one of them was shown. It takes as long whichever it is, and whatever else was shown.
    pub fn take(&self, shown: &[u8]) -> bool {
        let tokens = self.all();
        let found = tokens.iter().map(|token| token.reveal().as_bytes().ct_eq(shown));
        found.fold(Choice::from(0), |found, this| found | this).into()
    }

    /// From now on these are valid and no others. A server is neither locked nor unlocked so: where callers are asked for none,
    /// and with none given, nothing changes.
    pub fn replace(&self, tokens: Vec<Secret>) {
        if let (Some(current), false) = (&self.0, tokens.is_empty()) {
            *current.write().unwrap_or_else(PoisonError::into_inner) = tokens.into();
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.all().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_them_is_taken_until_it_is_replaced() {
        let of = |all: &[&str]| all.iter().map(|token| Secret::new(*token)).collect::<Vec<_>>();
        let tokens = Tokens::of(of(&["one", "two"]));
        let shared = tokens.clone();
        let taken = |all: [&str; 4]| all.map(|shown| shared.take(shown.as_bytes()));
        assert_eq!(taken(["one", "two", "three", ""]), [true, true, false, false]);
        tokens.replace(of(&["two", "three"]));
        assert_eq!(taken(["one", "two", "three", "on"]), [false, true, true, false]);
        tokens.replace(Vec::new());
        assert_eq!(taken(["one", "two", "three", ""]), [false, true, true, false]);
        let open = Tokens::of(Vec::new());
        open.replace(of(&["one"]));
        assert!(!open.are_asked_for() && tokens.are_asked_for());
        assert_eq!(format!("{tokens:?}"), "Tokens(2)");
    }
}
