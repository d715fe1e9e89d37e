//! A file of settings, in TOML: tables, and plain values with the lines they stand on.
//!
//! It knows no setting: the caller says which keys there are. An error names file and line, and never the value, which
//! may be a secret.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tenure_core::decode::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::exit::Failure;

/// Longest file of settings, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// Permission bits: a user other than the owner may read it.
const OTHERS_READ: u32 = 0o044;
/// Permission bit: everybody may write it. A group is allowed to: it is the user's own on many systems.
const OTHERS_WRITE: u32 = 0o002;

/// A line of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePlace {
    /// The file, as it was named.
    pub file: Rc<Path>,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// The value of a key, and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileEntry {
    /// Where its key stands.
    pub place: FilePlace,
    pub value: FileValue,
}

/// The value of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileValue {
    /// A text, a whole number, true, false or a moment, in the form of the command line.
    Plain(String),
    /// Several of such values.
    List(Vec<String>),
    /// A table with keys of its own.
    Table(FileTable),
    /// Several tables under one name, each with its place; one at least.
    Tables(Vec<FileEntry>),
}

/// Keys and their values.
pub type FileTable = BTreeMap<String, FileEntry>;

/// A file that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingsFile {
    /// As it was named.
    pub path: Rc<Path>,
    pub table: FileTable,
}

impl SettingsFile {
    /// Reads a file; `None` if it is not there.
    ///
    /// # Errors
    /// It cannot be read, or is not TOML.
    pub fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let text = match text_of(path) {
            Ok(text) => text,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => {
                let what = format!("cannot read the settings in '{}'", path.display());
                return Err(Failure::file(what, &why));
            }
        };
        SettingsFile::parse(path, &text).map(Some)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let reading = FileReading { file: path.into(), text };
        let table = DeTable::parse(text).map_err(|why| {
            let place = reading.place(why.span().map_or(0, |span| span.start));
            Failure::usage(format!("{place}: {}", why.message()))
                .hint("the file is TOML: key = \"value\", below a line such as [serve]")
        })?;
        Ok(SettingsFile { path: reading.file.clone(), table: reading.table(table.get_ref())? })
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 1 MiB"))
    } else {
        Ok(text)
    }
}

struct FileReading<'t> {
    file: Rc<Path>,
    text: &'t str,
}

impl FileReading<'_> {
    fn place(&self, at: usize) -> FilePlace {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        FilePlace { file: self.file.clone(), line }
    }

    fn table(&self, table: &DeTable<'_>) -> Result<FileTable, Failure> {
        let mut read = FileTable::new();
        for (key, value) in table {
            let place = self.place(key.span().start);
            let value = match value.get_ref() {
                DeValue::Table(table) => FileValue::Table(self.table(table)?),
                DeValue::Array(items) if items.iter().any(|item| item.get_ref().is_table()) => {
                    let one = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
                        DeValue::Table(table) => Ok(FileEntry {
                            place: self.place(item.span().start),
                            value: FileValue::Table(self.table(table)?),
                        }),
                        _ => Err(wrong(&place)),
                    };
                    FileValue::Tables(items.iter().map(one).collect::<Result<_, _>>()?)
                }
                DeValue::Array(items) => {
                    let items = items.iter().map(|item| plain(item.get_ref()));
                    FileValue::List(items.collect::<Option<_>>().ok_or_else(|| wrong(&place))?)
                }
                one => FileValue::Plain(plain(one).ok_or_else(|| wrong(&place))?),
            };
            read.insert(key.get_ref().to_string(), FileEntry { place, value });
        }
        Ok(read)
    }
}

fn wrong(place: &FilePlace) -> Failure {
    Failure::usage(format!("{place}: a setting must be a text, a whole number, true or false"))
        .hint("write a duration or a size as a text: \"25s\", \"1GiB\"")
}

fn plain(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Boolean(is) => is.to_string(),
        DeValue::Datetime(moment) => moment.to_string(),
        _ => return None,
    })
}

/// Refuses the first key that is not `known`. `of` names the table in the error: "[serve]".
pub fn only_known(table: &FileTable, of: &str, known: &[&str]) -> Result<(), Failure> {
    let unknown = |(key, _): &(&String, &FileEntry)| !known.contains(&key.as_str());
    let Some((key, entry)) = table.iter().filter(unknown).min_by_key(|(_, entry)| entry.place.line)
    else {
        return Ok(());
    };
    let near = nearest(key, known.iter().copied());
    let hint = match near {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("{of} has: {}", known.join(", ")),
    };
    Err(Failure::usage(format!("{}: {of} has no {key:?}", entry.place)).hint(hint))
}

/// A warning about a file with a secret that others may read; `None` if only its owner may.
pub fn readable_by_others(path: &Path, what: &str) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    (mode & OTHERS_READ != 0).then(|| {
        let path = path.display();
        format!("{what} in {path} can be read by other users of this machine; chmod 600 {path}")
    })
}

/// Refuses a command in a file that everybody may write: it runs as the user who reads the file.
pub fn only_own_command(entry: &FileEntry) -> Result<(), Failure> {
    let path = &entry.place.file;
    let mode = fs::metadata(path).map_or(0, |file| file.permissions().mode());
    if mode & OTHERS_WRITE == 0 {
        return Ok(());
    }
    let (place, path) = (&entry.place, path.display());
    Err(Failure::usage(format!(
        "{place}: a command is not run from a file that other users of this machine can write"
    ))
    .hint(format!("check its content, then chmod go-w {path}")))
}

/// A path that stands in a file: below the folder of that file, unless it begins with `/` or `~/`.
pub fn beside(file: &Path, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => file.parent().unwrap_or(Path::new("")).join(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<SettingsFile, Failure> {
        SettingsFile::parse(Path::new("t.toml"), text)
    }

    #[test]
    fn values_are_read_as_the_command_line_takes_them() {
        let read = parsed("a = 'x'\n\n[serve]\nn = 8\non = true\nhosts = ['b', 9]\n").unwrap();
        let plain = |text: &str| FileValue::Plain(text.to_owned());
        assert_eq!(read.table["a"].value, plain("x"));
        let FileValue::Table(serve) = &read.table["serve"].value else { panic!("a table") };
        assert_eq!(serve["n"].value, plain("8"));
        assert_eq!(serve["on"].value, plain("true"));
        assert_eq!(serve["hosts"].value, FileValue::List(vec!["b".to_owned(), "9".to_owned()]));
        assert_eq!(serve["n"].place.to_string(), "t.toml:4");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_without_the_value() {
        for (text, at) in [
            ("a = 1\na = 2\n", "t.toml:2: "),
            ("\n\na = geheim\n", "t.toml:3: "),
            ("a = 1.5\n", "t.toml:1: a setting must be a text"),
            ("a = 0x10\n", "t.toml:1: a setting must be a text"),
            ("b = 1\na = [['geheim']]\n", "t.toml:2: a setting must be a text"),
        ] {
            let said = parsed(text).unwrap_err();
            let sentence = said.sentence.unwrap();
            assert!(sentence.starts_with(at) && !sentence.contains("geheim"), "{sentence}");
        }
    }

    #[test]
    fn a_key_that_is_unknown_is_told_with_the_nearest_one() {
        let table = parsed("listen = 'x'\ndrain_timout = '1s'\n").unwrap().table;
        let no = only_known(&table, "[serve]", &["listen", "drain_timeout"]).unwrap_err();
        assert_eq!(no.sentence.as_deref(), Some("t.toml:2: [serve] has no \"drain_timout\""));
        assert_eq!(no.hint.as_deref(), Some("did you mean \"drain_timeout\"?"));
        let no = only_known(&table, "[serve]", &["drain_timout", "zebra"]).unwrap_err();
        assert_eq!(no.hint.as_deref(), Some("[serve] has: drain_timout, zebra"));
        assert_eq!(only_known(&table, "[serve]", &["listen", "drain_timout"]), Ok(()));
    }

    #[test]
    fn a_path_in_a_file_is_below_the_folder_of_that_file() {
        for (path, is) in [("t", "/etc/tenure/t"), ("/run/t", "/run/t"), ("a/b", "/etc/tenure/a/b")]
        {
            assert_eq!(beside(Path::new("/etc/tenure/tenure.toml"), path), Path::new(is));
        }
        assert_eq!(beside(Path::new("tenure.toml"), "t"), Path::new("t"));
    }
}
