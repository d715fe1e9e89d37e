//! Limits frames of HTTP/2 that carry nothing of a request. Each costs the server work (a PING and a SETTINGS an answer
//! too) and costs its sender almost nothing, so a connection may send a limited number of them.
//!
//! The HTTP library bounds resets of requests that it has answered, but not these frames.

use std::time::Duration;

use tokio::time::Instant;

/// Every client begins with these bytes.
const PREFACE_BYTES: usize = 24;
/// The head of a frame: its length, type, flags and stream.
const HEAD_BYTES: usize = 9;
/// The count of frames starts from 0 after this.
const WINDOW: Duration = Duration::from_secs(10);
/// Most frames of a connection that has shown no token: settings, a few windows, a ping.
const STRANGER_MAX: u32 = 100;
/// Most frames of a caller with a token.
const CALLER_MAX: u32 = 10_000;

/// The part that a frame plays for the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FrameKind {
    /// Carries a part of a request.
    Request,
    /// Follows requests: a caller sends such frames as it reads answers and drops requests.
    Follows,
    /// PING, SETTINGS, PRIORITY, and unknown types.
    Control,
}

impl FrameKind {
    fn of(number: u8) -> FrameKind {
        match number {
            // DATA, HEADERS, CONTINUATION.
            0 | 1 | 9 => FrameKind::Request,
            // RST_STREAM, WINDOW_UPDATE.
            3 | 8 => FrameKind::Follows,
            _ => FrameKind::Control,
        }
    }
}

/// Counts the frames of one connection as its bytes come.
#[derive(Debug)]
pub(crate) struct ControlFrames {
    /// Bytes to come that are not the head of a frame.
    skip: usize,
    head: [u8; HEAD_BYTES],
    /// Bytes of the head that have come.
    has: usize,
    since: Instant,
    count: u32,
}

impl ControlFrames {
    /// For a connection that has sent nothing yet.
    pub(crate) fn new(now: Instant) -> Self {
        ControlFrames { skip: PREFACE_BYTES, head: [0; HEAD_BYTES], has: 0, since: now, count: 0 }
    }

    /// Whether these next bytes may be answered; false: too many frames came.
    pub(crate) fn come(&mut self, mut bytes: &[u8], is_stranger: bool, now: Instant) -> bool {
        if now.duration_since(self.since) >= WINDOW {
            (self.since, self.count) = (now, 0);
        }
        while !bytes.is_empty() {
            if self.skip > 0 {
                let skipped = self.skip.min(bytes.len());
                self.skip -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            let part = (HEAD_BYTES - self.has).min(bytes.len());
            self.head[self.has..self.has + part].copy_from_slice(&bytes[..part]);
            self.has += part;
            bytes = &bytes[part..];
            if self.has == HEAD_BYTES {
                self.has = 0;
                let [high, middle, low, number, ..] = self.head;
                self.skip = u32::from_be_bytes([0, high, middle, low]) as usize;
                self.count += u32::from(match FrameKind::of(number) {
                    FrameKind::Request => false,
                    FrameKind::Follows => is_stranger,
                    FrameKind::Control => true,
                });
            }
        }
        self.count <= if is_stranger { STRANGER_MAX } else { CALLER_MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u8, bytes: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, bytes, number, 0, 0, 0, 0, 0];
        // The payload looks like heads of PING.
        frame.extend([0, 0, 0, 6, 0, 0, 0, 0, 0].iter().cycle().take(usize::from(bytes)));
        frame
    }

    #[test]
    fn frames_are_counted_wherever_the_bytes_are_cut() {
        let text = [vec![b'P'; PREFACE_BYTES], frame(4, 18), frame(1, 40), frame(6, 8)].concat();
        for cut in 1..text.len() {
            let mut frames = ControlFrames::new(Instant::now());
            for part in text.chunks(cut) {
                assert!(frames.come(part, true, Instant::now()));
            }
            assert_eq!(frames.count, 2, "in parts of {cut}");
        }
    }

    #[test]
    fn a_stranger_may_send_few_and_a_caller_more() {
        let [ping, reset, window_update, data] = [6, 3, 8, 0];
        for (number, of_stranger, of_caller) in [
            (ping, STRANGER_MAX, CALLER_MAX),
            (reset, STRANGER_MAX, u32::MAX),
            (window_update, STRANGER_MAX, u32::MAX),
            (data, u32::MAX, u32::MAX),
        ] {
            for (is_stranger, most) in [(true, of_stranger), (false, of_caller)] {
                let (mut frames, now) = (ControlFrames::new(Instant::now()), Instant::now());
                frames.come(&[0; PREFACE_BYTES], is_stranger, now);
                let (one, tries) = (frame(number, 8), CALLER_MAX + 10);
                let taken = (0..tries).take_while(|_| frames.come(&one, is_stranger, now)).count();
                assert_eq!(taken as u32, most.min(tries), "type {number}, {is_stranger}");
                let later = now + WINDOW;
                assert!(frames.come(&one, is_stranger, later), "they are counted anew");
            }
        }
    }
}
