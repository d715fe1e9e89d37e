//! Runs CMD in a process group of its own, below a guard (see `guard`), and stops all that it started.
//!
//! The caller decides what ends CMD; this module only knows how. A [`Running`] that is dropped without
//! [`Running::let_go`] ends all of it, just as the death of this process does.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tenure::keeper::LeaseWatch;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use crate::child::environment::Environment;
use crate::child::grace::KILLED_MAX;
use crate::child::guard;
use crate::child::guard::feed::{Feed, GuardVoice};
use crate::child::guard::listen::{Listener, end_deaf, end_unguarded, listen_to, next_said};
use crate::child::guard::process::{self, GuardProcess};
use crate::child::guard::wire::{self, Order, Said};
use crate::child::outcome::How;
use crate::child::stderr::{Tail, pass_through};
use crate::exit::{Failure, NOT_FOUND, NOT_RUNNABLE, NOT_STARTED};

/// Between SIGTERM and SIGKILL of processes that CMD left behind when it ended: its own work is done.
const LEFT_GRACE: Duration = Duration::from_secs(1);
/// A process that CMD left behind may hold stderr open; its end is waited for no longer than this.
const STDERR_GRACE: Duration = Duration::from_millis(250);

/// What CMD gets as its standard streams; stdout is always ours.
pub enum Streams {
    /// Our stdin, stdout and stderr.
    Ours,
    /// Its stdin from this file; the end of its stderr is kept while all of it is passed through.
    Job(std::fs::File),
}

/// A guard that has nothing to guard yet. It is started before anything that it would have to clear
/// away, so that there is no moment at which a killed `tenure` leaves something behind.
pub struct GuardLink {
    process: GuardProcess,
    socket: UnixStream,
}

/// Why CMD does not run.
pub enum CmdUnstarted {
    /// It cannot be started, or its guard cannot.
    Failed(Failure),
    /// The time of its lease was over before it was started, or before its guard could say that it was.
    Overdue,
}

impl From<Failure> for CmdUnstarted {
    fn from(failure: Failure) -> Self {
        CmdUnstarted::Failed(failure)
    }
}

/// A CMD below its guard, from its start on.
pub struct Running {
    voice: GuardVoice,
    /// Notified if the guard does not listen.
    deaf: Arc<Notify>,
    group: Pid,
    overdue: Arc<AtomicBool>,
    ended: watch::Receiver<Option<How>>,
    gone: watch::Receiver<bool>,
    suspended: Option<mpsc::UnboundedReceiver<Signal>>,
    stderr: Option<(JoinHandle<()>, Tail)>,
}

impl GuardLink {
    /// Starts one.
    ///
    /// # Errors
    /// The system gives no process: 125.
    pub fn spawn() -> Result<Self, Failure> {
        let spawn = || {
            let (ours, theirs) = UnixStream::pair()?;
            let mut call = Command::new(own_program()?);
            call.arg0(guard::NAME);
            #[cfg(test)]
            call.args(guard::tests::AS_THE_GUARD);
            // Not of our group: a signal of the terminal to this process must not end the guard too.
            call.process_group(0).stdin(Stdio::from(OwnedFd::from(theirs)));
            call.stdout(Stdio::null()).stderr(Stdio::null());
            Ok(GuardLink { process: GuardProcess::spawn(&mut call)?, socket: ours })
        };
        spawn().map_err(|error: io::Error| no_guard(&error))
    }

    /// From now on this folder is removed if this process is killed.
    ///
    /// # Errors
    /// The guard is gone: 125.
    pub fn watches(&self, folder: &Path) -> Result<(), Failure> {
        wire::tell_folder(&self.socket, folder).map_err(|error| no_guard(&error))
    }

    /// Starts CMD, which may run for as long as the lease is known to be held, if there is one. With `detach` it goes on
    /// when this process is killed.
    ///
    /// # Errors
    /// With the exit code that says which: 127 not found, 126 not runnable, 125 anything else. Or it is too late.
    pub async fn start(
        self,
        command: &[OsString],
        environment: &Environment,
        streams: Streams,
        detach: bool,
        lease: Option<LeaseWatch>,
    ) -> Result<Running, CmdUnstarted> {
        let Some(program) = command.first() else {
            return Err(Failure::usage("there is no command to run").into());
        };
        let order = Order {
            detach,
            command: command.to_vec(),
            remove: environment.remove().map(OsStr::to_owned).collect(),
            set: environment
                .set()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        };
        let socket = &self.socket;
        let tell = || {
            let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
            Ok(match streams {
                Streams::Ours => {
                    let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
                    wire::tell_start(socket, &order, streams)?;
                    None
                }
                Streams::Job(payload) => {
                    let (read, write) = io::pipe()?;
                    let streams = [payload.as_fd(), stdout.as_fd(), write.as_fd()];
                    wire::tell_start(socket, &order, streams)?;
                    Some(Receiver::from_owned_fd(read.into())?)
                }
            })
        };
        let feed = match lease {
            Some(lease) => {
                let feed = Feed::of(lease);
                let deadline = feed.tell(socket).map_err(|error| no_guard(&error))?;
                Some((feed, deadline))
            }
            None => None,
        };
        let stderr = tell().map_err(|error| no_guard(&error))?;
        let runtime = process::runtime().map_err(|error| no_guard(&error))?;
        let listen = || {
            let _inside = runtime.enter();
            let socket = self.socket.try_clone()?;
            socket.set_nonblocking(true)?;
            tokio::net::UnixStream::from_std(socket)
        };
        let mut listening = listen().map_err(|error| no_guard(&error))?;
        // Until the guard has answered it receives no heartbeats, so that its time is over then.
        let late = async {
            match &feed {
                Some((feed, deadline)) => feed.comes(*deadline).await,
                None => std::future::pending().await,
            }
        };
        let reply = tokio::select! {
            biased;
            reply = next_said(&mut listening) => reply,
            () = late => {
                end_deaf(&self.process).await;
                return Err(CmdUnstarted::Overdue);
            }
        };
        let group = match reply {
            Ok(Said::Started(pid)) => Pid::from_raw(pid),
            Ok(Said::NotStarted(errno)) => {
                let _ = wire::tell_bye(&self.socket);
                return Err(not_started(program, &io::Error::from_raw_os_error(errno)).into());
            }
            Ok(Said::Overdue) => return Err(CmdUnstarted::Overdue),
            Ok(_) => return Err(no_guard(&io::ErrorKind::InvalidData.into()).into()),
            Err(error) => return Err(no_guard(&error).into()),
        };
        let stderr = stderr.map(|pipe| {
            let tail = Tail::default();
            (tokio::spawn(pass_through(pipe, tail.clone())), tail)
        });
        let GuardLink { process, socket } = self;
        let (tell_ended, ended) = watch::channel(None);
        let (tell_gone, gone) = watch::channel(false);
        let (tell_suspended, suspended) = mpsc::unbounded_channel();
        let (tell_heard, heard) = watch::channel(0);
        let overdue = Arc::new(AtomicBool::new(false));
        let deaf = Arc::new(Notify::new());
        let voice = GuardVoice::new(socket, heard);
        let listener = Listener {
            ended: tell_ended,
            suspended: tell_suspended,
            heard: tell_heard,
            overdue: overdue.clone(),
        };
        let (told_deaf, feeding) = (deaf.clone(), voice.clone());
        runtime.spawn(async move {
            let feeding = async {
                match feed {
                    Some((feed, deadline)) => feed.go_on(&feeding, deadline).await,
                    None => std::future::pending().await,
                }
            };
            let left = tokio::select! {
                heard = listen_to(&mut listening, &listener) => heard.is_err(),
                () = feeding => true,
                () = told_deaf.notified() => true,
            };
            // The guard is gone, or does not listen. If this process did not dismiss it, nobody guards CMD any more: it
            // ends, and with it every process that can still be found.
            let Listener { ended, .. } = &listener;
            if left && !ended.is_closed() {
                end_unguarded(&process, group).await;
                ended.send_if_modified(|ended| {
                    let killed = ended.is_none();
                    ended.get_or_insert(How::Signal(Signal::SIGKILL as i32));
                    killed
                });
            }
            tell_gone.send_replace(true);
        });
        let suspended = Some(suspended);
        Ok(Running { voice, deaf, group, overdue, ended, gone, suspended, stderr })
    }
}

/// The program of this process. On Linux this name finds it even after an update has put another in its place, with
/// which this process could not talk.
fn own_program() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

fn no_guard(error: &io::Error) -> Failure {
    Failure::new(NOT_STARTED, format!("the process that guards CMD could not be used: {error}"))
        .hint("check that this user may have more processes and open files")
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
                _ => "check its permissions".to_owned(),
            };
            Failure::new(NOT_RUNNABLE, format!("'{name}' cannot be run: permission denied"))
                .hint(hint)
        }
        _ if error.raw_os_error() == Some(Errno::ENOEXEC as i32) => {
            Failure::new(NOT_RUNNABLE, format!("'{name}' cannot be run: it is not a program"))
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

    /// The signals by which CMD is suspended, as they come; `None` after the first call.
    pub fn suspended(&mut self) -> Option<mpsc::UnboundedReceiver<Signal>> {
        self.suspended.take()
    }

    /// Sends a signal to CMD's process group, which may be gone already.
    pub fn signal(&self, signal: Signal) {
        let _ = wire::tell_signal(&self.voice.socket, false, signal as i32);
    }

    /// Sends a signal to every process that CMD started.
    fn signal_all(&self, signal: Signal) {
        // A guard that is gone is noticed by the task that listens to it.
        let _ = wire::tell_signal(&self.voice.socket, true, signal as i32);
    }

    /// Waits for CMD's end, not for that of processes it left behind. May be dropped and called again.
    pub async fn ended(&mut self) -> Result<How, Failure> {
        let ended = self.ended.wait_for(Option::is_some).await;
        ended.ok().and_then(|how| *how).ok_or_else(|| Failure::bug("nobody watches CMD"))
    }

    /// Whether the guard ended CMD by itself, because the time of its lease was over: this process was stopped, or the
    /// machine was suspended.
    pub fn is_overdue(&self) -> bool {
        self.overdue.load(Ordering::Acquire)
    }

    /// Stops all that CMD started: SIGTERM, and SIGKILL when `grace` is over or `limit` comes, whichever is first.
    /// Returns when no process is left. `limit` is called again when it comes: it moves while the lease is still
    /// extended. May be dropped and called again.
    pub async fn stop(
        &mut self,
        grace: Duration,
        limit: impl Fn() -> Option<Instant>,
    ) -> Result<How, Failure> {
        let begun = Instant::now();
        let end = begun + grace;
        self.signal_all(Signal::SIGTERM);
        // A suspended process cannot end.
        self.signal_all(Signal::SIGCONT);
        let ping = self.voice.ping();
        let half = begun
            + limit().map_or(end, |limit| limit.min(end)).saturating_duration_since(begun) / 2;
        let voice = self.voice.clone();
        tokio::select! {
            biased;
            () = self.gone() => return self.ended().await,
            () = voice.heard(ping) => {}
            // It did not get SIGTERM, and would not get SIGKILL.
            () = tokio::time::sleep_until(half.into()) => self.deaf.notify_one(),
        }
        loop {
            let until = limit().map_or(end, |limit| limit.min(end));
            if until <= Instant::now() {
                break;
            }
            if tokio::time::timeout_at(until.into(), self.gone()).await.is_ok() {
                return self.ended().await;
            }
        }
        let _ = wire::tell_kill(&self.voice.socket);
        let _ = tokio::time::timeout(KILLED_MAX, self.gone()).await;
        self.ended().await
    }

    /// After CMD's end: ends the processes that it left behind.
    pub async fn end_the_rest(
        &mut self,
        limit: impl Fn() -> Option<Instant>,
    ) -> Result<(), Failure> {
        if *self.gone.borrow() {
            return Ok(());
        }
        self.stop(LEFT_GRACE, limit).await.map(|_| ())
    }

    /// Dismisses the guard: processes that still live may go on, and the folder is gone.
    pub fn let_go(mut self) {
        self.ask_no_more();
        let _ = wire::tell_bye(&self.voice.socket);
    }

    /// To be called before the guard is dismissed: while CMD's end is still awaited, the listening task treats a guard
    /// that goes as one that was killed, and ends CMD's group. That would be what a successful CMD left behind, or
    /// another's group that has its number by now.
    fn ask_no_more(&mut self) {
        self.ended = watch::channel(None).1;
    }

    /// Waits until nothing is left of what CMD started.
    async fn gone(&mut self) {
        // The sender is dropped only after that was reported.
        let _ = self.gone.wait_for(|gone| *gone).await;
    }

    /// The end of its stderr, no longer than an error may be. To be called after its end.
    pub async fn stderr(&mut self) -> Vec<u8> {
        let Some((mut forwarding_server, tail)) = self.stderr.take() else { return Vec::new() };
        let _ = tokio::time::timeout(STDERR_GRACE, &mut forwarding_server).await;
        tail.bytes()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask_no_more();
        // The task that listens has the socket too: the guard must see its end now. It still reads the messages before
        // that.
        let _ = self.voice.socket.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::grace::GRACE;
    use crate::child::run_folder::RunFolder;
    use tenure_testkit::fake;

    async fn sh(script: &str) -> Running {
        let lease = fake::job_lease("L1", "{\"n\":1}");
        let environment = Environment::of(&lease, RunFolder::new().unwrap(), false).unwrap();
        let command: Vec<OsString> = ["sh", "-c", script].map(OsString::from).to_vec();
        let payload = &environment.files.as_ref().unwrap().payload;
        let stdin = std::fs::File::open(payload).unwrap();
        let guard = GuardLink::spawn().unwrap();
        let started = guard.start(&command, &environment, Streams::Job(stdin), false, None).await;
        started.ok().unwrap()
    }

    #[tokio::test]
    async fn cmd_gets_the_payload_and_its_end_is_told() {
        let mut running = sh("cat >&2; exit 3").await;
        assert_eq!(running.ended().await.unwrap(), How::Code(3));
        assert_eq!(running.stderr().await, b"{\"n\":1}");
        let mut running = sh("kill -9 $$").await;
        assert_eq!(running.ended().await.unwrap(), How::Signal(9));
        assert!(running.stderr().await.is_empty());
    }

    #[tokio::test]
    async fn a_process_left_behind_with_stderr_open_is_not_waited_for() {
        let mut running = sh("echo why >&2; sleep 60 & exit 1").await;
        assert_eq!(running.ended().await.unwrap(), How::Code(1));
        assert_eq!(running.stderr().await, b"why\n");
        running.signal(Signal::SIGKILL);
    }

    #[tokio::test]
    async fn the_whole_group_is_stopped_and_killed_if_it_does_not_listen() {
        let begun = Instant::now();
        let mut running = sh("sleep 60 & wait").await;
        assert_eq!(running.stop(GRACE, || None).await.unwrap(), How::Signal(15));
        assert!(begun.elapsed() < GRACE);
        let mut deaf = sh("trap '' TERM; echo up >&2; sleep 60 & wait; sleep 60").await;
        while deaf.stderr.as_ref().unwrap().1.bytes().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let limit = Instant::now() + Duration::from_millis(100);
        assert_eq!(deaf.stop(GRACE, || Some(limit)).await.unwrap(), How::Signal(9));
    }

    #[tokio::test]
    async fn what_cannot_be_started_says_why() {
        let environment =
            Environment::of(&fake::needs_lease("L1"), RunFolder::new().unwrap(), false).unwrap();
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
            let guard = GuardLink::spawn().unwrap();
            let command = std::slice::from_ref(&program);
            let started = guard.start(command, &environment, Streams::Ours, false, None).await;
            let Err(CmdUnstarted::Failed(failure)) = started else { panic!("{program:?} runs") };
            assert_eq!(failure.code, code, "{program:?}");
        }
    }
}
