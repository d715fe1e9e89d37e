//! Filters a list where the API cannot, in bounded work.

use tenure_core::bounds::{LIST_DEFAULT, LIST_MAX, LIST_SCAN_MAX};
use tenure_core::requests::{Listed, Page};

use crate::visit::Unanswered;

/// Reads from a cursor on until a page is full or `LIST_SCAN_MAX` items were read; then the answer is `partial`. The
/// first call asks for `first` items.
pub(crate) async fn look_through<T, F>(
    mut cursor: Option<String>,
    first: usize,
    ask: impl Fn(Page) -> F,
    fits: impl Fn(&T) -> bool,
) -> Result<Listed<T>, Unanswered>
where
    F: Future<Output = Result<Listed<T>, Unanswered>>,
{
    let mut all = Listed { items: Vec::new(), next: None, partial: false };
    let (mut max, mut looked) = (first, 0);
    while looked < LIST_SCAN_MAX {
        let mut list = ask(Page { max, cursor: cursor.clone() }).await?;
        looked += max;
        list.items.retain(&fits);
        // Where few items fit, the next call reads more at once; where many do, the page stays short.
        max = if list.items.is_empty() { (max * 4).min(LIST_MAX) } else { first };
        all.items.append(&mut list.items);
        (all.next, all.partial) = (list.next, list.partial);
        if all.next.is_none() || all.items.len() >= LIST_DEFAULT {
            return Ok(all);
        }
        cursor.clone_from(&all.next);
    }
    all.partial = true;
    Ok(all)
}
