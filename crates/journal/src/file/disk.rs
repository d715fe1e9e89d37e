//! The file operations that a journal in files uses: a trait, and its implementation on the real file system.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::frame::JournalKey;

/// A folder with segments, each known by its number. A call of `create`, `rename` or `remove` is durable when it returns; a write
/// to a segment is durable after a sync of that segment.
pub(super) trait Disk: Send + Sync + 'static {
    type File: SegmentFile;

    /// The segments that are there, in the order of their numbers.
    fn list(&self) -> io::Result<Vec<u64>>;
    /// All bytes of a segment.
    fn read(&self, number: u64) -> io::Result<Vec<u8>>;
    /// Makes a segment of zeros, in place of one with that number that a crash left half made.
    fn create(&self, number: u64, bytes: u64) -> io::Result<Self::File>;
    /// Opens a segment under another number.
    fn rename(&self, from: u64, to: u64) -> io::Result<Self::File>;
    fn remove(&self, number: u64) -> io::Result<()>;
}

/// A segment that is open for writing.
pub(super) trait SegmentFile: Send + Sync + 'static {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
}

/// Segments in a folder of the file system.
#[derive(Debug)]
pub(super) struct SegmentFolder {
    path: PathBuf,
}

/// The file with the key, and its name while it is made.
const KEY: &str = "key";
const NEW_KEY: &str = "key.new";

/// Zeros are written this many at a time.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

impl SegmentFolder {
    /// Opens the folder, and makes it if it is not there.
    pub(super) fn open(path: &Path) -> io::Result<SegmentFolder> {
        if !path.is_dir() {
            private_folder(path)?;
        }
        // An earlier process may have been killed between the two.
        if let Some(parent) = path.parent() {
            sync_folder(parent)?;
        }
        Ok(SegmentFolder { path: path.to_owned() })
    }

    /// The number with which the checksums of its segments begin. A folder without one has no entries that can be read.
    pub(super) fn key(&self) -> io::Result<Option<JournalKey>> {
        let text = match fs::read_to_string(self.path.join(KEY)) {
            Err(why) if why.kind() != io::ErrorKind::InvalidData => {
                return if why.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(why) };
            }
            text => text.unwrap_or_default(),
        };
        Ok(u64::from_str_radix(text.trim_end(), 16).ok().map(JournalKey))
    }

    /// Makes a new key, which is durable when this returns.
    pub(super) fn make_key(&self) -> io::Result<JournalKey> {
        // The standard library seeds its hashes from the system's random numbers.
        let number = RandomState::new().build_hasher().finish();
        let new = self.path.join(NEW_KEY);
        let mut file = private_file(&new)?;
        writeln!(file, "{number:016x}")?;
        file.sync_all()?;
        fs::rename(&new, self.path.join(KEY))?;
        self.changed()?;
        Ok(JournalKey(number))
    }

    /// Removes the key; no segment is left that needs it.
    pub(super) fn drop_key(&self) -> io::Result<()> {
        fs::remove_file(self.path.join(KEY))?;
        self.changed()
    }

    fn segment(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:010}"))
    }

    fn changed(&self) -> io::Result<()> {
        sync_folder(&self.path)
    }
}

impl Disk for SegmentFolder {
    type File = File;

    fn list(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for there in fs::read_dir(&self.path)? {
            let name = there?.file_name();
            // A file whose name is no number is no segment.
            numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        fs::read(self.segment(number))
    }

    fn create(&self, number: u64, bytes: u64) -> io::Result<File> {
        let path = self.segment(number);
        let file = private_file(&path)?;
        let mut left = bytes as usize;
        // Space that was only reserved would make the first sync write twice: the bytes, and the fact that they exist.
        while left > 0 {
            let zeros = &ZEROS[..left.min(ZEROS.len())];
            if let Err(why) = (&file).write_all(zeros) {
                let _ = fs::remove_file(&path);
                return Err(why);
            }
            left -= zeros.len();
        }
        file.sync_all()?;
        self.changed()?;
        Ok(file)
    }

    fn rename(&self, from: u64, to: u64) -> io::Result<File> {
        let to = self.segment(to);
        fs::rename(self.segment(from), &to)?;
        self.changed()?;
        OpenOptions::new().read(true).write(true).open(to)
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        fs::remove_file(self.segment(number))?;
        self.changed()
    }
}

impl SegmentFile for File {
    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }

    #[cfg(not(unix))]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        use std::io::{Seek, SeekFrom};
        // One thread writes to a segment at a time.
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()?;
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::nlink(&self.metadata()?) == 0 {
            let why = "a segment of the journal was removed while this process had it open";
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        Ok(())
    }
}

#[cfg(unix)]
fn private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes the names of the files in a folder durable.
///
/// # Errors
/// Those of the system, as when it cannot open the folder.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    // Other systems cannot open a folder; their file systems make it durable by themselves.
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}
