//! The files that all pages share, under names that change with their content, so that a browser keeps them for good.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

/// A file inside the program.
#[derive(Debug)]
pub(crate) struct AssetFile {
    pub content: &'static str,
    pub media: &'static str,
    /// The path, with the beginning of the hash of the content.
    pub path: String,
}

fn hashed(stem: &str, end: &str, content: &'static str, media: &'static str) -> AssetFile {
    let hash: String =
        Sha256::digest(content.as_bytes())[..8].iter().map(|b| format!("{b:02x}")).collect();
    AssetFile { content, media, path: format!("/assets/{stem}-{hash}.{end}") }
}

/// The style of all pages.
pub(crate) fn style() -> &'static AssetFile {
    static FILE: OnceLock<AssetFile> = OnceLock::new();
    FILE.get_or_init(|| {
        hashed("app", "css", include_str!("../assets/app.css"), "text/css; charset=utf-8")
    })
}

/// The work of a page where there is JavaScript: local times, live updates, keys.
pub(crate) fn script() -> &'static AssetFile {
    static FILE: OnceLock<AssetFile> = OnceLock::new();
    FILE.get_or_init(|| {
        hashed("app", "js", include_str!("../assets/app.js"), "text/javascript; charset=utf-8")
    })
}

/// The icon in a browser's tab.
pub(crate) fn icon() -> &'static AssetFile {
    static FILE: OnceLock<AssetFile> = OnceLock::new();
    FILE.get_or_init(|| hashed("icon", "svg", include_str!("../assets/icon.svg"), "image/svg+xml"))
}

/// The file at a path.
pub(crate) fn at(path: &str) -> Option<&'static AssetFile> {
    [style(), script(), icon()].into_iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A browser loads this once, and a phone on a slow connection waits for it.
    const BYTES_MAX: usize = 120 * 1024;

    #[test]
    fn the_files_of_all_pages_are_small_and_name_no_other_host() {
        let files = [style(), script(), icon()];
        let bytes: usize = files.iter().map(|file| file.content.len()).sum();
        assert!(bytes < BYTES_MAX, "{bytes} bytes");
        for file in files {
            let text = file.content.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:"), "{}", file.path);
            assert!(!text.contains("@import") && !text.contains("url("), "{}", file.path);
            assert_eq!(at(&file.path).map(|found| found.content), Some(file.content));
        }
        assert!(at("/assets/app.css").is_none());
    }
}
