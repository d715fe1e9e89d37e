//! beanstalkd, by its text protocol: a connection for each push in flight, and for each job that is handled.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use peers_gauge::{Call, Failed, Payload, Role, Tally, in_bulk, now_us, ready, report, steadily};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Puts that are written at once in bulk, and connections that do so.
const BULK: u64 = 1_000;
const FLIGHT: usize = 4;
/// A priority in the middle, and the seconds that a handler may take.
const PRIORITY: u32 = 1_000;
const TTR_S: u32 = 60;

/// A connection; one command or one bulk at a time.
struct Connection(BufReader<TcpStream>);

impl Connection {
    async fn open(port: u16) -> Result<Self, Failed> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Connection(BufReader::new(stream)))
    }

    async fn line(&mut self) -> Result<String, Failed> {
        let mut line = String::new();
        self.0.read_line(&mut line).await?;
        Ok(line.trim_end().to_owned())
    }

    /// Puts jobs, each with the seconds until it is due, and reads their answers.
    async fn put(&mut self, jobs: &[(u64, Payload)]) -> Result<(), Failed> {
        let mut text = Vec::new();
        for (delay_s, payload) in jobs {
            let payload = serde_json::to_vec(payload)?;
            let head = format!("put {PRIORITY} {delay_s} {TTR_S} {}\r\n", payload.len());
            text.extend_from_slice(head.as_bytes());
            text.extend_from_slice(&payload);
            text.extend_from_slice(b"\r\n");
        }
        self.0.get_mut().write_all(&text).await?;
        for _ in jobs {
            let answer = self.line().await?;
            if !answer.starts_with("INSERTED ") {
                return Err(format!("put: {answer}").into());
            }
        }
        Ok(())
    }

    /// Waits for a job: its id and its payload.
    async fn reserve(&mut self) -> Result<(u64, Payload), Failed> {
        self.0.get_mut().write_all(b"reserve\r\n").await?;
        let answer = self.line().await?;
        let mut words = answer.strip_prefix("RESERVED ").ok_or("no job")?.split(' ');
        let id = words.next().ok_or("no id")?.parse()?;
        let bytes: usize = words.next().ok_or("no length")?.parse()?;
        let mut payload = vec![0; bytes + 2];
        self.0.read_exact(&mut payload).await?;
        Ok((id, serde_json::from_slice(&payload[..bytes])?))
    }

    async fn delete(&mut self, id: u64) -> Result<(), Failed> {
        self.0.get_mut().write_all(format!("delete {id}\r\n").as_bytes()).await?;
        match self.line().await?.as_str() {
            "DELETED" => Ok(()),
            answer => Err(format!("delete: {answer}").into()),
        }
    }
}

/// Connections to this port that wait for a call; more are opened as they are needed.
#[derive(Clone)]
struct Connections(u16, Arc<Mutex<Vec<Connection>>>);

impl Connections {
    async fn put(self, jobs: Vec<(u64, Payload)>) -> Result<(), Failed> {
        let idle = self.1.lock().await.pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(self.0).await?,
        };
        connection.put(&jobs).await?;
        self.1.lock().await.push(connection);
        Ok(())
    }
}

/// Handles jobs, one for each connection. Handlers are spawned as in other systems' workers.
async fn work(call: &Call) -> Result<(), Failed> {
    let tally = Arc::new(match call.role {
        Role::Listen => Tally::timed(call.jobs),
        _ => Tally::new(call.jobs),
    });
    let deleted = Arc::new(AtomicU64::new(0));
    let mut connections = Vec::new();
    for _ in 0..call.concurrency {
        connections.push(Connection::open(call.port).await?);
    }
    if call.role == Role::Listen {
        ready();
    }
    let mut handlers: JoinSet<Result<(), Failed>> = JoinSet::new();
    for mut connection in connections {
        let (tally, deleted) = (tally.clone(), deleted.clone());
        handlers.spawn(async move {
            loop {
                let (id, payload) = connection.reserve().await?;
                tally.handle(&payload);
                connection.delete(id).await?;
                deleted.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let done = async {
        tally.done().await;
        let figures = tally.figures();
        // The last deletes are under way.
        while !figures.contains_key("gave_up") && deleted.load(Ordering::Relaxed) < call.jobs {
            sleep(Duration::from_millis(1)).await;
        }
        figures
    };
    tokio::select! {
        figures = done => report(figures),
        // None of them ends well.
        Some(ended) = handlers.join_next() => ended??,
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let call = Call::read()?;
    let connections = Connections(call.port, Arc::default());
    let begin = now_us();
    let bulk = |due: fn(&Call, u64) -> u64| {
        let (call, connections) = (&call, &connections);
        move |numbers: Range<u64>| {
            let jobs = numbers.map(|n| {
                let wait = due(call, n);
                // Whole seconds, as the protocol has them.
                (wait / 1_000_000, Payload::new(n, begin + wait, "free"))
            });
            connections.clone().put(jobs.collect())
        }
    };
    match call.role {
        Role::Drain | Role::Listen => work(&call).await,
        Role::Push => in_bulk(call.jobs, BULK, FLIGHT, bulk(|_, _| 0)).await,
        Role::Later => in_bulk(call.jobs, BULK, FLIGHT, bulk(Call::due_in_us)).await,
        Role::Single => {
            peers_gauge::one_by_one(&call, |job| connections.clone().put(vec![(0, job)])).await
        }
        Role::Steady => steadily(&call, |job| connections.clone().put(vec![(0, job)])).await,
        _ => Err("beanstalkd cannot do this".into()),
    }
}
