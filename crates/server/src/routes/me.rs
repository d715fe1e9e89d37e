//! `/v1/me`: the caller and its grants, for anybody who shows a token.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde::Serialize;
use tenure_core::access::{Grants, Scope};
use tenure_core::requests::HttpMethod;
use tenure_core::time::Moment;
use tenure_core::view;

use super::{Does, Route};
use crate::caller::Caller;
use crate::tokens::{Tokens, token_hash};

pub(super) static ROUTES: &[Route] = &[Route::own(
    HttpMethod::Get,
    "/v1/me",
    "me",
    "Say which token was shown, and what it permits",
    Does::Me,
    &[(200, "Me")],
)];

view! {
    /// The answer to `GET /v1/me`.
    #[derive(Debug, Serialize)]
    pub(crate) struct Me {
        /// The name of the token; anyone if the server asks for none.
        name: String,
        /// The scopes of the token; read contains view.
        scopes: Vec<&'static str> as view::items(view::named("Scope")),
        /// Patterns of the namespaces that it may use; * is all.
        namespaces: Vec<String>,
        /// Patterns of its queues for push and work; null if all.
        queues: Option<Vec<String>>,
        /// Patterns of the limits and pools that it may hold, such as pool:proxies; null if all.
        needs: Option<Vec<String>>,
        /// When the token ceases to be valid; null if never.
        expires: Option<Moment>,
        /// How many calls it may make in a time, such as 200/1s; null if any number.
        calls: Option<String>,
        /// How many calls, streams and waits it may have at once; null if any number.
        in_flight: Option<u32>,
        /// A hash of the file of tokens of the server: equal where files are. Absent for callers without admin, and
        /// without a file.
        #[serde(skip_serializing_if = "Option::is_none")]
        tokens: Option<String>,
    }
}

impl Me {
    pub(crate) fn of(grants: &Grants) -> Self {
        Me {
            name: grants.name().to_owned(),
            scopes: grants.scopes().iter().map(Scope::as_str).collect(),
            namespaces: grants.namespaces().collect(),
            queues: grants.queues().map(Iterator::collect),
            needs: grants.needs().map(Iterator::collect),
            expires: grants.expires(),
            calls: grants.calls().map(|rate| rate.to_string()),
            in_flight: grants.in_flight(),
            tokens: None,
        }
    }

    /// The same with what administrators see of the tokens of the server.
    pub(crate) fn at(grants: &Grants, tokens: &Tokens) -> Self {
        let tokens = grants.scopes().has(Scope::Admin).then(|| hash_of_file(tokens)).flatten();
        Me { tokens, ..Me::of(grants) }
    }
}

/// SHA-256 of the tokens with grants of their own, in hex: the same at servers whose files have the same tokens with the
/// same grants, in whatever order. Tokens with all rights are left out: a short one could be guessed from its hash.
fn hash_of_file(tokens: &Tokens) -> Option<String> {
    let line = |caller: &Arc<Caller>| {
        let grants = serde_json::to_string(&Me::of(caller.grants())).ok()?;
        Some(format!("{} {grants}\n", HEXLOWER.encode(&caller.sha256)))
    };
    let mut lines = tokens.listed().iter().map(line).collect::<Option<Vec<_>>>()?;
    lines.sort_unstable();
    (!lines.is_empty()).then(|| HEXLOWER.encode(&token_hash(lines.concat().as_bytes())))
}

#[cfg(test)]
mod tests {
    use tenure_core::access::GivenGrants;

    use super::*;
    use crate::tokens::ListedToken;

    fn file(all: &[(&str, &str, u8)]) -> Tokens {
        let one = |(name, scope, byte): &(&str, &str, u8)| {
            let given = GivenGrants {
                name: (*name).to_owned(),
                scopes: vec![(*scope).to_owned()],
                namespaces: vec!["*".to_owned()],
                ..GivenGrants::default()
            };
            ListedToken { grants: Grants::read(&given).unwrap(), sha256: [*byte; 32] }
        };
        let tokens = Tokens::locking("seed");
        tokens.replace_listed(all.iter().map(one).collect());
        tokens
    }

    #[test]
    fn files_with_the_same_tokens_and_grants_have_the_same_hash() {
        let hash = |all: &[(&str, &str, u8)]| hash_of_file(&file(all));
        let both = hash(&[("a", "read", 1), ("b", "admin", 2)]);
        assert!(both.as_ref().is_some_and(|hash| hash.len() == 64));
        assert_eq!(hash(&[("b", "admin", 2), ("a", "read", 1)]), both, "the order says nothing");
        for other in [
            &[("a", "read", 1)][..],
            &[("a", "read", 1), ("b", "admin", 3)],
            &[("a", "view", 1), ("b", "admin", 2)],
            &[("c", "read", 1), ("b", "admin", 2)],
        ] {
            assert_ne!(hash(other), both, "{other:?}");
        }
        assert_eq!(hash(&[]), None);
    }

    #[test]
    fn only_administrators_see_the_hash() {
        let tokens = file(&[("a", "read", 1), ("b", "admin", 2)]);
        let listed = tokens.listed();
        let seen = listed.iter().map(|one| Me::at(one.grants(), &tokens).tokens.is_some());
        assert_eq!(seen.collect::<Vec<_>>(), [false, true]);
    }
}
