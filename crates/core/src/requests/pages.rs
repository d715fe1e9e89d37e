//! Pages of a list. Each engine has cursors of its own; only that of a list of jobs is a row number on every engine.

use serde::{Deserialize, Serialize};

use crate::bounds::{LIST_DEFAULT, PAGE_BYTES_FULL};
use crate::refusal::Refusal;
use crate::sentences::ValueRefusal;
use crate::settings::ResourceView;

/// Estimated bytes of a resource in a page, beside its data.
const RESOURCE_BYTES: usize = 512;

/// The page of a list that a call asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// At most this many items, 1 to 1,000; 100 by default.
    pub max: usize,
    /// The `next` of the page before; `None` for the first page.
    pub cursor: Option<String>,
}

impl Default for Page {
    fn default() -> Self {
        Page { max: LIST_DEFAULT, cursor: None }
    }
}

impl Page {
    /// The row number behind which a page of jobs begins; `None` for the first page.
    ///
    /// # Errors
    /// A cursor that is not a number belongs to another list.
    pub fn row(&self) -> Result<Option<u64>, Refusal> {
        row_of(self.cursor.as_deref(), "/query/cursor")
    }
}

/// The row number in a cursor of jobs; `pointer` is the place of the cursor in the call.
pub(super) fn row_of(cursor: Option<&str>, pointer: &str) -> Result<Option<u64>, Refusal> {
    let Some(cursor) = cursor else { return Ok(None) };
    cursor.parse().map(Some).map_err(|_| {
        let no = Refusal::from(ValueRefusal::CursorOfAnother { cursor: cursor.to_owned() });
        no.at(pointer)
    })
}

/// A page of a list, as an engine answers it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Listed<T> {
    pub items: Vec<T>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<String>,
    /// Only a part of the list was scanned; go on with `next`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

impl<T> Listed<T> {
    /// Ends the page behind the item that fills it, by bytes; `next` then continues behind that item.
    fn cut(&mut self, bytes: impl Fn(&T) -> usize, cursor: impl Fn(&T) -> String) {
        let mut sum = 0;
        let full = self.items.iter().position(|item| {
            sum += bytes(item);
            sum >= PAGE_BYTES_FULL
        });
        if let Some(last) = full
            && last + 1 < self.items.len()
        {
            self.items.truncate(last + 1);
            self.next = self.items.last().map(cursor);
        }
    }
}

impl Listed<ResourceView> {
    /// Ends a page of resources behind the one whose data fills it.
    pub fn cut_by_data(&mut self) {
        self.cut(|view| RESOURCE_BYTES + view.data.text().len(), |view| view.id.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_with_the_item_that_fills_it() {
        let third = PAGE_BYTES_FULL / 3 + 1;
        for (sizes, left, next) in [
            (vec![], 0, None),
            (vec![1; 5], 5, None),
            (vec![third; 3], 3, None),
            (vec![third; 4], 3, Some("3")),
            (vec![PAGE_BYTES_FULL * 2, 1], 1, Some("1")),
        ] {
            let items = sizes.into_iter().enumerate().collect();
            let mut list: Listed<(usize, usize)> = Listed { items, next: None, partial: false };
            list.cut(|item| item.1, |item| (item.0 + 1).to_string());
            assert_eq!((list.items.len(), list.next.as_deref()), (left, next));
        }
    }
}
