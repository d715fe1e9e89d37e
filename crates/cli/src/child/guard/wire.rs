//! Messages between `tenure` and the guard of a CMD, over a pair of sockets.
//!
//! `tenure` sends frames: a tag, a length, and that many bytes; the order to start CMD also carries the three streams
//! of CMD as descriptors. The guard answers with a tag and a number. Either end is closed by the death of its process,
//! and that is a message too.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// CMD's stdin, stdout and stderr.
const STREAMS: usize = 3;
/// The tag and the number of a message of the guard.
pub const SAID_BYTES: usize = 5;
/// The tag and the length of a message to the guard.
const HEAD_BYTES: usize = 5;

/// The order to start CMD.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Order {
    /// CMD outlives `tenure`, if that is killed.
    pub detach: bool,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Variables that CMD does not get.
    pub remove: Vec<OsString>,
    /// Variables that CMD gets; set after the others are removed.
    pub set: Vec<(OsString, OsString)>,
}

impl Order {
    /// No part can hold a zero byte, so one ends each part; an empty part ends a list.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.detach)];
        let mut put = |part: &OsStr| {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0);
        };
        put(OsStr::new(&self.command.len().to_string()));
        self.command.iter().for_each(|part| put(part));
        put(OsStr::new(&self.remove.len().to_string()));
        self.remove.iter().for_each(|part| put(part));
        for (name, value) in &self.set {
            put(name);
            put(value);
        }
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (detach, rest) = bytes.split_first()?;
        let rest = rest.strip_suffix(&[0])?;
        let mut parts = rest.split(|byte| *byte == 0).map(|part| OsString::from_vec(part.to_vec()));
        let mut list = || {
            let many: usize = parts.next()?.to_str()?.parse().ok()?;
            let list: Vec<OsString> = parts.by_ref().take(many).collect();
            (list.len() == many).then_some(list)
        };
        let (command, remove) = (list()?, list()?);
        let mut set = Vec::new();
        while let Some(name) = parts.next() {
            set.push((name, parts.next()?));
        }
        Some(Order { detach: *detach != 0, command, remove, set })
    }
}

/// Until when CMD may run if no further heartbeat is answered, on the clock of `clock.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseTimes {
    /// When CMD gets SIGTERM.
    pub stop_by: Duration,
    /// When nothing of it may be left.
    pub kill_by: Duration,
}

impl LeaseTimes {
    /// In whole microseconds, which is more than either clock is good for.
    fn bytes(self) -> Vec<u8> {
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).to_le_bytes();
        [us(self.stop_by), us(self.kill_by)].concat()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (stop_by, kill_by) = bytes.split_first_chunk::<8>()?;
        let us = |bytes: [u8; 8]| Duration::from_micros(u64::from_le_bytes(bytes));
        Some(LeaseTimes { stop_by: us(*stop_by), kill_by: us(kill_by.try_into().ok()?) })
    }
}

/// A message to the guard.
#[derive(Debug)]
pub enum GuardTold {
    /// The folder to remove when nobody else is left who could.
    Folder(PathBuf),
    /// Start CMD, with these as its stdin, stdout and stderr.
    Start(Order, [OwnedFd; STREAMS]),
    /// Send this signal to CMD's process group.
    Group(i32),
    /// Send this signal to every process that CMD started and that still lives.
    All(i32),
    /// End all of them at once.
    Kill,
    /// The lease is held until then.
    Lease(LeaseTimes),
    /// Confirm all earlier messages.
    Ping(i32),
    /// Nothing is left to guard: processes that still live may go on.
    Bye,
}

/// Sends the guard a short message.
pub fn tell(mut socket: &UnixStream, tag: u8, bytes: &[u8]) -> io::Result<()> {
    socket.write_all(&[&head(tag, bytes.len())?, bytes].concat())
}

/// Tells the guard of the folder.
pub fn tell_folder(socket: &UnixStream, folder: &Path) -> io::Result<()> {
    tell(socket, b'f', folder.as_os_str().as_bytes())
}

/// Tells the guard to send a signal, to CMD's group or to all.
pub fn tell_signal(socket: &UnixStream, all: bool, signal: i32) -> io::Result<()> {
    tell(socket, if all { b'a' } else { b'g' }, &signal.to_le_bytes())
}

/// Tells the guard to end all that CMD started.
pub fn tell_kill(socket: &UnixStream) -> io::Result<()> {
    tell(socket, b'k', &[])
}

/// Tells the guard until when CMD may run.
pub fn tell_lease(socket: &UnixStream, times: LeaseTimes) -> io::Result<()> {
    tell(socket, b'l', &times.bytes())
}

/// Asks the guard to confirm all earlier messages.
pub fn tell_ping(socket: &UnixStream, number: i32) -> io::Result<()> {
    tell(socket, b'p', &number.to_le_bytes())
}

/// Tells the guard that it is needed no longer.
pub fn tell_bye(socket: &UnixStream) -> io::Result<()> {
    tell(socket, b'q', &[])
}

/// Tells the guard to start CMD with these streams.
pub fn tell_start(
    mut socket: &UnixStream,
    order: &Order,
    streams: [BorrowedFd<'_>; STREAMS],
) -> io::Result<()> {
    let bytes = order.bytes();
    let head = head(b's', bytes.len())?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&streams)) {
        return Err(io::Error::other("no room for three descriptors"));
    }
    let sent = sendmsg(socket, &[IoSlice::new(&head)], &mut ancillary, SendFlags::empty())?;
    socket.write_all(&head[sent..])?;
    socket.write_all(&bytes)
}

fn head(tag: u8, bytes: usize) -> io::Result<[u8; HEAD_BYTES]> {
    let [a, b, c, d] = u32::try_from(bytes).map_err(io::Error::other)?.to_le_bytes();
    Ok([tag, a, b, c, d])
}

/// The next message to the guard; `None` when `tenure` is gone.
pub fn told(mut socket: &UnixStream) -> io::Result<Option<GuardTold>> {
    let mut head = [0; HEAD_BYTES];
    let mut streams = Vec::new();
    let mut read = 0;
    while read < HEAD_BYTES {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut part = [IoSliceMut::new(&mut head[read..])];
        let got = match recvmsg(socket, &mut part, &mut ancillary, CLOSED_BY_EXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            got => got?.bytes,
        };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                streams.extend(descriptors);
            }
        }
        if got == 0 {
            return Ok(None);
        }
        read += got;
    }
    let [tag, length @ ..] = head;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    socket.read_exact(&mut bytes)?;
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let number = || bytes.as_slice().try_into().map(i32::from_le_bytes).map_err(|_| broken());
    Ok(Some(match tag {
        b'f' => GuardTold::Folder(OsString::from_vec(bytes).into()),
        b's' => {
            let streams = streams.try_into().map_err(|_| broken())?;
            GuardTold::Start(Order::parse(&bytes).ok_or_else(broken)?, streams)
        }
        b'g' => GuardTold::Group(number()?),
        b'a' => GuardTold::All(number()?),
        b'k' => GuardTold::Kill,
        b'l' => GuardTold::Lease(LeaseTimes::parse(&bytes).ok_or_else(broken)?),
        b'p' => GuardTold::Ping(number()?),
        b'q' => GuardTold::Bye,
        _ => return Err(broken()),
    }))
}

/// A received descriptor must not be inherited by CMD.
#[cfg(target_os = "linux")]
const CLOSED_BY_EXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;
/// There rustix itself sets it.
#[cfg(not(target_os = "linux"))]
const CLOSED_BY_EXEC: RecvFlags = RecvFlags::empty();

/// A message of the guard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said {
    /// CMD runs: its process, and its process group.
    Started(i32),
    /// CMD could not be started: the number of the system's error, 0 if it has none.
    NotStarted(i32),
    /// CMD was suspended by this signal.
    Suspended(i32),
    /// CMD ended with this code.
    Ended(i32),
    /// CMD was ended by this signal.
    Killed(i32),
    /// Nothing that CMD started is left.
    Gone,
    /// The time of the lease is over, and CMD is being ended for that, or was not started.
    Overdue,
    /// All messages before this ping were heard.
    Heard(i32),
}

impl Said {
    /// The bytes on the socket.
    pub fn bytes(self) -> [u8; SAID_BYTES] {
        let (tag, number) = match self {
            Said::Started(pid) => (b'S', pid),
            Said::NotStarted(errno) => (b'F', errno),
            Said::Suspended(signal) => (b'T', signal),
            Said::Ended(code) => (b'E', code),
            Said::Killed(signal) => (b'K', signal),
            Said::Gone => (b'G', 0),
            Said::Overdue => (b'O', 0),
            Said::Heard(ping) => (b'H', ping),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [tag, a, b, c, d]
    }

    /// Parses a message; `None` if no guard sends it.
    pub fn parse([tag, number @ ..]: [u8; SAID_BYTES]) -> Option<Self> {
        let number = i32::from_le_bytes(number);
        Some(match tag {
            b'S' => Said::Started(number),
            b'F' => Said::NotStarted(number),
            b'T' => Said::Suspended(number),
            b'E' => Said::Ended(number),
            b'K' => Said::Killed(number),
            b'G' => Said::Gone,
            b'O' => Said::Overdue,
            b'H' => Said::Heard(number),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_sent() {
        let text = |text: &[u8]| OsString::from_vec(text.to_vec());
        for order in [
            Order::default(),
            Order {
                detach: true,
                command: vec![text(b"sh"), text(b""), text(b"a\xffb")],
                remove: vec![text(b"TENURE_URL")],
                set: vec![(text(b"A"), text(b"")), (text(b"B"), text(b"x=y\n"))],
            },
            Order { command: vec![text(b"true")], ..Order::default() },
        ] {
            assert_eq!(Order::parse(&order.bytes()), Some(order));
        }
        assert_eq!(Order::parse(b"\x009\0a\0"), None);
    }

    #[test]
    fn what_is_told_and_said_is_heard_and_streams_go_along() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        tell_folder(&ours, Path::new("/x")).unwrap();
        let streams = io::stderr();
        use std::os::fd::AsFd;
        tell_start(&ours, &Order::default(), [streams.as_fd(); 3]).unwrap();
        tell_signal(&ours, true, 15).unwrap();
        let times = LeaseTimes {
            stop_by: Duration::from_micros(7),
            kill_by: Duration::from_micros(1 << 40),
        };
        tell_lease(&ours, times).unwrap();
        tell_ping(&ours, 3).unwrap();
        tell_bye(&ours).unwrap();
        drop(ours);
        assert!(
            matches!(told(&theirs), Ok(Some(GuardTold::Folder(path))) if path == Path::new("/x"))
        );
        assert!(
            matches!(told(&theirs), Ok(Some(GuardTold::Start(order, _))) if order == Order::default())
        );
        assert!(matches!(told(&theirs), Ok(Some(GuardTold::All(15)))));
        assert!(matches!(told(&theirs), Ok(Some(GuardTold::Lease(heard))) if heard == times));
        assert!(matches!(told(&theirs), Ok(Some(GuardTold::Ping(3)))));
        assert!(matches!(told(&theirs), Ok(Some(GuardTold::Bye))));
        assert!(matches!(told(&theirs), Ok(None)));
        let all = [Said::Started(7), Said::Killed(9), Said::Ended(-1), Said::Gone];
        for said in all.into_iter().chain([Said::Overdue, Said::Heard(7)]) {
            assert_eq!(Said::parse(said.bytes()), Some(said));
        }
    }
}
