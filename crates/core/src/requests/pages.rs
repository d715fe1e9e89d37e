//! Pages of a list. A cursor is the engine's own: nothing here looks into it.

use serde::{Deserialize, Serialize};

use crate::bounds::LIST_DEFAULT;

/// A page of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// At most so many, 1 to 1,000.
    pub max: usize,
    /// The `next` of the page before.
    pub cursor: Option<String>,
}

impl Default for Page {
    fn default() -> Self {
        Page { max: LIST_DEFAULT, cursor: None }
    }
}

/// A page of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Listed<T> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// Only a part was looked at; go on with `next`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}
