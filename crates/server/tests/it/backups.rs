//! `GET /v1/backup`: whole or broken, one at a time, and only for callers with a token.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure::remote::{BackupStream, Remote};
use tenure::{Secret, StoreUrl};
use tenure_core::refusal::Code;
use tenure_engine::backup::check;
use tenure_engine::{Embedded, Location, Options};
use tenure_engine_api::{CallError, Fault};
use tenure_server::{BackupChunks, Config, Leadership, MakesBackups, Server};
use tenure_testkit::Dice;
use tokio::time::sleep;

use crate::wire::Server as Wire;

const PATIENCE: Duration = Duration::from_secs(60);

fn remote(url: &str, token: Option<&Secret>) -> Remote {
    let Ok(StoreUrl::Server(url)) = url.parse() else { panic!("{url} is a server") };
    Remote::open(&url, token).unwrap()
}

/// 200 KiB that cannot be packed much.
fn noise(seed: u64) -> String {
    let mut dice = Dice::mixed(seed);
    (0..200 << 10).map(|_| char::from(b' ' + dice.below(94) as u8)).collect()
}

async fn read(mut stream: BackupStream) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.next().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_whole_and_needs_the_token() {
    let token = Secret::new("s3cret-s3cret-s3cret-s3cret-s3cret");
    let server = Server::open("memory:").listen("127.0.0.1:0").token(token.clone());
    let server = server.start().await.unwrap();
    // More bytes than may be on their way, so that a reader is waited for.
    for seed in 0..100 {
        server.client().push("q").payload(&noise(seed)).unwrap().await.unwrap();
    }
    let denied = remote(&server.url(), None).backup().await;
    assert!(matches!(denied, Err(CallError::Fault(Fault::Denied(_)))), "{denied:?}");
    let remote = remote(&server.url(), Some(&token));
    let slow = remote.backup().await.unwrap();
    let second = remote.backup().await.unwrap_err();
    assert_eq!(second.code(), Some(Code::LineFull), "{second}");
    // A push meanwhile is not in it, and is not held up by it.
    server.client().push("q").id("meanwhile").await.unwrap();
    let bytes = read(slow).await.unwrap();
    assert_eq!(check(&*bytes).unwrap().head.jobs, 100);
    // A reader that leaves makes room for the next one.
    drop(next(&remote).await);
    let bytes = read(next(&remote).await).await.unwrap();
    assert_eq!(check(&*bytes).unwrap().head.jobs, 101);
    server.close().await;
}

/// The next backup, once the server knows that the last one is over.
async fn next(remote: &Remote) -> BackupStream {
    let begun = Instant::now();
    loop {
        match remote.backup().await {
            Ok(stream) => return stream,
            Err(why) => {
                assert!(why.code() == Some(Code::LineFull) && begun.elapsed() < PATIENCE, "{why}");
            }
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Breaks off behind its first chunk, or does not begin.
struct Breaks {
    begins: bool,
}

impl MakesBackups for Breaks {
    fn begin(&self) -> Result<BackupChunks, Fault> {
        if self.begins {
            let chunks = [Ok(b"tenure backup 1\n".to_vec()), Err("the disk is gone".to_owned())];
            Ok(Box::new(chunks.into_iter()))
        } else {
            Err(Fault::Unavailable("the rows are not there yet".to_owned()))
        }
    }
}

fn breaking(begins: bool) -> Wire {
    let engine = Arc::new(Embedded::open(Options::new(Location::Memory)).unwrap());
    let leadership = Leadership::always(engine.clone()).backed_up_by(Arc::new(Breaks { begins }));
    Wire::of_several(leadership, engine, None, Config::default(), None)
}

#[test]
fn a_backup_that_breaks_off_is_no_whole_answer() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (breaks, away, none) = (breaking(true), breaking(false), Wire::start());
    runtime.block_on(async {
        let at = |server: &Wire| remote(&format!("http://{}", server.at), None);
        let broken = read(at(&breaks).backup().await.unwrap()).await;
        assert!(matches!(broken, Err(Fault::Unavailable(_))), "{broken:?}");
        let away = at(&away).backup().await.unwrap_err().to_string();
        assert!(away.contains("the rows are not there yet"), "{away}");
        let none = at(&none).backup().await.unwrap_err();
        assert_eq!(none.code(), Some(Code::RouteNotFound), "{none}");
    });
}

/// Never ends.
struct Endless;

impl MakesBackups for Endless {
    fn begin(&self) -> Result<BackupChunks, Fault> {
        Ok(Box::new(std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(5));
            Ok(b"a chunk".to_vec())
        })))
    }
}

#[test]
fn a_backup_ends_when_the_server_drains() {
    let engine = Arc::new(Embedded::open(Options::new(Location::Memory)).unwrap());
    let leadership = Leadership::always(engine.clone()).backed_up_by(Arc::new(Endless));
    let mut server = Wire::of_several(leadership, engine, None, Config::default(), None);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let at = format!("http://{}", server.at);
    let mut stream = runtime.block_on(remote(&at, None).backup()).unwrap();
    assert!(runtime.block_on(stream.next()).unwrap().is_some());
    server.drain();
    let begun = Instant::now();
    let broken = runtime.block_on(read(stream));
    assert!(matches!(broken, Err(Fault::Unavailable(_))), "{broken:?}");
    let taken = begun.elapsed();
    assert!(taken < Config::default().drain_max / 2, "the drain waited for it: {taken:?}");
}
