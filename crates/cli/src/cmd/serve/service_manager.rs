//! Tells the service manager that started this server (systemd with `Type=notify`, or a similar one) how the server is.
//!
//! The protocol is a datagram of `KEY=value` lines to the socket that `NOTIFY_SOCKET` names, see sd_notify(3). Nothing
//! here can hold up a server: a message that cannot be sent at once is dropped. Only a panic ends it, as anywhere else.

use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tenure_journal::threads::task_or_die;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// The manager that asked to be notified. Without `NOTIFY_SOCKET` nobody asked, and each message is dropped.
pub struct ServiceManager {
    socket: Option<NotifySocket>,
    /// Shows that the threads of this process run, until this value is dropped.
    beats: Option<JoinHandle<()>>,
}

/// The socket of the manager, and ours from which messages leave.
struct NotifySocket {
    from: UnixDatagram,
    to: SocketAddr,
}

impl ServiceManager {
    /// Reads the environment. A socket that cannot be used is worth a warning, and the server serves all the same.
    pub fn of_environment() -> Self {
        let named = std::env::var("NOTIFY_SOCKET").ok().filter(|name| !name.is_empty());
        let socket = named.and_then(|name| match NotifySocket::named(&name) {
            Ok(socket) => Some(socket),
            Err(why) => {
                tracing::warn!(why = %why, "cannot notify the service manager: NOTIFY_SOCKET names no unix socket");
                None
            }
        });
        ServiceManager { socket, beats: None }
    }

    /// Callers are answered from now on. From here the manager waits for heartbeats, if it asked for some.
    pub fn ready(&mut self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status)));
        let every = watchdog_pause(|name| std::env::var(name).ok(), std::process::id());
        let socket = self.socket.as_ref().and_then(|to| to.again().ok());
        if let (Some(every), Some(socket)) = (every, socket) {
            // A task of its own: it goes on while the server drains and its store is closed.
            let beats = beat(socket, every);
            self.beats = Some(tokio::spawn(task_or_die("the watchdog's heartbeat", beats)));
        }
    }

    /// The text that `systemctl status` shows.
    pub fn status(&self, status: &str) {
        self.tell(&format!("STATUS={}", one_line(status)));
    }

    /// Files are being read again: `systemctl reload` waits until [`ServiceManager::reloaded`].
    pub fn reloading(&self) {
        let since_boot = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
        if let Ok(since_boot) = since_boot {
            self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", since_boot.as_micros()));
        }
    }

    /// The files are read: `systemctl reload` returns.
    pub fn reloaded(&self) {
        self.tell("READY=1");
    }

    /// The server was asked to end.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=draining");
    }

    fn tell(&self, message: &str) {
        if let Some(socket) = &self.socket {
            socket.send(message);
        }
    }
}

impl Drop for ServiceManager {
    fn drop(&mut self) {
        if let Some(beats) = &self.beats {
            beats.abort();
        }
    }
}

impl NotifySocket {
    /// `name` is a whole path or, on Linux, `@` and a name of the abstract kind.
    fn named(name: &str) -> io::Result<Self> {
        let from = UnixDatagram::unbound()?;
        from.set_nonblocking(true)?;
        Ok(NotifySocket { from, to: address(name)? })
    }

    fn again(&self) -> io::Result<Self> {
        Ok(NotifySocket { from: self.from.try_clone()?, to: self.to.clone() })
    }

    fn send(&self, message: &str) {
        if let Err(why) = self.from.send_to_addr(message.as_bytes(), &self.to) {
            tracing::debug!(%why, "cannot notify the service manager");
        }
    }
}

fn address(name: &str) -> io::Result<SocketAddr> {
    match name.strip_prefix('@') {
        Some(name) => abstract_address(name),
        None if name.starts_with('/') => SocketAddr::from_pathname(name),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "it begins with neither / nor @")),
    }
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &str) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &str) -> io::Result<SocketAddr> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux has abstract sockets"))
}

async fn beat(socket: NotifySocket, every: Duration) {
    let mut beats = interval(every);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        socket.send("WATCHDOG=1");
    }
}

/// Half of the time after which the manager takes this process for hung, as sd_watchdog_enabled(3) advises. `None` if
/// it watches no process, or another one.
fn watchdog_pause(variable: impl Fn(&str) -> Option<String>, own: u32) -> Option<Duration> {
    let watched = variable("WATCHDOG_PID").is_none_or(|pid| pid.parse() == Ok(own));
    let usec: u64 = variable("WATCHDOG_USEC")?.parse().ok()?;
    (watched && usec > 1).then(|| Duration::from_micros(usec / 2))
}

/// A line break would begin another key.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeats_come_twice_as_often_as_the_manager_asks() {
        let half = |us| Some(Duration::from_micros(us));
        for (usec, pid, pause) in [
            (Some("30000000"), None, half(15_000_000)),
            (Some("30000000"), Some("7"), half(15_000_000)),
            (Some("30000000"), Some("8"), None),
            (Some("30000000"), Some("x"), None),
            (Some("0"), None, None),
            (Some("often"), None, None),
            (None, Some("7"), None),
        ] {
            let variable = |name: &str| match name {
                "WATCHDOG_USEC" => usec.map(str::to_owned),
                "WATCHDOG_PID" => pid.map(str::to_owned),
                _ => None,
            };
            assert_eq!(watchdog_pause(variable, 7), pause, "{usec:?} {pid:?}");
        }
    }

    #[test]
    fn a_socket_has_a_whole_path_or_an_abstract_name() {
        for (name, good) in
            [("/run/notify", true), ("@notify", true), ("notify", false), ("vsock:2:1", false)]
        {
            assert_eq!(address(name).is_ok(), good, "{name}");
        }
    }

    #[test]
    fn a_status_is_one_line() {
        assert_eq!(one_line("away:\nREADY=1"), "away: READY=1");
    }
}
