//! Runs CMD in a process group of its own, and stops that whole group.
//!
//! What ends the group is its caller's to decide; here is only how.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tenure_core::bounds::ERROR_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::child::environment::Environment;
use crate::child::outcome::How;
use crate::exit::{Failure, NOT_FOUND, NOT_RUNNABLE, NOT_STARTED};

/// Between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(5);
/// A process that CMD left behind may hold stderr open; its end is waited for no longer than this.
const STDERR_GRACE: Duration = Duration::from_millis(250);
/// How often a group that should end is looked at. Its members are not our children, so that no
/// event says that the last one went.
const LOOK: Duration = Duration::from_millis(20);

/// What CMD gets as its standard streams; stdout is always ours.
pub enum Streams {
    /// All of ours.
    Ours,
    /// Its stdin from this file; the end of its stderr is kept while all of it is passed through.
    Job(std::fs::File),
}

/// CMD, running.
pub struct Running {
    child: Child,
    group: Pid,
    stderr: Option<(JoinHandle<()>, Tail)>,
}

/// Starts CMD.
///
/// # Errors
/// With the exit code that says which: 127 not found, 126 not runnable, 125 anything else.
pub fn start(
    command: &[OsString],
    environment: &Environment,
    streams: Streams,
) -> Result<Running, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::usage("there is no command to run"));
    };
    let mut call = Command::new(program);
    call.args(arguments).process_group(0);
    for name in environment.remove() {
        call.env_remove(name);
    }
    call.envs(environment.set());
    if let Streams::Job(stdin) = streams {
        call.stdin(Stdio::from(stdin)).stderr(Stdio::piped());
    }
    let mut child = call.spawn().map_err(|error| not_started(program, &error))?;
    // A child that was just started has an id, since nobody has waited for it.
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let group = Pid::from_raw(id.ok_or_else(|| Failure::bug("a process has no id"))?);
    let stderr = child.stderr.take().map(|pipe| {
        let tail = Tail::default();
        (tokio::spawn(pass_through(pipe, tail.clone())), tail)
    });
    Ok(Running { child, group, stderr })
}

fn not_started(program: &OsStr, error: &io::Error) -> Failure {
    let name = program.to_string_lossy();
    let path = Path::new(program);
    let is_path = program.as_encoded_bytes().contains(&b'/');
    match error.kind() {
        // A script whose interpreter is missing is "not found" too, though it is there.
        io::ErrorKind::NotFound if is_path && path.exists() => Failure::new(
            NOT_RUNNABLE,
            format!("'{name}' cannot be run: its interpreter is missing"),
        )
        .hint("look at the first line of the script, and at the working folder"),
        io::ErrorKind::NotFound => Failure::new(NOT_FOUND, format!("'{name}' was not found"))
            .hint("check the name, or give its whole path"),
        io::ErrorKind::PermissionDenied => {
            let hint = match path.metadata() {
                Ok(meta) if meta.is_dir() => "it is a folder".to_owned(),
                Ok(meta) if meta.permissions().mode() & 0o111 == 0 => {
                    format!("make it executable: chmod +x '{name}'")
                }
                _ => "check who may execute it".to_owned(),
            };
            Failure::new(NOT_RUNNABLE, format!("'{name}' cannot be run: permission denied"))
                .hint(hint)
        }
        _ if error.raw_os_error() == Some(Errno::ENOEXEC as i32) => {
            Failure::new(NOT_RUNNABLE, format!("'{name}' cannot be run: it is no program"))
                .hint("a script needs a first line such as #!/bin/sh")
        }
        _ => Failure::new(NOT_STARTED, format!("'{name}' could not be started: {error}")),
    }
}

impl Running {
    /// Its process group; CMD is its leader.
    pub fn group(&self) -> Pid {
        self.group
    }

    /// Sends a signal to the whole group. That it is gone already is fine.
    pub fn signal(&self, signal: Signal) {
        let _ = killpg(self.group, signal);
    }

    /// Waits for CMD's end, not for that of processes it left behind. May be dropped and called
    /// again.
    pub async fn ended(&mut self) -> Result<How, Failure> {
        let status: io::Result<ExitStatus> = self.child.wait().await;
        status.map(How::of).map_err(Failure::bug)
    }

    /// Stops the whole group: SIGTERM, and SIGKILL when `grace` is over or `limit` comes, whichever
    /// is first. Returns when none of it is left, or it was killed. `limit` is asked anew when it
    /// comes: it moves while the lease is still extended. May be dropped and called again.
    pub async fn stop(
        &mut self,
        grace: Duration,
        limit: impl Fn() -> Option<Instant>,
    ) -> Result<How, Failure> {
        let end = Instant::now() + grace;
        self.signal(Signal::SIGTERM);
        // One that is suspended cannot end.
        self.signal(Signal::SIGCONT);
        loop {
            let until = limit().map_or(end, |limit| limit.min(end));
            if until <= Instant::now() {
                break;
            }
            if let Ok(how) = tokio::time::timeout_at(until.into(), self.gone()).await {
                return how;
            }
        }
        self.signal(Signal::SIGKILL);
        self.ended().await
    }

    /// Waits until CMD has ended and nothing of its group is left.
    async fn gone(&mut self) -> Result<How, Failure> {
        let how = self.ended().await?;
        while killpg(self.group, None) != Err(Errno::ESRCH) {
            tokio::time::sleep(LOOK).await;
        }
        Ok(how)
    }

    /// The end of its stderr, at most so much as an error may have. After its end.
    pub async fn stderr(&mut self) -> Vec<u8> {
        let Some((mut passing, tail)) = self.stderr.take() else { return Vec::new() };
        let _ = tokio::time::timeout(STDERR_GRACE, &mut passing).await;
        tail.bytes()
    }
}

/// The last bytes of a stream.
#[derive(Clone, Default)]
struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A little more than is kept in the end, for the line ends that are cut off.
        const MOST: usize = ERROR_BYTES_MAX + 64;
        kept.extend(&bytes[bytes.len().saturating_sub(MOST)..]);
        let more = kept.len().saturating_sub(MOST);
        kept.drain(..more);
    }
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

async fn pass_through(mut pipe: impl AsyncRead + Unpin, tail: Tail) {
    let mut chunk = vec![0; 8 * 1024];
    loop {
        match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(read) => {
                tail.add(&chunk[..read]);
                // That nobody reads our stderr must not stop CMD.
                let _ = io::stderr().write_all(&chunk[..read]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    fn sh(script: &str) -> Running {
        let lease = fake::job_lease("L1", "{\"n\":1}");
        let environment = Environment::of(&lease, false).unwrap();
        let command: Vec<OsString> = ["sh", "-c", script].map(OsString::from).to_vec();
        let payload = &environment.files.as_ref().unwrap().payload;
        let stdin = std::fs::File::open(payload).unwrap();
        start(&command, &environment, Streams::Job(stdin)).unwrap()
    }

    #[tokio::test]
    async fn cmd_gets_the_payload_and_its_end_is_told() {
        let mut running = sh("cat >&2; exit 3");
        assert_eq!(running.ended().await.unwrap(), How::Code(3));
        assert_eq!(running.stderr().await, b"{\"n\":1}");
        let mut running = sh("kill -9 $$");
        assert_eq!(running.ended().await.unwrap(), How::Signal(9));
        assert!(running.stderr().await.is_empty());
    }

    #[tokio::test]
    async fn a_process_left_behind_with_stderr_open_is_not_waited_for() {
        let mut running = sh("echo why >&2; sleep 60 & exit 1");
        assert_eq!(running.ended().await.unwrap(), How::Code(1));
        assert_eq!(running.stderr().await, b"why\n");
        running.signal(Signal::SIGKILL);
    }

    #[tokio::test]
    async fn the_whole_group_is_stopped_and_killed_if_it_does_not_listen() {
        let begun = Instant::now();
        let mut running = sh("sleep 60 & wait");
        assert_eq!(running.stop(GRACE, || None).await.unwrap(), How::Signal(15));
        assert!(begun.elapsed() < GRACE);
        let mut deaf = sh("trap '' TERM; echo up >&2; sleep 60 & wait; sleep 60");
        while deaf.stderr.as_ref().unwrap().1.bytes().is_empty() {
            tokio::time::sleep(LOOK).await;
        }
        let limit = Instant::now() + Duration::from_millis(100);
        assert_eq!(deaf.stop(GRACE, || Some(limit)).await.unwrap(), How::Signal(9));
    }

    #[tokio::test]
    async fn what_cannot_be_started_says_why() {
        let environment = Environment::of(&fake::needs_lease("L1"), false).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str, mode: u32| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path.into_os_string()
        };
        for (program, code) in [
            (OsString::from("no-such-program-at-all"), 127),
            (OsString::from("/no/such/program"), 127),
            (folder.path().as_os_str().to_owned(), 126),
            (file("plain", "#!/bin/sh\n", 0o600), 126),
            (file("script", "#!/no/such/interpreter\n", 0o700), 126),
        ] {
            let started = start(std::slice::from_ref(&program), &environment, Streams::Ours);
            assert_eq!(started.err().unwrap().code, code, "{program:?}");
        }
    }

    #[test]
    fn only_the_end_of_a_stream_is_kept() {
        let tail = Tail::default();
        tail.add(&vec![b'a'; 100_000]);
        tail.add(b"end");
        assert!(tail.bytes().len() <= ERROR_BYTES_MAX + 64);
        assert!(tail.bytes().ends_with(b"aend"));
    }
}
