//! The connection between a member and Redis, which a test may cut.

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A proxy in front of Redis. It ends when this is dropped.
pub struct Line {
    port: u16,
    is_whole: watch::Sender<bool>,
    _accepts: JoinSet<()>,
}

impl Line {
    /// To this port of this machine.
    pub fn to(runtime: &Runtime, server: u16) -> Line {
        let _inside = runtime.enter();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let is_whole = watch::Sender::new(true);
        let (seen, mut accepts) = (is_whole.subscribe(), JoinSet::new());
        accepts.spawn(async move {
            let mut passes = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                passes.spawn(pass(near, server, seen.clone()));
            }
        });
        Line { port, is_whole, _accepts: accepts }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Lets no byte through and closes no connection, as a network that drops all packets.
    pub fn cut(&self) {
        self.is_whole.send_replace(false);
    }

    /// Lets new connections through; closes those from before the cut.
    pub fn mend(&self) {
        self.is_whole.send_replace(true);
    }
}

async fn pass(mut near: TcpStream, server: u16, mut is_whole: watch::Receiver<bool>) {
    if is_whole.wait_for(|is_whole| *is_whole).await.is_err() {
        return;
    }
    let Ok(mut far) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let was_cut = tokio::select! {
        // The cut is checked first: bytes that are written after it do not pass.
        biased;
        cut = is_whole.wait_for(|is_whole| !is_whole) => cut.is_ok(),
        _ = copy_bidirectional(&mut near, &mut far) => false,
    };
    if was_cut {
        let _ = is_whole.wait_for(|is_whole| *is_whole).await;
    }
}
