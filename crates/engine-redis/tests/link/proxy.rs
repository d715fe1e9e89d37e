//! A proxy of the test's own, between the link and its server: it can hold back every byte, as a
//! network does that drops packets: no connection is closed, nothing comes any more. And it can spoil
//! what the server answers, as a proxy does that has lost count.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Whether bytes pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passing {
    /// They do.
    All,
    /// What is open passes nothing any more, also not later; what comes new passes.
    NewOnly,
    /// On one connection nothing passes any more, also not later: the one to the server that has this port there.
    AllBut(u16),
    /// All do but those of published messages: the connections live, and answer.
    NoMessages,
    /// None do.
    Nothing,
}

/// What becomes of the next bytes that come from the server, on one connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Spoiling {
    /// They come as they are.
    Nothing,
    /// They come twice.
    Twice,
    /// The first so many are missing.
    Without(usize),
    /// These come before them.
    Behind(&'static [u8]),
    /// These come at once, whether anything else comes or not.
    Unasked(&'static [u8]),
}

/// The proxy; it ends when this is dropped.
pub struct Proxy {
    /// Where it listens.
    pub port: u16,
    passing: watch::Sender<(Passing, usize)>,
    cuts: watch::Sender<u64>,
    spoiling: Arc<watch::Sender<Spoiling>>,
    /// Connections that it ever took.
    pub taken: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// To this port of this machine.
    pub async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let (passing, seen) = watch::channel((Passing::All, 0));
        let taken = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        let there = SocketAddr::from(([127, 0, 0, 1], server));
        let cuts = watch::Sender::new(0);
        let spoiling = Arc::new(watch::Sender::new(Spoiling::Nothing));
        let spoils = spoiling.clone();
        tasks.spawn(accept(listener, there, seen, cuts.subscribe(), spoils, taken.clone()));
        Proxy { port, passing, cuts, spoiling, taken, _tasks: tasks }
    }

    /// The address of the server behind it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// From now on.
    pub fn pass(&self, passing: Passing) {
        let taken = self.taken.load(Ordering::SeqCst);
        self.passing.send_replace((passing, taken));
    }

    /// Once.
    pub fn spoil(&self, how: Spoiling) {
        self.spoiling.send_replace(how);
    }

    /// Closes all that is open: what is on its way to the server may arrive, and its answer does not.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

async fn accept(
    listener: TcpListener,
    there: SocketAddr,
    passing: watch::Receiver<(Passing, usize)>,
    cuts: watch::Receiver<u64>,
    spoils: Arc<watch::Sender<Spoiling>>,
    taken: Arc<AtomicUsize>,
) {
    let mut pipes = JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        let number = taken.fetch_add(1, Ordering::SeqCst) + 1;
        let (passing, mut cuts, spoils) = (passing.clone(), cuts.clone(), spoils.clone());
        cuts.mark_unchanged();
        pipes.spawn(async move {
            let Ok(far) = TcpStream::connect(there).await else { return };
            let (near_in, near_out) = near.into_split();
            let Ok(port) = far.local_addr().map(|address| address.port()) else { return };
            let (far_in, far_out) = far.into_split();
            // One side that ends ends the other: a server that dies is seen through the proxy.
            tokio::select! {
                () = pipe(near_in, far_out, passing.clone(), (number, port), None) => {}
                () = pipe(far_in, near_out, passing, (number, port), Some(spoils)) => {}
                _ = cuts.changed() => {}
            }
        });
    }
}

async fn pipe(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut passing: watch::Receiver<(Passing, usize)>,
    (number, port): (usize, u16),
    spoils: Option<Arc<watch::Sender<Spoiling>>>,
) {
    let mut bytes = vec![0; 64 * 1024];
    let open = |(passing, taken): &(Passing, usize)| match passing {
        Passing::All | Passing::NoMessages => true,
        Passing::NewOnly => number > *taken,
        Passing::AllBut(one) => port != *one,
        Passing::Nothing => false,
    };
    let mut told = spoils.as_ref().map(|spoils| spoils.subscribe());
    loop {
        let unasked = async {
            match &mut told {
                Some(told) => {
                    let is_unasked = |how: &Spoiling| matches!(how, Spoiling::Unasked(_));
                    told.wait_for(is_unasked).await.is_ok()
                }
                None => std::future::pending().await,
            }
        };
        let read = tokio::select! {
            read = from.read(&mut bytes) => read,
            _ = unasked => Ok(0),
        };
        let spoiling = spoils.as_ref().map(|spoils| spoils.send_replace(Spoiling::Nothing));
        let spoiling = spoiling.unwrap_or(Spoiling::Nothing);
        let Ok(read) = read else { return };
        let is_unasked = matches!(spoiling, Spoiling::Unasked(_));
        if passing.wait_for(&open).await.is_err() || read == 0 && !is_unasked {
            return;
        }
        let come = &bytes[..read];
        let loses = passing.borrow().0 == Passing::NoMessages && spoils.is_some();
        // Both `message` and `smessage`.
        if loses && come.windows(9).any(|part| part == b"message\r\n") {
            continue;
        }
        let come = match spoiling {
            Spoiling::Nothing => come.to_vec(),
            Spoiling::Twice => [come, come].concat(),
            Spoiling::Without(first) => come[first.min(read)..].to_vec(),
            Spoiling::Behind(first) | Spoiling::Unasked(first) => [first, come].concat(),
        };
        if to.write_all(&come).await.is_err() {
            return;
        }
    }
}
