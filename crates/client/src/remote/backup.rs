//! Fetches a backup of the whole store from a server, a chunk at a time.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Method;
use hyper::body::Incoming;
use tenure_core::bounds::BACKUP_SILENCE_US_MAX;
use tenure_core::requests::Effect;
use tenure_engine_api::{CallError, Fault};
use tokio::time::timeout;

use super::servers::{CalledServer, TriedServers};
use super::wire::{NotBegun, UsedConnection};
use super::{LONG_ANSWER_MAX, Remote, RemoteInner, answer, request_to};
use crate::token_bounds;
use crate::url::ServerUrl;

/// Where a server sends a backup.
const PATH: &str = "/v1/backup";

/// The longest silence of a server. Its disk may stall; a server that is gone must not block the client.
const FRAME_MAX: Duration = Duration::from_micros(BACKUP_SILENCE_US_MAX);

/// A backup that a server sends. Dropping it ends the connection, and the server stops reading for it.
pub struct BackupStream {
    body: Incoming,
    /// Dropped behind the body.
    _connection: UsedConnection<Full<Bytes>>,
    /// The server, for messages.
    place: String,
}

impl BackupStream {
    /// The next bytes; `None` behind the last ones of a backup that the server sent whole. Its receiver must take them
    /// without long pauses: a server gives up a reader that takes nothing for half a minute.
    ///
    /// # Errors
    /// The connection broke, the server sent nothing for a minute, or it ended the backup early: what was received is no
    /// backup.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        let broke_off = |place: &str, why: &dyn std::fmt::Display| {
            Fault::Unavailable(format!("{place}: the backup broke off: {why}"))
        };
        loop {
            let next = timeout(FRAME_MAX, self.body.frame()).await;
            let next = next.map_err(|_| {
                broke_off(&self.place, &format_args!("nothing came for {FRAME_MAX:?}"))
            })?;
            let Some(frame) = next else { return Ok(None) };
            let frame = frame.map_err(|why| broke_off(&self.place, &why))?;
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
    }
}

impl std::fmt::Debug for BackupStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BackupStream({})", self.place)
    }
}

impl Remote {
    /// Begins a backup of the whole store, with all namespaces and the data of resources. A server that follows the
    /// store sends it from its own rows.
    ///
    /// # Errors
    /// No server can be reached or has the store, the server refuses the caller, or it sends another backup just now.
    pub async fn backup(&self) -> Result<BackupStream, CallError> {
        token_bounds::waited_for(async || self.begin().await, token_bounds::wait_after_error).await
    }

    async fn begin(&self) -> Result<BackupStream, CallError> {
        let (inner, mut tried) = (&self.inner, TriedServers::default());
        let mut last = Fault::Unavailable("no server was found".to_owned()).into();
        while let Some(server) = inner.servers.next(&mut tried).await? {
            match inner.begin_backup(&server).await {
                Begun::Stream(stream) => return Ok(stream),
                Begun::Refused(why) => return Err(why),
                Begun::Elsewhere(why) => last = why,
            }
        }
        Err(last)
    }
}

/// The answer of one server.
enum Begun {
    Stream(BackupStream),
    Refused(CallError),
    /// Another server of the store may answer.
    Elsewhere(CallError),
}

impl RemoteInner {
    async fn begin_backup(&self, server: &ServerUrl) -> Begun {
        let away = |why: String| {
            self.note(Some(why.clone()));
            self.servers.choice().lost(server, Instant::now());
            Begun::Elsewhere(Fault::Unavailable(why).into())
        };
        let called = match self.servers.called(server) {
            Ok(called) => called,
            Err(why) => return away(why),
        };
        let place = server.authority();
        match self.ask_for_backup(&called, place).await {
            Ok(Begun::Elsewhere(why)) => {
                self.servers.choice().leave(server);
                Begun::Elsewhere(why)
            }
            Ok(begun) => begun,
            Err(why) => away(why),
        }
    }

    async fn ask_for_backup(&self, called: &CalledServer, place: String) -> Result<Begun, String> {
        let http = match request_to(called, &self.shown, (Method::GET, PATH), Bytes::new()) {
            Ok(http) => http,
            Err(why) => return Ok(Begun::Refused(why)),
        };
        let begun = called.wire.begin(http, LONG_ANSWER_MAX).await.map_err(|why| match why {
            NotBegun::NotSent { why, .. } => why,
            NotBegun::Lost { why, .. } => format!("{place}: {why}"),
        })?;
        self.note(None);
        if begun.response.status().is_success() {
            let (_, body, _connection) = begun.into_parts();
            return Ok(Begun::Stream(BackupStream { body, _connection, place }));
        }
        let heard = called.wire.hear(begun, LONG_ANSWER_MAX).await?;
        let why = answer::refused(&heard, Effect::Reads, &place);
        if answer::leads_elsewhere(&heard) {
            Ok(Begun::Elsewhere(why))
        } else {
            Ok(Begun::Refused(why))
        }
    }
}
