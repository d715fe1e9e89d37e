//! Access: the scopes of tokens, what a token may do, and which parts of a reply its holder sees.
//!
//! Everything here is pure. The server finds the token of a caller; [`Grants`] says if the caller may make a request,
//! and hides the contents that the caller may not see. Each operation has exactly one scope: a column of the table of
//! operations ([`Spec`](crate::requests::Spec)).

mod conceal;
mod grants;
mod permits;
#[cfg(test)]
mod tests;
mod token_name;

use std::fmt;
use std::str::FromStr;

pub(crate) use grants::Concealed;
pub use grants::{CallRate, GivenGrants, Grants, NotGrants, Patterns};
pub use token_name::TokenName;

macro_rules! scopes {
    ($($scope:ident $name:literal $about:literal;)*) => {
        /// A kind of rights. No scope contains another one, except that `read` contains `view`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Scope { $(#[doc = $about] $scope),* }

        impl Scope {
            /// All scopes, in the order of the reference.
            pub const ALL: &[Scope] = &[$(Scope::$scope),*];

            /// Its name in files, messages and the reference.
            pub const fn as_str(self) -> &'static str {
                match self { $(Scope::$scope => $name),* }
            }

            /// A sentence that names the operations it permits.
            pub const fn about(self) -> &'static str {
                match self { $(Scope::$scope => $about),* }
            }
        }
    };
}

scopes! {
    Metrics "metrics" "Read `/metrics`.";
    View "view" "Lists and states, without contents: payloads, results, errors, progress and data are `•••`.";
    Read "read" "The same as `view`, with those contents.";
    Push "push" "Push jobs, also as follow-ups of a settle.";
    Work "work" "Lease, extend and settle, and read the results of a job's parents.";
    Operate "operate" "Cancel, retry, delete, pause and resume; cool, ban and restore resources; end leases by force.";
    Admin "admin" "Settings of queues, limits, pools and schedules, and the resources of pools.";
}

/// The scopes that a call needs whose answer has every namespace with all its contents and secrets, such as a backup. It
/// also needs all namespaces.
pub const WHOLE_STORE: [Scope; 3] = [Scope::Read, Scope::Work, Scope::Admin];

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = NotGrants;

    fn from_str(name: &str) -> Result<Self, NotGrants> {
        let found = Scope::ALL.iter().copied().find(|scope| scope.as_str() == name);
        found.ok_or_else(|| NotGrants::Scope(crate::sentences::cut(name)))
    }
}

/// The scopes of one token.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopeSet(u8);

const fn bit(scope: Scope) -> u8 {
    1 << scope as u8
}

impl ScopeSet {
    /// Every scope.
    pub fn all() -> Self {
        Scope::ALL.iter().copied().collect()
    }

    /// Whether the scope is in the set, or is contained in one that is.
    pub fn has(self, scope: Scope) -> bool {
        let implied = if matches!(scope, Scope::View) { bit(Scope::Read) } else { 0 };
        self.0 & (bit(scope) | implied) != 0
    }

    /// The scopes as they were given, in the order of the reference.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.iter().copied().filter(move |scope| self.0 & bit(*scope) != 0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        ScopeSet(scopes.into_iter().fold(0, |all, scope| all | bit(scope)))
    }
}

/// `push and work`.
impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Scope::as_str).collect();
        match names.split_last() {
            Some((last, [])) => f.write_str(last),
            Some((last, before)) => write!(f, "{} and {last}", before.join(", ")),
            None => f.write_str("none"),
        }
    }
}

impl fmt::Debug for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopeSet({self})")
    }
}
