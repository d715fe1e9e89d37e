//! The tokens of a server: a caller that shows one of them may call, within its grants. They can be replaced while the
//! server runs, so that callers change theirs one by one and no call is refused meanwhile.
//!
//! There are two lists. Tokens of the first have all rights, and are kept whole. Of the others a file has the hash and
//! the grants, and nobody but their holders has the token.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use hyper::header::{AUTHORIZATION, HeaderMap};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tenure_core::access::Grants;
use tenure_core::secret::Secret;
use tenure_core::time::Moment;
use tenure_engine_api::{Clock, SystemClock};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::caller::{Caller, TokenKept};

/// The most tokens with all rights that a server accepts at once.
pub const TOKENS_MAX: usize = 8;
/// The most tokens with grants of their own that a server accepts at once.
pub const LISTED_TOKENS_MAX: usize = 1_000;
/// Tokens that Tenure makes begin with this; the name and another `_` follow. Scanners for leaked secrets look for it.
pub const TOKEN_PREFIX: &str = "tnr_";
/// A token with fewer bytes does not sign the sessions of others: too short to withstand guesses without end.
const SIGNING_BYTES_MIN: usize = 32;
/// How often a stream or a wait looks if its token has expired: a clock may step.
const LOOK: Duration = Duration::from_secs(1);

/// A token of which the hash is known.
#[derive(Clone, Debug)]
pub struct ListedToken {
    pub grants: Grants,
    /// SHA-256 of the whole token. A random token needs no slow hash.
    pub sha256: [u8; 32],
}

/// Why tokens with grants of their own cannot be valid together. A place in their list counts from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListedRefused {
    /// There are this many, more than [`LISTED_TOKENS_MAX`].
    TooMany(usize),
    /// Two have one name, by which the log, the trail and other servers know them.
    SameName { first: usize, second: usize },
    /// Two are the same token.
    SameToken { first: usize, second: usize },
}

impl fmt::Display for ListedRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second, what) = match self {
            ListedRefused::TooMany(count) => {
                return write!(
                    f,
                    "there are {count} tokens with grants, and {LISTED_TOKENS_MAX} are the most"
                );
            }
            ListedRefused::SameName { first, second } => (first, second, "have one name"),
            ListedRefused::SameToken { first, second } => (first, second, "are the same token"),
        };
        write!(
            f,
            "the tokens with grants {} and {} {what}; give each its own",
            first + 1,
            second + 1
        )
    }
}
impl std::error::Error for ListedRefused {}

/// Checks that tokens with grants of their own can be valid together.
///
/// # Errors
/// There are too many, or two cannot be told apart.
pub fn check_listed(tokens: &[ListedToken]) -> Result<(), ListedRefused> {
    if tokens.len() > LISTED_TOKENS_MAX {
        return Err(ListedRefused::TooMany(tokens.len()));
    }
    let (mut names, mut hashes) = (HashMap::new(), HashMap::new());
    for (second, token) in tokens.iter().enumerate() {
        if let Some(first) = names.insert(token.grants.name(), second) {
            return Err(ListedRefused::SameName { first, second });
        }
        if let Some(first) = hashes.insert(token.sha256, second) {
            return Err(ListedRefused::SameToken { first, second });
        }
    }
    Ok(())
}

/// The hash by which a [`ListedToken`] is found.
pub fn token_hash(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// The valid tokens. Clones share them.
#[derive(Clone, Default)]
pub struct Tokens(Option<Arc<Shared>>);

struct Shared {
    valid: watch::Sender<Arc<ValidTokens>>,
    /// Signs sessions of listed tokens where no token with all rights does.
    seed: Secret,
    /// The time of this machine.
    clock: Box<dyn Fn() -> Moment + Send + Sync>,
}

#[derive(Clone, Default)]
struct ValidTokens {
    /// Those with all rights, and the tokens themselves.
    whole: Vec<(Arc<Caller>, Secret)>,
    listed: Vec<Arc<Caller>>,
}

impl ValidTokens {
    fn callers(&self) -> impl Iterator<Item = &Arc<Caller>> {
        self.whole.iter().map(|(caller, _)| caller).chain(&self.listed)
    }

    /// The same token as it is now.
    fn same(&self, caller: &Caller) -> Option<&Arc<Caller>> {
        let is_same =
            |now: &&Arc<Caller>| now.kept == caller.kept && now.sha256.ct_eq(&caller.sha256).into();
        self.callers().find(is_same)
    }
}

fn of_whole(tokens: Vec<Secret>) -> Vec<(Arc<Caller>, Secret)> {
    let with_caller = |(n, token): (usize, Secret)| {
        let sha256 = token_hash(token.reveal().as_bytes());
        let grants = Grants::all_of_token(n + 1);
        (Caller::new(grants, TokenKept::Whole, sha256), token)
    };
    tokens.into_iter().enumerate().map(with_caller).collect()
}

/// A token that stays as it was keeps its caller, whose calls are counted.
fn of_listed(tokens: Vec<ListedToken>, before: &[Arc<Caller>]) -> Vec<Arc<Caller>> {
    let stays = |token: &ListedToken| {
        let is_same = |old: &&Arc<Caller>| old.sha256 == token.sha256 && old.grants == token.grants;
        before.iter().find(is_same).cloned()
    };
    let caller = |token: ListedToken| {
        stays(&token).unwrap_or_else(|| Caller::new(token.grants, TokenKept::Listed, token.sha256))
    };
    tokens.into_iter().map(caller).collect()
}

impl Tokens {
    /// Tokens with all rights; an empty list: callers need none.
    pub fn of(tokens: Vec<Secret>) -> Self {
        if tokens.is_empty() {
            return Tokens::default();
        }
        let locked = Tokens::locking("");
        locked.replace(tokens);
        locked
    }

    /// No token yet, and callers need one. `seed`: a random text, which signs the sessions of tokens with grants of
    /// their own where there is no token with all rights.
    pub fn locking(seed: &str) -> Self {
        Tokens::by_clock(seed, || SystemClock.now())
    }

    /// The same with another clock, for tests.
    pub fn by_clock(seed: &str, clock: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        let (seed, clock) = (Secret::new(seed), Box::new(clock));
        let valid = watch::Sender::default();
        Tokens(Some(Arc::new(Shared { valid, seed, clock })))
    }

    /// Whether callers need a token.
    pub fn are_asked_for(&self) -> bool {
        self.0.is_some()
    }

    /// Those with all rights.
    pub fn whole(&self) -> Vec<Secret> {
        let Some(shared) = &self.0 else { return Vec::new() };
        shared.valid.borrow().whole.iter().map(|(_, token)| token.clone()).collect()
    }

    /// The callers of the tokens with grants of their own.
    pub(crate) fn listed(&self) -> Vec<Arc<Caller>> {
        let Some(shared) = &self.0 else { return Vec::new() };
        shared.valid.borrow().listed.clone()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.as_ref().map_or(0, |shared| shared.valid.borrow().callers().count())
    }

    /// The caller that shows this token; `None` if it is not valid now. The comparison takes the same time for every
    /// token that is not valid, except that a token with a name is compared with those of this name alone.
    pub fn who(&self, shown: &[u8]) -> Option<Arc<Caller>> {
        let shared = self.0.as_ref()?;
        let (sha256, name) = (token_hash(shown), name_in(shown));
        let valid = shared.valid.borrow();
        let is_meant = |caller: &&Arc<Caller>| {
            caller.kept == TokenKept::Whole
                || name.is_none_or(|name| name == caller.name().as_bytes())
        };
        let mut found = None;
        for caller in valid.callers().filter(is_meant) {
            if caller.sha256.ct_eq(&sha256).into() {
                found = Some(caller);
            }
        }
        found.filter(|caller| !self.is_over(caller)).cloned()
    }

    /// The caller with this name, by what another server says that has checked its token; `None` if this server knows
    /// no such token, or it is not valid here.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Caller>> {
        if let Some(grants) = Grants::all_by_name(name) {
            return Some(Caller::elsewhere(grants));
        }
        let valid = self.0.as_ref()?.valid.borrow();
        let found = valid.listed.iter().find(|caller| caller.name() == name);
        found.filter(|caller| !self.is_over(caller)).cloned()
    }

    /// The callers that may have begun a session under this name, each with the secret that signs its sessions. Tokens
    /// with all rights have no lasting name, so that each of them may.
    pub fn signers(&self, name: &str) -> Vec<(Arc<Caller>, Secret)> {
        let Some(shared) = &self.0 else { return Vec::new() };
        let valid = shared.valid.borrow();
        let listed = valid.listed.iter().filter(|caller| caller.name() == name);
        let listed = listed.filter(|caller| !self.is_over(caller)).map(|caller| {
            // The hash alone must not sign: a reader of the file could make sessions. A token with all rights is
            // the same at every server and after a restart; but a short one could be found by the holder of a
            // listed token, who knows all else of what signs the own session.
            let whole = valid.whole.first().map(|(_, token)| token);
            let long = whole.filter(|token| token.reveal().len() >= SIGNING_BYTES_MIN);
            let seed = long.unwrap_or(&shared.seed);
            let hash = HEXLOWER.encode(&caller.sha256);
            (caller.clone(), Secret::new(format!("{hash} {}", seed.reveal())))
        });
        valid.whole.iter().cloned().chain(listed).collect()
    }

    fn is_over(&self, caller: &Caller) -> bool {
        self.0.as_ref().is_some_and(|shared| caller.grants.is_over((shared.clock)()))
    }

    /// Ends when the token of this caller is removed, expires or gets other grants, with the caller as it is then;
    /// `None` if it is valid no longer. Never ends for a caller whose token is kept elsewhere.
    pub async fn changed(&self, caller: &Caller) -> Option<Arc<Caller>> {
        let (Some(shared), false) = (&self.0, caller.kept == TokenKept::Elsewhere) else {
            return std::future::pending().await;
        };
        let mut valid = shared.valid.subscribe();
        loop {
            let now = valid.borrow_and_update().same(caller).cloned();
            let now = now.filter(|now| !self.is_over(now))?;
            // The number of a token with all rights is its place in the list.
            if now.kept == TokenKept::Listed && now.grants != caller.grants {
                return Some(now);
            }
            let expires = now.grants.expires().is_some();
            tokio::select! {
                changed = valid.changed() => {
                    if changed.is_err() {
                        return std::future::pending().await;
                    }
                }
                () = sleep(LOOK), if expires => {}
            }
        }
    }

    /// Replaces the tokens with all rights. That neither locks nor unlocks a server: where callers need none, or the
    /// list is empty, nothing changes.
    pub fn replace(&self, tokens: Vec<Secret>) {
        if let (Some(shared), false) = (&self.0, tokens.is_empty()) {
            let whole = of_whole(tokens);
            shared.valid.send_modify(|valid| Arc::make_mut(valid).whole = whole);
        }
    }

    /// Replaces the tokens with grants of their own. Where callers need no token, nothing changes.
    pub fn replace_listed(&self, tokens: Vec<ListedToken>) {
        if let Some(shared) = &self.0 {
            shared.valid.send_modify(|valid| {
                let valid = Arc::make_mut(valid);
                valid.listed = of_listed(tokens, &valid.listed);
            });
        }
    }
}

/// The name in a token that Tenure made.
fn name_in(shown: &[u8]) -> Option<&[u8]> {
    let rest = shown.strip_prefix(TOKEN_PREFIX.as_bytes())?;
    rest.split(|byte| *byte == b'_').next()
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

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.count())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tenure_core::access::GivenGrants;

    use super::*;

    fn secrets(all: &[&str]) -> Vec<Secret> {
        all.iter().map(|token| Secret::new(*token)).collect()
    }

    /// Tokens of both kinds.
    fn tokens(whole: &[&str], listed: Vec<ListedToken>) -> Tokens {
        tokens_by(whole, listed, || SystemClock.now())
    }

    fn tokens_by(
        whole: &[&str],
        listed: Vec<ListedToken>,
        clock: impl Fn() -> Moment + Send + Sync + 'static,
    ) -> Tokens {
        let tokens = Tokens::by_clock("seed", clock);
        tokens.replace(secrets(whole));
        tokens.replace_listed(listed);
        tokens
    }

    fn listed(name: &str, scope: &str, token: &str, expires: Option<u64>) -> ListedToken {
        let one = |text: &str| vec![text.to_owned()];
        let given = GivenGrants {
            name: name.to_owned(),
            scopes: one(scope),
            namespaces: one("*"),
            expires: expires.map(Moment::from_us),
            ..GivenGrants::default()
        };
        ListedToken { grants: Grants::read(&given).unwrap(), sha256: token_hash(token.as_bytes()) }
    }

    /// A clock that a test sets, and the way to set it.
    fn stepping() -> (impl Fn() -> Moment + Send + Sync + 'static, impl Fn(u64)) {
        let now = Arc::new(AtomicU64::new(10));
        let set = now.clone();
        (
            move || Moment::from_us(now.load(Ordering::SeqCst)),
            move |to| set.store(to, Ordering::SeqCst),
        )
    }

    #[test]
    fn each_of_them_is_taken_until_it_is_replaced() {
        let tokens = Tokens::of(secrets(&["one", "two"]));
        let shared = tokens.clone();
        let taken = |all: [&str; 4]| all.map(|shown| shared.who(shown.as_bytes()).is_some());
        assert_eq!(taken(["one", "two", "three", ""]), [true, true, false, false]);
        tokens.replace(secrets(&["two", "three"]));
        assert_eq!(taken(["one", "two", "three", "on"]), [false, true, true, false]);
        tokens.replace(Vec::new());
        assert_eq!(taken(["one", "two", "three", ""]), [false, true, true, false]);
        let open = Tokens::of(Vec::new());
        open.replace(secrets(&["one"]));
        assert!(!open.are_asked_for() && tokens.are_asked_for());
        assert_eq!(format!("{tokens:?}"), "Tokens(2)");
    }

    #[test]
    fn a_listed_token_is_found_by_its_hash_and_its_name() {
        let all = vec![
            listed("a", "view", "tnr_a_x", None),
            listed("b", "push", "tnr_a_wrong-name", None),
            listed("c", "work", "own-form", None),
        ];
        let tokens = tokens(&["root"], all);
        let who = |shown: &str| tokens.who(shown.as_bytes()).map(|who| who.name().to_owned());
        for (shown, name) in [
            ("tnr_a_x", Some("a")),
            ("tnr_a_wrong-name", None),
            ("own-form", Some("c")),
            ("root", Some("token-1")),
            ("tnr_b_x", None),
            ("tnr_", None),
        ] {
            assert_eq!(who(shown).as_deref(), name, "{shown}");
        }
        tokens.replace_listed(Vec::new());
        assert_eq!((who("tnr_a_x"), who("root").as_deref()), (None, Some("token-1")));
        tokens.replace(secrets(&["new"]));
        assert!(tokens.are_asked_for() && who("root").is_none());
    }

    #[test]
    fn tokens_that_cannot_be_told_apart_are_refused() {
        let one = |name: &str, token: &str| listed(name, "view", token, None);
        let all = vec![one("a", "x"), one("b", "y"), one("c", "z")];
        assert_eq!(check_listed(&all), Ok(()));
        for (more, no, says) in [
            (
                one("b", "w"),
                ListedRefused::SameName { first: 1, second: 3 },
                "2 and 4 have one name",
            ),
            (
                one("d", "z"),
                ListedRefused::SameToken { first: 2, second: 3 },
                "3 and 4 are the same",
            ),
        ] {
            let mut all = all.clone();
            all.push(more);
            assert_eq!(check_listed(&all), Err(no));
            assert!(no.to_string().contains(says), "{no}");
        }
        let many: Vec<_> =
            (0..=LISTED_TOKENS_MAX).map(|n| one(&format!("n{n}"), &n.to_string())).collect();
        assert_eq!(check_listed(&many), Err(ListedRefused::TooMany(1_001)));
    }

    #[test]
    fn an_end_is_by_the_clock_of_each_look() {
        let (clock, set) = stepping();
        let all = vec![listed("a", "view", "t", Some(20))];
        let tokens = tokens_by(&[], all, clock);
        for (now, is_valid) in [(10, true), (19, true), (20, false), (500, false), (19, true)] {
            set(now);
            assert_eq!(tokens.who(b"t").is_some(), is_valid, "{now}");
            assert_eq!(tokens.named("a").is_some(), is_valid, "{now}");
            assert_eq!(tokens.signers("a").len(), usize::from(is_valid), "{now}");
        }
    }

    #[test]
    fn another_server_names_callers_that_this_one_knows() {
        let all = vec![listed("a", "view", "t", None)];
        let tokens = tokens(&[], all);
        let scopes = |name: &str| tokens.named(name).map(|who| who.grants().scopes().to_string());
        assert_eq!(scopes("a").as_deref(), Some("view"));
        for whole in ["token-1", "token-8", "anyone"] {
            assert!(scopes(whole).unwrap().contains("admin"), "{whole}");
        }
        for unknown in ["b", "", "token-", "token-x", "token-metrics", "A"] {
            assert_eq!(scopes(unknown), None, "{unknown}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_hears_of_its_end_and_of_other_grants() {
        let (clock, set) = stepping();
        let (a, b) = (listed("a", "view", "t", Some(20)), listed("b", "view", "u", None));
        let first = vec![a.clone(), b.clone()];
        let tokens = tokens_by(&["one", "two"], first, clock);
        let [a_is, b_is, two_is] = [&b"t"[..], b"u", b"two"].map(|t| tokens.who(t).unwrap());
        let unchanged = |caller: Arc<Caller>| {
            let tokens = tokens.clone();
            async move {
                let waits = Duration::from_secs(60);
                tokio::time::timeout(waits, tokens.changed(&caller)).await.is_err()
            }
        };
        tokens.replace(secrets(&["two", "three"]));
        tokens.replace_listed(vec![b.clone(), a.clone()]);
        assert!(unchanged(two_is.clone()).await, "its place in the list has changed");
        assert!(unchanged(a_is.clone()).await && unchanged(b_is.clone()).await);
        assert!(unchanged(Caller::anyone()).await);
        set(20);
        assert!(tokens.changed(&a_is).await.is_none(), "it has expired");
        tokens.replace_listed(vec![listed("b", "read", "u", None)]);
        let wider = tokens.changed(&b_is).await.expect("it is still valid");
        assert_eq!(wider.grants().scopes().to_string(), "read");
        tokens.replace_listed(Vec::new());
        assert!(tokens.changed(&wider).await.is_none());
        tokens.replace(secrets(&["three"]));
        assert!(tokens.changed(&two_is).await.is_none());
    }
}
