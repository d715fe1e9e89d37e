//! The file of the keys that seal contents. No message quotes anything of it.

use std::fs;
use std::path::Path;

use tenure_engine::Seal;

use crate::exit::{Failure, USAGE};
use crate::settings::file::readable_by_others;

/// The variable that names the file, for commands that open a folder themselves.
const VARIABLE: &str = "TENURE_SEAL_KEY_FILE";

/// Reads the keys; without a file contents stay clear.
///
/// # Errors
/// The file cannot be read, or has no keys.
pub fn read(path: Option<&Path>) -> Result<Seal, Failure> {
    let Some(path) = path else { return Ok(Seal::none()) };
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|why| {
        Failure::usage(format!("the file of seal keys '{shown}' cannot be read: {why}"))
            .hint(format!("make one: (umask 077; openssl rand -base64 32 > {shown})"))
    })?;
    if let Some(warning) = readable_by_others(path, "the seal key") {
        tracing::warn!("{warning}");
    }
    Seal::read(&text)
        .map_err(|why| Failure::told(USAGE, &format!("the file of seal keys '{shown}': {why}")))
}

/// Reads the keys of a command that opens a folder itself.
///
/// # Errors
/// As [`read`].
pub fn of_environment() -> Result<Seal, Failure> {
    let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    read(named.as_deref().map(Path::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";

    #[test]
    fn a_file_that_has_no_keys_says_what_to_do_and_nothing_of_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let said = |text: &str| {
            fs::write(&path, text).unwrap();
            read(Some(&path)).map(|seal| seal.is_on()).map_err(|no| format!("{no:?}"))
        };
        assert_eq!(said(&format!("# of this year\n{KEY}\n")), Ok(true));
        for (text, why) in [
            ("", "it has no key"),
            ("# none\n", "it has no key"),
            ("hunter2\n", "line 1 is not a key, which is 32 bytes in base64"),
            (&format!("{KEY}\n\nc2hvcnQ=\n"), "line 3 is not a key, which is 32 bytes in base64"),
            (&format!("{KEY}\n{KEY}\n"), "line 2 has the key of an earlier line"),
        ] {
            let no = said(text).unwrap_err();
            assert!(no.contains(why), "{no}");
            assert!(!no.contains("hunter2") && !no.contains(KEY), "{no}");
        }
        let no = read(Some(&dir.path().join("none"))).unwrap_err();
        assert!(no.sentence.unwrap().contains("cannot be read"));
        assert!(!read(None).unwrap().is_on());
    }
}
