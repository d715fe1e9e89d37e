//! Headers that list values, in one line or in several.

use hyper::header::{ACCEPT, HeaderMap, HeaderName};

/// The listed values, in their order. A line that is no text is left out.
pub(crate) fn listed(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// Whether a caller names this media type among those that it accepts.
pub(crate) fn accepts(headers: &HeaderMap, media: &str) -> bool {
    listed(headers, ACCEPT)
        .any(|kind| kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media))
}
