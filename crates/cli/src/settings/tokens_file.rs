//! The file of `--tokens`: a table for each token, with its hash and its grants. It holds no token.
//!
//! No message shows a value that could be a token: a person may have put one into the wrong place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use data_encoding::HEXLOWER_PERMISSIVE;
use tenure_core::access::{GivenGrants, Grants};
use tenure_core::time::Moment;
use tenure_server::{LISTED_TOKENS_MAX, ListedRefused, ListedToken, check_listed};

use crate::exit::Failure;
use crate::settings::file::{FileEntry, FilePlace, FileTable, FileValue, SettingsFile, only_known};

/// The keys of one token.
const KEYS: [&str; 9] =
    ["name", "sha256", "scopes", "namespaces", "queues", "needs", "expires", "calls", "in_flight"];
/// Permission bit: everybody may write the file, and give a token more rights.
const OTHERS_WRITE: u32 = 0o002;

/// Reads the tokens of a file, one at least.
///
/// # Errors
/// The file cannot be read, is open to changes by others, or one of its tokens is not well formed.
pub fn read(path: &Path) -> Result<Vec<ListedToken>, Failure> {
    let shown = path.display();
    let gone = || Failure::usage(format!("there is no file of tokens '{shown}'"));
    let file = SettingsFile::read(path)?.ok_or_else(gone)?;
    let mode = fs::metadata(path).map_or(0, |file| file.permissions().mode());
    if mode & OTHERS_WRITE != 0 {
        return Err(Failure::usage(format!("every user of this machine can change '{shown}'"))
            .hint(format!("check its content, then chmod go-w {shown}")));
    }
    of_table(path, &file.table)
}

fn of_table(path: &Path, table: &FileTable) -> Result<Vec<ListedToken>, Failure> {
    only_known(table, "the file", &["token"])?;
    let tables = match table.get("token").map(|entry| &entry.value) {
        Some(FileValue::Tables(tables)) => tables,
        _ => {
            return Err(Failure::usage(format!("'{}' has no token", path.display()))
                .hint("each token is a table [[token]]; `tenure token new` writes one. To end the last token, give it \
                       an \"expires\" that is over"));
        }
    };
    let tokens = tables.iter().map(of_entry).collect::<Result<Vec<_>, _>>()?;
    let line = |place: usize| tables[place].place.line;
    check_listed(&tokens).map_err(|no| match no {
        ListedRefused::TooMany(count) => {
            let most = format!("{count} tokens, and {LISTED_TOKENS_MAX} are the most");
            Failure::usage(format!("'{}' has {most}", path.display()))
        }
        ListedRefused::SameName { first, second } => {
            let name = tokens[second].grants.name();
            let why = format!("line {} has the name {name:?}, too", line(first));
            wrong(&tables[second].place, why)
        }
        ListedRefused::SameToken { first, second } => {
            wrong(&tables[second].place, format!("line {} has the same token", line(first)))
        }
    })?;
    Ok(tokens)
}

fn of_entry(entry: &FileEntry) -> Result<ListedToken, Failure> {
    let place = &entry.place;
    let FileValue::Table(table) = &entry.value else {
        return Err(wrong(place, "a token is a table, below a line [[token]]"));
    };
    only_known(table, "[[token]]", &KEYS)?;
    let required =
        |key: &str| table.get(key).ok_or_else(|| wrong(place, format!("the token has no {key:?}")));
    let sha256 = hash(required("sha256")?)?;
    let given = GivenGrants {
        name: text(required("name")?, "name")?.to_owned(),
        scopes: list(required("scopes")?, "scopes")?,
        namespaces: list(required("namespaces")?, "namespaces")?,
        queues: table.get("queues").map(|entry| list(entry, "queues")).transpose()?,
        needs: table.get("needs").map(|entry| list(entry, "needs")).transpose()?,
        expires: table.get("expires").map(moment).transpose()?,
        calls: table.get("calls").map(|entry| text(entry, "calls")).transpose()?.map(str::to_owned),
        in_flight: table.get("in_flight").map(number).transpose()?,
    };
    let grants = Grants::read(&given).map_err(|no| wrong(place, no.to_string()))?;
    Ok(ListedToken { grants, sha256 })
}

fn wrong(place: &FilePlace, why: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("{place}: {why}"))
}

fn text<'e>(entry: &'e FileEntry, key: &str) -> Result<&'e str, Failure> {
    match &entry.value {
        FileValue::Plain(text) => Ok(text),
        FileValue::List(_) | FileValue::Table(_) | FileValue::Tables(_) => {
            Err(wrong(&entry.place, format!("{key:?} must be a text")))
        }
    }
}

fn list(entry: &FileEntry, key: &str) -> Result<Vec<String>, Failure> {
    match &entry.value {
        FileValue::List(texts) => Ok(texts.clone()),
        FileValue::Plain(_) | FileValue::Table(_) | FileValue::Tables(_) => {
            Err(wrong(&entry.place, format!("{key:?} must be a list of texts")))
        }
    }
}

fn hash(entry: &FileEntry) -> Result<[u8; 32], Failure> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text(entry, "sha256")?.as_bytes());
    bytes.ok().and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
        wrong(&entry.place, "\"sha256\" must have 64 hexadecimal digits").hint(
            "it is the SHA-256 of the whole token, not the token; `tenure token new` writes both",
        )
    })
}

fn moment(entry: &FileEntry) -> Result<Moment, Failure> {
    text(entry, "expires")?.parse().map_err(|_| {
        wrong(&entry.place, "\"expires\" must be a moment with an offset")
            .hint("such as 2027-06-30T00:00:00Z")
    })
}

fn number(entry: &FileEntry) -> Result<u32, Failure> {
    text(entry, "in_flight")?
        .parse()
        .map_err(|_| wrong(&entry.place, "\"in_flight\" must be a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90";

    fn read_text(text: &str) -> Result<Vec<ListedToken>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        read(&path).map_err(|no| {
            let folder = format!("{}/", folder.path().display());
            no.sentence.unwrap().replace(&folder, "")
        })
    }

    #[test]
    fn a_token_has_a_hash_and_grants() {
        let tokens = read_text(&format!(
            "[[token]]\nname = 'crawler'\nsha256 = '{HASH}'\nscopes = ['push', 'work']\nnamespaces = ['web', 'web-*']\n\
             queues = []\nneeds = ['limit:site:*']\ncalls = '200/1s'\nin_flight = 64\nexpires = 2027-06-30T00:00:00Z\n\n\
             [[token]]\nname = 'ops'\nsha256 = '{}'\nscopes = ['operate']\nnamespaces = ['*']\n",
            HASH.replace('2', "3").to_uppercase()
        ))
        .unwrap();
        let [crawler, ops] = &tokens[..] else { panic!("{tokens:?}") };
        assert_eq!(crawler.sha256[..3], [0x2b, 0xd8, 0x06]);
        assert_eq!(crawler.grants.name(), "crawler");
        assert_eq!(crawler.grants.queues().map(Iterator::count), Some(0));
        assert_eq!(crawler.grants.expires(), "2027-06-30T00:00:00Z".parse().ok());
        assert!(ops.grants.queues().is_none() && ops.grants.needs().is_none());
    }

    #[test]
    fn a_wrong_file_is_told_with_its_line_and_without_a_value() {
        let token = |changes: &[(&str, &str)]| {
            let all = [
                ("name", "'a'"),
                ("sha256", &format!("'{HASH}'")),
                ("scopes", "['view']"),
                ("namespaces", "['*']"),
            ];
            let mut text = "[[token]]\n".to_owned();
            for (key, value) in all {
                let change = changes.iter().find(|(name, _)| *name == key);
                let value = change.map_or(value, |(_, value)| value);
                if !value.is_empty() {
                    text += &format!("{key} = {value}\n");
                }
            }
            let more = changes.iter().filter(|(name, _)| all.iter().all(|(key, _)| key != name));
            more.fold(text, |text, (key, value)| text + &format!("{key} = {value}\n"))
        };
        let other_hash = format!("'{}'", "0".repeat(64));
        for (text, is) in [
            (String::new(), "'tokens.toml' has no token"),
            ("# none yet\n".to_owned(), "'tokens.toml' has no token"),
            ("token = 'tnr_a_geheim'\n".to_owned(), "'tokens.toml' has no token"),
            (token(&[("name", "")]), "tokens.toml:1: the token has no \"name\""),
            (token(&[("sha256", "'tnr_a_geheim'")]), "tokens.toml:3: \"sha256\" must have 64"),
            (token(&[("scopes", "'view'")]), "tokens.toml:4: \"scopes\" must be a list of texts"),
            (token(&[("scopes", "['write']")]), "tokens.toml:1: there is no scope \"write\""),
            (token(&[("namespaces", "[]")]), "tokens.toml:1: \"namespaces\" is empty"),
            (token(&[("expires", "2027-06-30")]), "tokens.toml:6: \"expires\" must be a moment"),
            (token(&[("calls", "'often'")]), "tokens.toml:1: \"calls\" is \"often\""),
            (token(&[("in_flight", "'x'")]), "tokens.toml:6: \"in_flight\" must be a whole number"),
            (token(&[("token", "'tnr_a_geheim'")]), "tokens.toml:6: [[token]] has no \"token\""),
            (token(&[]) + &token(&[]), "tokens.toml:6: line 1 has the name \"a\", too"),
            (token(&[]) + &token(&[("name", "'b'")]), "tokens.toml:6: line 1 has the same token"),
            (
                token(&[]) + &token(&[("name", "'token-1'"), ("sha256", &other_hash)]),
                "tokens.toml:6: the name \"token-1\" is reserved",
            ),
        ] {
            let said = read_text(&text).map(|_| ()).unwrap_err();
            assert!(said.starts_with(is) && !said.contains("geheim"), "{said}");
        }
    }

    #[test]
    fn a_file_that_everybody_may_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let no = read(&path).map(|_| ()).unwrap_err();
        assert!(no.sentence.unwrap().starts_with("every user of this machine can change"));
    }
}
