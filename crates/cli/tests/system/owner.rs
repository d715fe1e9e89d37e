//! The leader of a store, as its servers report it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A server that is asked may stand still.
const SAYS_WITHIN: Duration = Duration::from_millis(300);

/// Whether the server at this port says that it leads the store.
pub fn owns(port: u16) -> bool {
    readyz(port).is_some_and(|said| said.contains("the server answers calls"))
}

fn readyz(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(SAYS_WITHIN)).ok()?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    Some(said)
}
