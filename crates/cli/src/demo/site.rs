//! The demo's web site, on loopback: it serves pages slowly to requests with an account, counts what it sees, and bans
//! one account in the middle.
//!
//! One request per connection, HTTP/1.1 as far as it needs. It drops a request whose client is gone,
//! and knows nothing of Tenure.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::witness::{Fetch, FetchEnd, Witness};

/// Longest request head, in bytes.
const HEAD_MAX: usize = 8 * 1024;
/// Time of the fastest page.
const FASTEST_MS: u64 = 100;
/// The slowest page takes this much longer.
const SPREAD_MS: u64 = 300;

/// When the site bans, and the callbacks on its events.
pub struct Temper {
    /// The account of the next request is banned after this many pages.
    pub ban_after: u64,
    /// Called right after every page served, with the worker that got it.
    pub served: Box<dyn Fn(&str) + Send + Sync>,
    /// Called with the account that was banned.
    pub banned: Box<dyn Fn(&str) + Send + Sync>,
}

/// The site; it is gone when this is dropped.
pub struct Site {
    address: SocketAddr,
    inner: Arc<SiteInner>,
    accepting: JoinHandle<()>,
}

struct SiteInner {
    witness: Mutex<Witness>,
    banned: Mutex<Option<String>>,
    temper: Temper,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Site {
    /// Opens it on a free port of loopback.
    pub async fn open(temper: Temper) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let inner =
            Arc::new(SiteInner { witness: Mutex::default(), banned: Mutex::default(), temper });
        let site = inner.clone();
        let accepting = tokio::spawn(async move {
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    let site = site.clone();
                    // A client that breaks off is counted in there, and is nobody's error.
                    tokio::spawn(async move { site.serve(stream).await.ok() });
                }
            }
        });
        Ok(Site { address, inner, accepting })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
    /// Its counts until now.
    pub fn seen(&self) -> Witness {
        lock(&self.inner.witness).clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl SiteInner {
    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let begun = Instant::now();
        let head = read_head(&mut stream).await?;
        let Some(fetch) = parse(&head) else {
            return answer(&mut stream, "401 Unauthorized", "{\"error\":\"no account\"}").await;
        };
        let banned = self.is_banned(&fetch.account);
        let (page, worker) = (fetch.page.clone(), fetch.worker.clone());
        let running = RunningSite::begin(self, fetch);
        let number = running.number;
        if banned {
            running.end(FetchEnd::Banned);
            return answer(&mut stream, "403 Forbidden", "{\"error\":\"banned\"}").await;
        }
        tokio::select! {
            () = sleep_until(begun + takes(&page)) => {}
            () = gone(&mut stream) => {
                running.end(FetchEnd::Gone);
                return Ok(());
            }
        }
        // It is over when the site has done its work: the client may send its next request before this task runs on.
        running.end(FetchEnd::Answered);
        let done = answer(&mut stream, "200 OK", &format!("{{\"fetch\":{number}}}")).await;
        (self.temper.served)(&worker);
        done
    }

    fn is_banned(&self, account: &str) -> bool {
        let answered = lock(&self.witness).answered;
        let mut banned = lock(&self.banned);
        if banned.is_none() && answered >= self.temper.ban_after {
            *banned = Some(account.to_owned());
            (self.temper.banned)(account);
        }
        banned.as_deref() == Some(account)
    }
}

/// A request that is counted until it is ended, or dropped.
struct RunningSite<'a> {
    site: &'a SiteInner,
    number: u64,
}

impl<'a> RunningSite<'a> {
    fn begin(site: &'a SiteInner, fetch: Fetch) -> Self {
        RunningSite { number: lock(&site.witness).begin(fetch), site }
    }
    fn end(self, end: FetchEnd) {
        lock(&self.site.witness).end(self.number, end);
    }
}

impl Drop for RunningSite<'_> {
    fn drop(&mut self) {
        lock(&self.site.witness).end(self.number, FetchEnd::Gone);
    }
}

/// How long a page takes: always the same for one page.
fn takes(page: &str) -> Duration {
    let hash = page.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Duration::from_millis(FASTEST_MS + (hash >> 32) % (SPREAD_MS + 1))
}

async fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(512);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > HEAD_MAX || stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(head)
}

fn parse(head: &[u8]) -> Option<Fetch> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    let path = lines.next()?.split(' ').nth(1)?;
    let header = |name: &str| {
        let found = text.split("\r\n").skip(1).find_map(|line| {
            line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case(name))
        });
        found.map(|(_, value)| value.trim().to_owned())
    };
    let host = header("host")?;
    Some(Fetch {
        page: format!("{host}{path}"),
        account: header("account")?,
        worker: header("worker").unwrap_or_default(),
        host,
    })
}

/// Returns when the client has closed its side.
async fn gone(stream: &mut TcpStream) {
    let mut more = [0; 64];
    while !matches!(stream.read(&mut more).await, Ok(0) | Err(_)) {}
}

async fn answer(stream: &mut TcpStream, status: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::super::fetch::{Fetched, fetch};
    use super::*;

    async fn site(ban_after: u64) -> Site {
        let served = Box::new(|_: &str| {});
        let banned = Box::new(|_: &str| {});
        Site::open(Temper { ban_after, served, banned }).await.unwrap()
    }

    fn request(page: &str, account: &str) -> Fetch {
        let (host, _) = page.split_once('/').unwrap();
        let own = str::to_owned;
        Fetch { host: own(host), page: own(page), account: own(account), worker: own("w") }
    }

    #[tokio::test]
    async fn requests_that_run_at_once_are_counted_at_once() {
        let site = site(100).await;
        let (one, two) = (request("a.example/1", "ann"), request("a.example/2", "ann"));
        let (one, two) = tokio::join!(fetch(site.address(), &one), fetch(site.address(), &two));
        assert!(matches!((one, two), (Ok(Fetched::Page(_)), Ok(Fetched::Page(_)))));
        let seen = site.seen();
        assert_eq!((seen.most_on_a_host(), seen.most_with_an_account(), seen.answered), (2, 2, 2));
    }

    #[tokio::test]
    async fn a_client_that_is_gone_frees_its_place() {
        let site = site(100).await;
        let ask = request("a.example/1", "ann");
        let running = {
            let (address, ask) = (site.address(), ask.clone());
            tokio::spawn(async move { fetch(address, &ask).await })
        };
        let until = Instant::now() + Duration::from_secs(10);
        while site.seen().most_on_a_host() == 0 && Instant::now() < until {
            tokio::task::yield_now().await;
        }
        running.abort();
        while site.seen().pages["a.example/1"].dropped == 0 && Instant::now() < until {
            tokio::task::yield_now().await;
        }
        fetch(site.address(), &ask).await.unwrap();
        let page = &site.seen().pages["a.example/1"];
        assert_eq!((page.dropped, page.answers.len(), page.at_once.most), (1, 1, 1));
    }

    #[tokio::test]
    async fn an_account_is_banned_in_the_middle_and_stays_so() {
        let site = site(1).await;
        let get = async |account| fetch(site.address(), &request("a.example/1", account)).await;
        assert!(matches!(get("ann").await, Ok(Fetched::Page(_))));
        assert!(matches!(get("bob").await, Ok(Fetched::Banned)));
        assert!(matches!(get("ann").await, Ok(Fetched::Page(_))));
        assert!(matches!(get("bob").await, Ok(Fetched::Banned)));
        assert_eq!(site.seen().banned, [("bob".to_owned(), 2)].into());
    }

    #[test]
    fn without_an_account_there_is_no_page() {
        assert_eq!(parse(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"), None);
        let fetch = parse(b"GET /1 HTTP/1.1\r\nhost: a\r\nAccount: ann\r\n\r\n").unwrap();
        assert_eq!((fetch.page.as_str(), fetch.account.as_str()), ("a/1", "ann"));
    }
}
