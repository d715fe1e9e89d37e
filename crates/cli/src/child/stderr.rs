//! Forwards CMD's stderr to ours and keeps its end, which is the error of a run that fails.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tenure_console::stderr;
use tenure_core::bounds::ERROR_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The last bytes of a stream.
#[derive(Clone, Default)]
pub struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A little more than is kept in the end, for the line ends that are cut off.
        const MOST: usize = ERROR_BYTES_MAX + 64;
        kept.extend(&bytes[bytes.len().saturating_sub(MOST)..]);
        let more = kept.len().saturating_sub(MOST);
        kept.drain(..more);
    }
    /// The bytes that were kept until now.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

/// Passes a stream on to our stderr until it ends, and keeps its end.
pub async fn pass_through(mut pipe: impl AsyncRead + Unpin, tail: Tail) {
    let mut chunk = vec![0; 8 * 1024];
    loop {
        match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(read) => {
                tail.add(&chunk[..read]);
                // That nobody reads our stderr must not stop CMD.
                stderr::say(&chunk[..read]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_stream_is_kept() {
        let tail = Tail::default();
        tail.add(&vec![b'a'; 100_000]);
        tail.add(b"end");
        assert!(tail.bytes().len() <= ERROR_BYTES_MAX + 64);
        assert!(tail.bytes().ends_with(b"aend"));
    }
}
