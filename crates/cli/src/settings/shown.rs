//! Prints settings as a file with the same meaning: `serve --print-config`.
//!
//! Each line ends with its source. A value with a password is shown without it, as a comment, so that nobody takes it
//! for the whole address.

use std::fmt::Write;

use tenure::url::StoreUrl;

use crate::settings::layers::{LayeredSetting, Origin};

/// Begins a comment, which a reader of the file skips.
const COMMENT: &str = "# ";

/// The settings of `serve`. `token`: the layer that names it, if there is one.
pub fn as_toml(settings: &[LayeredSetting], token: Option<&Origin>) -> String {
    let mut text =
        "# The effective settings of this server, and the origin of each.\n[serve]\n".to_owned();
    for setting in settings {
        let (key, origin) = (&setting.key, &setting.origin);
        let Some(values) = &setting.values else {
            // A text would be taken for the value.
            let _ = writeln!(text, "{COMMENT}{key} is not set");
            continue;
        };
        let shown: Vec<String> = values.iter().map(|value| without_password(key, value)).collect();
        let hidden = if shown == *values { "" } else { COMMENT };
        let note = if shown == *values { "" } else { "; its password is not shown" };
        let value = match (setting.is_switch, setting.is_list) {
            (true, _) => shown.concat(),
            (_, true) => {
                format!("[{}]", shown.iter().map(|one| quoted(one)).collect::<Vec<_>>().join(", "))
            }
            _ => quoted(&shown.concat()),
        };
        let _ = writeln!(text, "{hidden}{key} = {value}  {COMMENT}{origin}{note}");
    }
    let _ = match token {
        Some(origin) => writeln!(text, "{COMMENT}the token comes from: {origin}"),
        None => writeln!(text, "{COMMENT}there is no token"),
    };
    text
}

/// An address without its password; all other values as they are.
fn without_password(key: &str, value: &str) -> String {
    if !matches!(key, "store" | "otlp") || !has_password(value) {
        return value.to_owned();
    }
    value.parse::<StoreUrl>().map_or_else(|_| "•••".to_owned(), |url| url.to_string())
}

/// Whether an address has a user or a password.
pub fn has_password(address: &str) -> bool {
    address.split_once("//").is_some_and(|(_, rest)| rest.contains('@'))
}

/// A text as TOML writes it: as JSON does, which leaves one control character as it is.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
