//! What one token may do, checked when it is made: its name, scopes, patterns of names, and its end.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use super::{Scope, ScopeSet, TokenName};
use crate::job::Need;
use crate::names::{LimitName, Namespace, PoolName, QueueName};
use crate::refusal::Refusal;
use crate::sentences::cut;
use crate::time::{Moment, Span};

/// The names of tokens without a name of their own begin with this. A number follows where they have all rights.
const UNNAMED: &str = "token-";
/// The name of callers where a server asks for no token.
const ANYONE: &str = "anyone";

/// Why a token cannot have these grants. Each message is complete without the line that it comes from.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NotGrants {
    #[error(
        "the name {0:?} must have 1 to 48 characters of a-z, 0-9 and \"-\", and begin with one of a-z or 0-9"
    )]
    Name(String),
    #[error("the name {0:?} is reserved for tokens without a name")]
    Reserved(String),
    #[error(
        "there is no scope {0:?}; the scopes are metrics, view, read, push, work, operate and admin"
    )]
    Scope(String),
    #[error("\"scopes\" is empty: the token may do nothing")]
    NoScope,
    #[error("\"namespaces\" is empty; \"*\" stands for all namespaces")]
    NoNamespace,
    #[error("{list:?} has the pattern {pattern:?}: {why}")]
    Pattern { list: &'static str, pattern: String, why: String },
    #[error(
        "{list:?} restricts push and work alone, and the token also has {scope:?}, which names no queue for most \
             of its calls; give {scope:?} a token of its own"
    )]
    Unrestricted { list: &'static str, scope: Scope },
    #[error("{list:?} restricts push and work, and the token has neither")]
    Useless { list: &'static str },
    #[error("\"calls\" is {0:?}, and must be a number of calls and a time, such as \"200/1s\"")]
    Calls(String),
    #[error("\"in_flight\" must be 1 or more")]
    InFlight,
}

/// How many calls a token may make in a time; as many may come at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallRate {
    /// 1 or more.
    pub count: u32,
    /// Longer than zero.
    pub per: Span,
}

impl FromStr for CallRate {
    type Err = NotGrants;

    fn from_str(text: &str) -> Result<Self, NotGrants> {
        let read = || {
            let (count, per) = text.split_once('/')?;
            let (count, per) = (count.parse().ok()?, per.parse::<Span>().ok()?);
            (count > 0 && per > Span::ZERO).then_some(CallRate { count, per })
        };
        read().ok_or_else(|| NotGrants::Calls(cut(text)))
    }
}

impl fmt::Display for CallRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.per)
    }
}

/// Patterns of names of one kind: a name, or the beginning of names followed by `*`.
pub struct Patterns<N> {
    patterns: Arc<[Pattern]>,
    kind: PhantomData<fn(N)>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Pattern {
    /// The name, or the beginning of it.
    text: Box<str>,
    is_beginning: bool,
}

impl<N: FromStr<Err = Refusal> + AsRef<str>> Patterns<N> {
    /// Reads patterns. `list`: the key that has them.
    ///
    /// # Errors
    /// A pattern that is no name, or has a `*` before its end.
    pub fn read<S: AsRef<str>>(list: &'static str, given: &[S]) -> Result<Self, NotGrants> {
        let read = |given: &S| {
            let given = given.as_ref();
            let (text, is_beginning) = match given.strip_suffix('*') {
                Some(text) => (text, true),
                None => (given, false),
            };
            let wrong = |why: String| NotGrants::Pattern { list, pattern: cut(given), why };
            if text.contains('*') {
                return Err(wrong("a \"*\" stands at the end alone".to_owned()));
            }
            // A beginning is well formed if a name can begin with it.
            let name = if is_beginning { format!("{text}x") } else { text.to_owned() };
            N::from_str(&name).map_err(|no| wrong(no.detail))?;
            Ok(Pattern { text: text.into(), is_beginning })
        };
        let patterns = given.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Patterns { patterns, kind: PhantomData })
    }

    /// Whether one of them matches.
    pub fn match_name(&self, name: &N) -> bool {
        let name = name.as_ref();
        self.patterns.iter().any(|pattern| {
            if pattern.is_beginning {
                name.starts_with(&*pattern.text)
            } else {
                name == &*pattern.text
            }
        })
    }
}

impl<N> Patterns<N> {
    /// Whether every name matches.
    pub fn match_all(&self) -> bool {
        self.patterns.iter().any(|pattern| pattern.is_beginning && pattern.text.is_empty())
    }

    /// The patterns as they are written.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.patterns.iter().map(ToString::to_string)
    }
}

impl<N> PartialEq for Patterns<N> {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}
impl<N> Eq for Patterns<N> {}
impl<N> Clone for Patterns<N> {
    fn clone(&self) -> Self {
        Patterns { patterns: self.patterns.clone(), kind: PhantomData }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.is_beginning { "*" } else { "" })
    }
}

/// `"web", "web-*"`.
impl<N> fmt::Display for Patterns<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.texts().map(|text| format!("{text:?}")).collect();
        f.write_str(if texts.is_empty() { "none" } else { "" })?;
        f.write_str(&texts.join(", "))
    }
}

impl<N> fmt::Debug for Patterns<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

/// Patterns of limits and pools: `limit:site:*`, `pool:proxies`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NeedPatterns {
    limits: Patterns<LimitName>,
    pools: Patterns<PoolName>,
}

impl NeedPatterns {
    const LIST: &str = "needs";

    fn read(given: &[String]) -> Result<Self, NotGrants> {
        let (mut limits, mut pools) = (Vec::new(), Vec::new());
        for pattern in given {
            match pattern.split_once(':') {
                Some(("limit", limit)) => limits.push(limit),
                Some(("pool", pool)) => pools.push(pool),
                _ => {
                    let why = "write \"limit:NAME\" or \"pool:NAME\"".to_owned();
                    return Err(NotGrants::Pattern {
                        list: Self::LIST,
                        pattern: cut(pattern),
                        why,
                    });
                }
            }
        }
        let limits = Patterns::read(Self::LIST, &limits)?;
        Ok(NeedPatterns { limits, pools: Patterns::read(Self::LIST, &pools)? })
    }

    fn match_need(&self, need: &Need) -> bool {
        match need {
            Need::Limit { limit, .. } => self.limits.match_name(limit),
            Need::Pool { pool, .. } => self.pools.match_name(pool),
        }
    }

    fn texts(&self) -> impl Iterator<Item = String> {
        let limits = self.limits.texts().map(|text| format!("limit:{text}"));
        limits.chain(self.pools.texts().map(|text| format!("pool:{text}")))
    }
}

/// The grants of a token as a file or a command line writes them.
#[derive(Clone, Debug, Default)]
pub struct GivenGrants {
    pub name: String,
    /// Names of scopes.
    pub scopes: Vec<String>,
    /// Patterns of namespaces; `*` is all.
    pub namespaces: Vec<String>,
    /// Patterns of the queues of push and work; `None`: all.
    pub queues: Option<Vec<String>>,
    /// Patterns of the limits and pools that it may hold; `None`: all.
    pub needs: Option<Vec<String>>,
    /// From this moment on the token is not valid; `None`: never.
    pub expires: Option<Moment>,
    /// Calls in a time, such as `200/1s`; `None`: any number.
    pub calls: Option<String>,
    /// Calls, streams and waits at once; `None`: any number.
    pub in_flight: Option<u32>,
}

/// The rights of one token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grants {
    pub(super) name: Arc<str>,
    pub(super) scopes: ScopeSet,
    pub(super) namespaces: Patterns<Namespace>,
    pub(super) queues: Option<Patterns<QueueName>>,
    pub(super) needs: Option<NeedPatterns>,
    expires: Option<Moment>,
    calls: Option<CallRate>,
    in_flight: Option<u32>,
}

impl Grants {
    /// # Errors
    /// The first fault of them.
    pub fn read(given: &GivenGrants) -> Result<Self, NotGrants> {
        let name = checked_name(&given.name)?;
        let scopes = given.scopes.iter().map(|scope| scope.parse::<Scope>());
        let scopes = scopes.collect::<Result<ScopeSet, _>>()?;
        if scopes.is_empty() {
            return Err(NotGrants::NoScope);
        }
        if given.namespaces.is_empty() {
            return Err(NotGrants::NoNamespace);
        }
        let queues =
            given.queues.as_deref().map(|all| Patterns::read("queues", all)).transpose()?;
        let needs = given.needs.as_deref().map(NeedPatterns::read).transpose()?;
        let lists = [("queues", queues.is_some()), ("needs", needs.is_some())];
        for (list, _) in lists.into_iter().filter(|(_, is_given)| *is_given) {
            // These name a job, a flow or a schedule by its id: a restriction would hold for some calls and not for
            // others, and would be taken for more than it is.
            if let Some(scope) =
                [Scope::Operate, Scope::Admin].into_iter().find(|scope| scopes.has(*scope))
            {
                return Err(NotGrants::Unrestricted { list, scope });
            }
            if !scopes.has(Scope::Push) && !scopes.has(Scope::Work) {
                return Err(NotGrants::Useless { list });
            }
        }
        if given.in_flight == Some(0) {
            return Err(NotGrants::InFlight);
        }
        Ok(Grants {
            name,
            scopes,
            namespaces: Patterns::read("namespaces", &given.namespaces)?,
            queues,
            needs,
            expires: given.expires,
            calls: given.calls.as_deref().map(str::parse).transpose()?,
            in_flight: given.in_flight,
        })
    }

    /// All rights, for the `number`th token of a list whose tokens have no names, from 1.
    pub fn all_of_token(number: usize) -> Self {
        Grants::of(format!("{UNNAMED}{number}").into(), ScopeSet::all())
    }

    /// All rights, where a server asks for no token.
    pub fn all_of_anyone() -> Self {
        Grants::of(ANYONE.into(), ScopeSet::all())
    }

    /// No right at all, for callers of what is open to everybody.
    pub fn nothing() -> Self {
        Grants::of(ANYONE.into(), ScopeSet::default())
    }

    /// The right to read the metrics, and no other.
    pub fn metrics_alone() -> Self {
        let scopes = ScopeSet::from_iter([Scope::Metrics]);
        Grants::of(format!("{UNNAMED}metrics").into(), scopes)
    }

    /// All rights, if this name stands for them; no token of a file can have it.
    pub fn all_by_name(name: &str) -> Option<Self> {
        let number = name.strip_prefix(UNNAMED).unwrap_or_default();
        let is_numbered = !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit());
        (is_numbered || name == ANYONE).then(|| Grants::of(name.into(), ScopeSet::all()))
    }

    fn of(name: Arc<str>, scopes: ScopeSet) -> Self {
        let every: Box<[Pattern]> = Box::new([Pattern { text: "".into(), is_beginning: true }]);
        Grants {
            name,
            scopes,
            namespaces: Patterns { patterns: every.into(), kind: PhantomData },
            queues: None,
            needs: None,
            expires: None,
            calls: None,
            in_flight: None,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name that its token has of its own; `None` for a token with all rights, and where a server asks for none.
    pub fn token_name(&self) -> Option<TokenName> {
        TokenName::of(&self.name).filter(|name| !is_reserved(name.as_str()))
    }

    pub fn scopes(&self) -> ScopeSet {
        self.scopes
    }

    /// The patterns of its namespaces.
    pub fn namespaces(&self) -> impl Iterator<Item = String> {
        self.namespaces.texts()
    }

    /// A namespace to begin with, where the main one is closed; `None`: the main one is open, or no namespace is named.
    pub fn home(&self) -> Option<Namespace> {
        if self.namespaces.match_name(&Namespace::main()) {
            return None;
        }
        self.namespaces.texts().find_map(|text| Namespace::parse(&text).ok())
    }

    /// The patterns of its queues; `None`: all queues.
    pub fn queues(&self) -> Option<impl Iterator<Item = String>> {
        self.queues.as_ref().map(Patterns::texts)
    }

    /// The patterns of its limits and pools; `None`: all.
    pub fn needs(&self) -> Option<impl Iterator<Item = String>> {
        self.needs.as_ref().map(NeedPatterns::texts)
    }

    pub fn expires(&self) -> Option<Moment> {
        self.expires
    }

    /// How many calls it may make in a time; `None`: any number.
    pub fn calls(&self) -> Option<CallRate> {
        self.calls
    }

    /// How many calls, streams and waits of it may be under way at once; `None`: any number.
    pub fn in_flight(&self) -> Option<u32> {
        self.in_flight
    }

    /// Whether the token is no longer valid at this moment.
    pub fn is_over(&self, now: Moment) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }

    pub(super) fn match_need(&self, need: &Need) -> bool {
        self.needs.as_ref().is_none_or(|needs| needs.match_need(need))
    }

    pub(super) fn match_limit(&self, limit: &LimitName) -> bool {
        self.needs.as_ref().is_none_or(|needs| needs.limits.match_name(limit))
    }

    pub(super) fn match_pool(&self, pool: &PoolName) -> bool {
        self.needs.as_ref().is_none_or(|needs| needs.pools.match_name(pool))
    }
}

/// A reply, or a part of one.
pub(crate) trait Concealed {
    /// Hides what a token with these grants may not see of it.
    fn conceal(&mut self, grants: &Grants);
}

/// Whether it is the name of a caller whose token has none of its own, or who needs no token.
fn is_reserved(name: &str) -> bool {
    name == ANYONE || name.starts_with(UNNAMED)
}

fn checked_name(name: &str) -> Result<Arc<str>, NotGrants> {
    if TokenName::known(name).is_none() {
        return Err(NotGrants::Name(cut(name)));
    }
    if is_reserved(name) {
        return Err(NotGrants::Reserved(name.to_owned()));
    }
    Ok(name.into())
}
