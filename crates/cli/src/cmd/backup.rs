//! `tenure backup`: a backup of the whole store, checked as it arrives; and `tenure backup verify`.
//!
//! The file is written beside its place, synced, and renamed once its end was found: there is never half a backup under
//! its name. This shows neither rows nor secrets.

use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::Serialize;
use tempfile::{Builder, NamedTempFile};
use tenure::remote::{BackupStream, Callee};
use tenure::url::StoreUrl;
use tenure_engine::CopyFolder;
use tenure_engine::backup::{self, BackupError, BackupHead, BackupWriter, CheckedBackup};
use tenure_journal::file::sync_folder;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::args::backup::{BackupAction, BackupArgs};
use crate::cmd::copy;
use crate::exit::{BUG, DISK, Failure, NO};
use crate::output::{Output, printable, size};
use crate::store::{self, not_opened, remote};

/// Chunks that arrived and were not written yet.
const CHUNKS_AHEAD: usize = 4;

/// The answer of this command: a backup that was read to its end.
#[derive(Serialize)]
struct SavedBackup<'a> {
    #[serde(flatten)]
    head: &'a BackupHead,
    file: String,
    bytes: u64,
}

/// Makes a backup, or checks one.
pub async fn run(out: Output, args: BackupArgs, url: &str) -> Result<(), Failure> {
    match (args.action, args.file) {
        (Some(BackupAction::Verify(args)), _) => verify(out, args.file).await,
        (None, Some(file)) if file == Path::new("-") => to_stdout(url).await,
        (None, Some(file)) => to_file(out, file, args.force, url).await,
        (None, None) => Err(Failure::usage("backup needs a file, or - for stdout")),
    }
}

async fn verify(out: Output, file: PathBuf) -> Result<(), Failure> {
    let shown = file.display().to_string();
    let checks = spawn_blocking(move || backup::check_file(&file));
    let checked = checks.await.map_err(|why| Failure::bug(why.to_string()))?;
    let checked = checked.map_err(|why| no_backup(&shown, &why))?;
    told(out, &shown, &checked)
}

fn told(out: Output, file: &str, checked: &CheckedBackup) -> Result<(), Failure> {
    let CheckedBackup { head, bytes } = checked;
    out.answer(&SavedBackup { head, file: file.to_owned(), bytes: *bytes }, in_words)
}

fn in_words(saved: &SavedBackup<'_>) -> String {
    let SavedBackup { head, file, bytes } = saved;
    format!(
        "{} is a whole backup of {} jobs, made at {} by tenure {}: {}\n",
        printable(file),
        head.jobs,
        head.made_at,
        printable(&head.release),
        size(*bytes)
    )
}

/// The failure of a file that is no whole backup.
pub fn no_backup(file: &str, why: &BackupError) -> Failure {
    match why {
        BackupError::Unread(why) => Failure::file(format!("'{file}'"), why),
        BackupError::Foreign
        | BackupError::Newer
        | BackupError::Irregular
        | BackupError::Damaged { .. }
        | BackupError::Cut { .. } => {
            Failure::new(NO, format!("'{file}' is refused: {why}")).hint(why.hint())
        }
    }
}

async fn to_stdout(url: &str) -> Result<(), Failure> {
    let stdout = io::stdout();
    if stdout.is_terminal() {
        return Err(Failure::usage("a backup is not written to a terminal")
            .hint("name a file, or a pipe: tenure backup - | age -r KEY > tenure.backup.age"));
    }
    // A reader that stopped early has no backup, unlike one that reads the first lines of a list.
    let unwritten =
        |why| Failure::new(DISK, format!("the backup was not written to stdout: {why}"));
    save(url, stdout, unwritten).await.map(drop)
}

async fn to_file(out: Output, file: PathBuf, force: bool, url: &str) -> Result<(), Failure> {
    let shown = file.display().to_string();
    if !force && file.exists() {
        return Err(exists(&shown));
    }
    let failed = |why: &io::Error| Failure::file(format!("'{shown}'"), why);
    let name = file.file_name().ok_or_else(|| {
        Failure::usage(format!("'{shown}' is no name of a file")).hint("name a file, or -")
    })?;
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    // Made with the mode 0600, and removed if this command fails.
    let mut beside = Builder::new();
    let prefix = format!(".{}.", name.to_string_lossy());
    let part: NamedTempFile =
        beside.prefix(&prefix).suffix(".part").tempfile_in(&folder).map_err(|why| failed(&why))?;
    let to = part.reopen().map_err(|why| failed(&why))?;
    let checked = save(url, to, |why| failed(&why)).await?;
    let kept = spawn_blocking(move || keep(part, &file, &folder, force));
    kept.await.map_err(|why| Failure::bug(why.to_string()))?.map_err(|why| match why.kind() {
        io::ErrorKind::AlreadyExists => exists(&shown),
        _ => failed(&why),
    })?;
    told(out, &shown, &checked)
}

fn exists(shown: &str) -> Failure {
    Failure::new(NO, format!("'{shown}' exists already"))
        .hint("name another file, or replace this one with --force")
}

/// Syncs the file, gives it its name, and syncs that too.
fn keep(part: NamedTempFile, file: &Path, folder: &Path, force: bool) -> io::Result<()> {
    part.as_file().sync_all()?;
    if force {
        part.persist(file)?;
    } else {
        part.persist_noclobber(file)?;
    }
    sync_folder(folder)
}

/// Writes the backup of this store, and checks it meanwhile.
async fn save(
    url: &str,
    to: impl Write + Send + 'static,
    unwritten: impl FnOnce(io::Error) -> Failure,
) -> Result<CheckedBackup, Failure> {
    let from = BackupFrom::open(url).await?;
    let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
    let checks = spawn_blocking(move || {
        let mut arriving = Arriving { chunks, chunk: Bytes::new(), to, failed: None };
        let checked = backup::check(&mut arriving);
        (checked, arriving.failed)
    });
    let sent = from.send(sender).await;
    let (checked, failed) = checks.await.map_err(|why| Failure::bug(why.to_string()))?;
    if let Some(why) = failed {
        return Err(unwritten(why));
    }
    // Why the bytes ended, before what they lack.
    sent?;
    checked.map_err(|why| refused_arriving(&why))
}

/// The failure of a transfer whose bytes are no valid backup.
fn refused_arriving(why: &BackupError) -> Failure {
    let said = format!("the backup that arrived is refused: {why}");
    match why {
        // Another release, or another program, has sent it.
        BackupError::Newer => Failure::new(NO, said).hint(why.hint()),
        BackupError::Foreign => {
            Failure::new(NO, said).hint("see that --url names a server of Tenure")
        }
        BackupError::Irregular
        | BackupError::Damaged { .. }
        | BackupError::Cut { .. }
        | BackupError::Unread(_) => Failure::new(BUG, said),
    }
}

/// Where a backup comes from.
enum BackupFrom {
    Server(BackupStream),
    Folder(Box<BackupWriter>),
}

impl BackupFrom {
    async fn open(url: &str) -> Result<BackupFrom, Failure> {
        let url = store::address(url)?;
        match url {
            StoreUrl::Memory => Err(Failure::usage("a store in memory ends with this command")
                .hint("name a server with --url, or file:PATH")),
            StoreUrl::File(path) => {
                let opened = spawn_blocking(move || {
                    let folder = CopyFolder::source(&path).map_err(|why| not_opened(&why))?;
                    folder.backup().map_err(copy::failure)
                });
                let writer = opened.await.map_err(|why| Failure::bug(why.to_string()))??;
                Ok(BackupFrom::Folder(Box::new(writer)))
            }
            StoreUrl::Server(_) | StoreUrl::Servers(_) | StoreUrl::Redis(_) => {
                let callee = Callee::of(&url).ok_or_else(|| Failure::bug("no server is called"))?;
                Ok(BackupFrom::Server(remote(callee)?.backup().await?))
            }
        }
    }

    /// Sends all chunks, unless their receiver has ended.
    async fn send(self, to: mpsc::Sender<Bytes>) -> Result<(), Failure> {
        match self {
            BackupFrom::Server(mut stream) => {
                let broke_off = |why| {
                    Failure::from(why).hint("the log of the server says why; repeat the command")
                };
                while let Some(chunk) = stream.next().await.map_err(broke_off)? {
                    if to.send(chunk).await.is_err() {
                        break;
                    }
                }
                Ok(())
            }
            BackupFrom::Folder(writer) => {
                let sends = spawn_blocking(move || {
                    for chunk in *writer {
                        let chunk = chunk.map_err(|why| Failure::new(DISK, why.to_string()))?;
                        if to.blocking_send(chunk.into()).is_err() {
                            break;
                        }
                    }
                    Ok(())
                });
                sends.await.map_err(|why| Failure::bug(why.to_string()))?
            }
        }
    }
}

/// Chunks that arrive. A read of them also writes them.
struct Arriving<W> {
    chunks: mpsc::Receiver<Bytes>,
    /// The rest of the last chunk, written already.
    chunk: Bytes,
    to: W,
    /// Why they cannot be written; `None` while they can.
    failed: Option<io::Error>,
}

impl<W: Write> Read for Arriving<W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            let Some(chunk) = self.chunks.blocking_recv() else {
                return self.to.flush().map(|()| 0).map_err(|why| self.fail(why));
            };
            if let Err(why) = self.to.write_all(&chunk) {
                return Err(self.fail(why));
            }
            self.chunk = chunk;
        }
        let taken = buffer.len().min(self.chunk.len());
        buffer[..taken].copy_from_slice(&self.chunk.split_to(taken));
        Ok(taken)
    }
}

impl<W> Arriving<W> {
    fn fail(&mut self, why: io::Error) -> io::Error {
        let kind = why.kind();
        self.failed = Some(why);
        kind.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_of_another_release_that_arrives_is_no_bug() {
        for (sent, code) in
            [(&b"tenure backup 2\n"[..], NO), (b"<html>", NO), (b"tenure backup 1\n", BUG)]
        {
            let failure = refused_arriving(&backup::check(sent).unwrap_err());
            assert_eq!(failure.code, code, "{failure:?}");
            assert_eq!(failure.hint.is_some(), code == NO, "{failure:?}");
        }
    }
}
