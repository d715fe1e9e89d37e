//! A small HTTP server in the test: a thread for each connection, one request in each.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One request of a caller.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its method and path.
    pub line: String,
    /// Names in lower case, in the order of the request.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(of, _)| of == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// The other end of a request.
pub struct Caller(TcpStream);

impl Caller {
    /// Answers with these lines of a head, and a body.
    pub fn answer(&mut self, status: u16, headers: &[(&str, &str)], body: &str) {
        let mut text = format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        self.write(&(text + "\r\n" + body));
    }

    /// Writes the text as it is. The reader may be gone.
    pub fn write(&mut self, text: &str) {
        let _ = self.0.write_all(text.as_bytes());
    }

    /// Waits this long, or until the caller hangs up, or `over` becomes true; answers whether the caller is there.
    pub fn stays(&mut self, long: Duration, over: impl Fn() -> bool) -> bool {
        let until = Instant::now() + long;
        self.0.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        while Instant::now() < until && !over() {
            match self.0.peek(&mut [0]) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return false,
            }
        }
        true
    }
}

fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let mut lines = head.lines();
    let line = lines.next()?.strip_suffix(" HTTP/1.1")?.to_owned();
    let pair = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_lowercase(), value.trim().to_owned()))
    };
    let headers: Vec<_> = lines.filter_map(pair).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some(Asked { line, headers, body: String::from_utf8(body).ok()? })
}

type Handle = Arc<dyn Fn(Asked, &mut Caller) + Send + Sync>;

/// Answers until it is dropped; it may go down in between, and come back at the same address.
pub struct Server {
    at: String,
    handle: Handle,
    listening: Mutex<Option<(Arc<AtomicBool>, JoinHandle<()>)>>,
}

impl Server {
    pub fn start(handle: impl Fn(Asked, &mut Caller) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let server = Server { at, handle: Arc::new(handle), listening: Mutex::default() };
        server.listen(listener);
        server
    }

    /// Its host and port.
    pub fn at(&self) -> &str {
        &self.at
    }

    /// Comes back after it went down.
    pub fn up(&self) {
        let begun = Instant::now();
        let listener = loop {
            match TcpListener::bind(&self.at) {
                Ok(listener) => break listener,
                Err(why) => assert!(begun.elapsed() < Duration::from_secs(60), "{why}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.listen(listener);
    }

    fn listen(&self, listener: TcpListener) {
        let over = Arc::new(AtomicBool::new(false));
        let (ended, handle) = (over.clone(), self.handle.clone());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let handle = handle.clone();
                std::thread::spawn(move || {
                    let mut caller = Caller(stream);
                    if let Some(asked) = read(&mut caller.0) {
                        handle(asked, &mut caller);
                    }
                });
            }
        });
        *self.listening.lock().unwrap() = Some((over, thread));
    }

    /// Takes no connections any more.
    pub fn down(&self) {
        if let Some((over, thread)) = self.listening.lock().unwrap().take() {
            over.store(true, Ordering::Relaxed);
            let _ = TcpStream::connect(&self.at);
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.down();
    }
}
