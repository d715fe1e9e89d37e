//! A Redis whose connections have a thread of their own.
//!
//! The engine lives in the runtime in which it is opened. In the runtime of a user's handlers, one that blocks all threads
//! would hold up the connections, and with them the heartbeats of everything that this process holds.

use std::sync::mpsc;
use std::thread;

use tenure_engine::{AroundEngine, Engine};
use tenure_engine_redis::link::OpenError;
use tenure_engine_redis::{Options, RedisEngine};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// See the module. Its thread ends when it is dropped.
pub(crate) struct DrivenRedis {
    engine: RedisEngine,
    /// Dropped after the engine, by which the thread ends.
    _thread: oneshot::Sender<()>,
}

impl DrivenRedis {
    /// Opens it; nothing is asked yet.
    pub(crate) fn open(options: Options) -> Result<Self, OpenError> {
        let (ends, ended) = oneshot::channel::<()>();
        let (tell, told) = mpsc::sync_channel::<Option<Handle>>(1);
        let drive = move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let handle = runtime.as_ref().ok().map(|runtime| runtime.handle().clone());
            // The opener waits for this.
            let _ = tell.send(handle);
            if let Ok(runtime) = runtime {
                // That the sender is gone is what is waited for.
                let _ = runtime.block_on(ended);
            }
        };
        let thread = thread::Builder::new().name("tenure-redis".to_owned()).spawn(drive);
        thread.map_err(|_| OpenError::NoRuntime)?;
        let handle = told.recv().ok().flatten().ok_or(OpenError::NoRuntime)?;
        let _inside = handle.enter();
        Ok(DrivenRedis { engine: RedisEngine::open(options)?, _thread: ends })
    }

    /// The engine.
    pub(crate) fn engine(&self) -> &RedisEngine {
        &self.engine
    }
}

impl AroundEngine for DrivenRedis {
    fn inner(&self) -> &dyn Engine {
        &self.engine
    }
}
