//! Reads files again while a server serves: its certificate and key, and its tokens. SIGHUP makes it read them at once;
//! otherwise it reads them when they have changed.
//!
//! A change is seen in the metadata of a file, through links: certbot and Kubernetes put another link in place of the
//! one before. A change counts once it has stayed for a look, since two files are not replaced in one step. A file that
//! cannot be used changes nothing, and the log says so.

use std::convert::Infallible;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use tenure_tls::ServerTls;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::service_manager::ServiceManager;
use crate::child::signals::is_ignored;

/// Time between two looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A thing that is made from files, and can be made from them again.
pub trait Renewed: Send + 'static {
    /// Reads the files, uses their content, and logs that.
    fn renew(&mut self) -> Reread;
}

/// Files that were read again, for the trail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reread {
    /// What was read, as the trail calls it.
    pub op: &'static str,
    pub file: String,
    /// False: it has a fault, and what was read before stays.
    pub is_used: bool,
}

/// Identity, time and size of a file; `None` if it does not exist.
type Stamp = Option<(u64, u64, i64, i64, u64)>;

fn stamp(file: &PathBuf) -> Stamp {
    let found = fs::metadata(file).ok()?;
    Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    files.iter().map(stamp).collect()
}

/// A part with its files, and their stamps when they were read last.
struct WatchedPart {
    part: Box<dyn Renewed>,
    files: Vec<PathBuf>,
    taken: Vec<Stamp>,
    /// The stamps of the last look.
    seen: Vec<Stamp>,
}

impl WatchedPart {
    /// Reads the files if they have changed, and have then stayed for a look; `now`: in any case.
    fn look(&mut self, now: bool) -> Option<Reread> {
        let found = stamps(&self.files);
        let stayed = std::mem::replace(&mut self.seen, found.clone()) == found;
        if now || (stayed && found != self.taken) {
            self.taken = found;
            return Some(self.part.renew());
        }
        None
    }
}

/// All parts that are renewed.
#[derive(Default)]
pub struct Renewal(Vec<WatchedPart>);

impl Renewal {
    /// Reads a part for the first time, and watches its files from before that on: no change is missed.
    pub fn first<P: Renewed + Clone, E>(
        &mut self,
        files: Vec<PathBuf>,
        read: impl FnOnce() -> Result<P, E>,
    ) -> Result<P, E> {
        let taken = stamps(&files);
        let part = read()?;
        let seen = taken.clone();
        self.0.push(WatchedPart { part: Box::new(part.clone()), files, taken, seen });
        Ok(part)
    }

    /// Looks for as long as it is polled; at once when `at_once` is notified. `tell` hears of each file that was read.
    pub async fn run(
        mut self,
        at_once: &Notify,
        manager: &ServiceManager,
        tell: impl Fn(Reread),
    ) -> Infallible {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let now = tokio::select! {
                () = at_once.notified() => true,
                _ = looks.tick(), if !self.0.is_empty() => false,
            };
            if now {
                manager.reloading();
                if self.0.is_empty() {
                    tracing::info!(
                        "a reload changes nothing: there is no certificate and no token file to read"
                    );
                }
            }
            // A disk may be slow, and a file may lie on another machine.
            let looked = spawn_blocking(move || {
                let reread: Vec<Reread> =
                    self.0.iter_mut().filter_map(|part| part.look(now)).collect();
                (self, reread)
            });
            self = match looked.await {
                Ok((looked, reread)) => {
                    reread.into_iter().for_each(&tell);
                    looked
                }
                Err(why) => {
                    tracing::error!(%why, "files are no longer read again; this is a bug");
                    std::future::pending().await
                }
            };
            if now {
                manager.reloaded();
            }
        }
    }
}

impl Renewed for ServerTls {
    fn renew(&mut self) -> Reread {
        let certificate = self.files().certificate.display().to_string();
        let reloaded = self.reload();
        match &reloaded {
            Ok(()) => {
                tracing::info!(certificate, "new connections use the new certificate")
            }
            Err(why) => tracing::warn!(
                certificate,
                "cannot use the new certificate and key, the previous ones stay: {why}"
            ),
        }
        Reread { op: "certificate_reread", file: certificate, is_used: reloaded.is_ok() }
    }
}

/// Tells a SIGHUP of a closed terminal from one that asks to read the files again.
pub struct StartTerminal {
    /// The process was started on a terminal, and not to outlive it.
    was_there: bool,
}

impl StartTerminal {
    /// The state now. A process that ignores SIGHUP, as under `nohup`, outlives its terminal.
    pub fn of_this_process() -> Self {
        StartTerminal { was_there: !is_ignored(Signal::SIGHUP) && is_there() }
    }

    /// Waits a moment: the system tells of the end before all of it has come.
    pub async fn is_gone(&self) -> bool {
        if !self.was_there {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        !is_there()
    }
}

fn is_there() -> bool {
    File::open("/dev/tty").is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Clone)]
    struct Counted(Arc<AtomicUsize>);

    impl Renewed for Counted {
        fn renew(&mut self) -> Reread {
            self.0.fetch_add(1, Ordering::Relaxed);
            Reread { op: "counted", file: String::new(), is_used: true }
        }
    }

    #[test]
    fn a_file_is_taken_once_it_has_stayed_or_at_once_when_told() {
        let folder = tempfile::tempdir().unwrap();
        let [link, new_link] = ["link", "new"].map(|name| folder.path().join(name));
        fs::write(folder.path().join("one"), "1").unwrap();
        fs::write(folder.path().join("two"), "2").unwrap();
        std::os::unix::fs::symlink("one", &link).unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let mut renewal = Renewal::default();
        let read = || Ok::<_, Infallible>(Counted(count.clone()));
        let _ = renewal.first(vec![link.clone()], read);
        let mut looked = |now| {
            renewal.0[0].look(now);
            count.load(Ordering::Relaxed)
        };
        assert_eq!((looked(false), looked(false)), (0, 0), "nothing changed");
        std::os::unix::fs::symlink("two", &new_link).unwrap();
        fs::rename(&new_link, &link).unwrap();
        assert_eq!((looked(false), looked(false), looked(false)), (0, 1, 1));
        fs::remove_file(&link).unwrap();
        assert_eq!(
            (looked(false), looked(false), looked(false)),
            (1, 2, 2),
            "gone is a change too"
        );
        assert_eq!((looked(true), looked(true)), (3, 4));
    }
}
