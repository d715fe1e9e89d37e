//! `GET /v1/backup`: the whole store as one file, in chunks, while calls go on.
//!
//! A thread reads the rows, a task sends them, and few chunks wait between: a slow reader slows the thread down. The log
//! of the store grows for as long as the rows are read, so a reader that takes nothing, or takes too long, is given up.
//! This knows nothing of the file: the opener of the store makes its bytes ([`MakesBackups`]).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::body::{Body, Frame};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use tenure_core::bounds::{BACKUP_STALLS_US_MAX, BACKUP_TAKES_US_MAX};
use tenure_core::refusal::Refusal;
use tenure_core::sentences::ServerRefusal;
use tenure_engine_api::Fault;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::out::{Out, Tied};
use crate::problem;

const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// No cache may keep a backup: it has secrets.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// Chunks that were read and not sent yet. One has some 100 KiB.
const CHUNKS_AHEAD: usize = 4;

/// The bytes of a backup, in order. They are whole if no chunk is an error.
pub type BackupChunks = Box<dyn Iterator<Item = Result<Vec<u8>, String>> + Send>;

/// Makes backups of the store of this server.
pub trait MakesBackups: Send + Sync + 'static {
    /// Begins a backup of all that was answered before the call. Blocks, and is called in a thread of its own, whose
    /// priority it may lower.
    ///
    /// # Errors
    /// The rows of the store cannot be read.
    fn begin(&self) -> Result<BackupChunks, Fault>;
}

/// The backups of a server: one at a time, since each keeps the log of the store from being reused.
#[derive(Clone, Debug)]
pub(crate) struct OneBackup(Arc<Semaphore>);

impl Default for OneBackup {
    fn default() -> Self {
        OneBackup(Arc::new(Semaphore::new(1)))
    }
}

/// A chunk, or the end of a whole backup.
type SentChunk = Option<Bytes>;

/// The head of an answer, for a HEAD request: no backup begins.
pub(crate) fn head() -> Response<Out> {
    with_head(Out::whole(Vec::new()))
}

/// Answers with a backup. It begins before the answer does, so that a refusal has a status. `ends`: the token that began
/// it was removed, or the server drains.
pub(crate) async fn answer(
    makes: Arc<dyn MakesBackups>,
    one: &OneBackup,
    ends: impl Future<Output = ()> + Send + 'static,
) -> Result<Response<Out>, Refusal> {
    let alone = one.0.clone().try_acquire_owned();
    let alone = alone.map_err(|_| Refusal::from(ServerRefusal::BackupRuns))?;
    let (begun, begins) = oneshot::channel();
    let (read, parts) = mpsc::channel::<SentChunk>(CHUNKS_AHEAD);
    let reads = std::thread::Builder::new().name("tenure-backup".to_owned());
    let started = reads.spawn(move || {
        let _alone = alone;
        let chunks = match makes.begin() {
            Ok(chunks) => chunks,
            Err(why) => return drop(begun.send(Err(why))),
        };
        if begun.send(Ok(())).is_ok() {
            read_all(chunks, &read);
        }
    });
    let why = match started {
        Err(why) => Some(Fault::Unavailable(format!("no thread could be started: {why}"))),
        Ok(_) => begins.await.unwrap_or_else(|_| Err(broke_off())).err(),
    };
    if let Some(why) = why {
        return Err(problem::of_error(why.into()));
    }
    let (sender, receiver) = mpsc::channel(1);
    let task = tokio::spawn(async move {
        let long = Duration::from_micros(BACKUP_TAKES_US_MAX);
        tokio::select! {
            sent = timeout(long, send_all(parts, &sender)) => {
                if sent.is_err() {
                    tracing::warn!("a backup was given up: its reader took more than {long:?}");
                }
            }
            () = ends => {}
        }
    });
    let body = BackupBody { parts: receiver, is_over: false, _task: Tied(task.abort_handle()) };
    Ok(with_head(Out::passed(body)))
}

fn broke_off() -> Fault {
    Fault::Broken("the thread of a backup ended early".to_owned())
}

fn with_head(out: Out) -> Response<Out> {
    let mut response = Response::new(out);
    response.headers_mut().insert(CONTENT_TYPE, OCTETS);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// Reads until the end, or until nobody takes the chunks any more.
fn read_all(chunks: BackupChunks, read: &mpsc::Sender<SentChunk>) {
    for chunk in chunks {
        match chunk {
            Ok(chunk) => {
                if read.blocking_send(Some(chunk.into())).is_err() {
                    return;
                }
            }
            Err(why) => return tracing::error!("a backup broke off: {why}"),
        }
    }
    // A reader that left meanwhile has all chunks, or knows that it has not.
    let _ = read.blocking_send(None);
}

async fn send_all(mut parts: mpsc::Receiver<SentChunk>, sender: &mpsc::Sender<SentChunk>) {
    let stalls = Duration::from_micros(BACKUP_STALLS_US_MAX);
    while let Some(part) = parts.recv().await {
        match timeout(stalls, sender.send(part)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => {
                return tracing::warn!(
                    "a backup was given up: its reader took nothing for {stalls:?}"
                );
            }
        }
    }
}

/// A body that ends well only behind the end of a whole backup: otherwise the connection breaks, and no client takes the
/// part for all.
#[derive(Debug)]
struct BackupBody {
    parts: mpsc::Receiver<SentChunk>,
    is_over: bool,
    _task: Tied,
}

impl Body for BackupBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let part = ready!(self.parts.poll_recv(cx));
        self.is_over = !matches!(part, Some(Some(_)));
        Poll::Ready(match part {
            Some(Some(chunk)) => Some(Ok(Frame::data(chunk))),
            Some(None) => None,
            None => Some(Err(io::Error::other("the backup broke off"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const CHUNK: SentChunk = Some(Bytes::from_static(b"chunk"));

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_given_up() {
        let (read, chunks) = mpsc::channel(CHUNKS_AHEAD);
        let (sender, mut receiver) = mpsc::channel(1);
        for _ in 0..3 {
            read.send(CHUNK).await.expect("there is room");
        }
        let begun = Instant::now();
        let slow = async {
            // Slower than fast, but not too slow.
            tokio::time::sleep(Duration::from_secs(20)).await;
            assert_eq!(receiver.recv().await, Some(CHUNK));
        };
        tokio::join!(send_all(chunks, &sender), slow);
        let taken = begun.elapsed();
        assert!((50..51).contains(&taken.as_secs()), "given up after {taken:?}");
        assert!(read.send(CHUNK).await.is_err(), "the thread that reads ends");
    }

    #[tokio::test]
    async fn a_body_ends_well_only_behind_the_end() {
        for (sent, is_whole) in [(vec![CHUNK, None], true), (vec![CHUNK], false), (vec![], false)] {
            let (sender, parts) = mpsc::channel(CHUNKS_AHEAD);
            for chunk in sent {
                sender.send(chunk).await.expect("there is room");
            }
            drop(sender);
            let task = tokio::spawn(async {});
            let _task = Tied(task.abort_handle());
            let body = BackupBody { parts, is_over: false, _task };
            let read = http_body_util::BodyExt::collect(body).await;
            assert_eq!(read.is_ok(), is_whole);
        }
    }
}
