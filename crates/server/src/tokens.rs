//! The tokens of a server: a caller that shows one of them may call. They can be replaced while the server runs, so
//! that callers change theirs one by one and no call is refused meanwhile.

use std::fmt;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HeaderMap};
use subtle::{Choice, ConstantTimeEq};
use tenure_core::secret::Secret;
use tokio::sync::watch;

/// The most tokens that a server accepts at once.
pub const TOKENS_MAX: usize = 8;

/// The valid tokens. Clones share them.
#[derive(Clone, Default)]
pub struct Tokens(Option<Arc<watch::Sender<Arc<[Secret]>>>>);

impl Tokens {
    /// These tokens; an empty list: callers need none.
    pub fn of(tokens: Vec<Secret>) -> Self {
        Tokens((!tokens.is_empty()).then(|| Arc::new(watch::Sender::new(tokens.into()))))
    }

    /// Whether callers need a token.
    pub fn are_asked_for(&self) -> bool {
        self.0.is_some()
    }

    /// The tokens that are valid now.
    pub fn all(&self) -> Arc<[Secret]> {
        match &self.0 {
            Some(tokens) => tokens.borrow().clone(),
            None => Arc::default(),
        }
    }

    /// Whether one of them was shown. The comparison takes the same time for every input.
    pub fn take(&self, shown: &[u8]) -> bool {
        among(&self.all(), shown)
    }

    /// Ends when this valid token is removed: a stream or a wait that it began ends with it. Never ends where callers
    /// need none.
    pub async fn removed(&self, taken: &[u8]) {
        let Some(tokens) = &self.0 else { return std::future::pending().await };
        let mut tokens = tokens.subscribe();
        if tokens.wait_for(|tokens| !among(tokens, taken)).await.is_err() {
            std::future::pending().await
        }
    }

    /// The same for the token that a request shows; never ends if it shows no valid one.
    pub(crate) fn removed_of(
        &self,
        headers: &HeaderMap,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (tokens, shown) = (self.clone(), shown_token(headers));
        let taken = shown.filter(|shown| self.take(shown)).map(<[u8]>::to_vec);
        async move {
            match taken {
                Some(taken) => tokens.removed(&taken).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Replaces the tokens. That neither locks nor unlocks a server: where callers need none, or the list is empty,
    /// nothing changes.
    pub fn replace(&self, tokens: Vec<Secret>) {
        if let (Some(current), false) = (&self.0, tokens.is_empty()) {
            current.send_replace(tokens.into());
        }
    }
}

/// The token that a request shows, valid or not.
pub(crate) fn shown_token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    // Of two tokens neither counts.
    let only = shown.next().filter(|_| shown.next().is_none());
    only.and_then(|header| bearer(header.as_bytes()))
}

fn bearer(header: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let (scheme, token) = header.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}

fn among(tokens: &[Secret], shown: &[u8]) -> bool {
    let found = tokens.iter().map(|token| token.reveal().as_bytes().ct_eq(shown));
    found.fold(Choice::from(0), |found, this| found | this).into()
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
