//! Every rule of the suite, on this engine over one server: each sentence has a server of its own.

use std::sync::{Arc, Mutex};

use tenure_conformance::{Bench, Capabilities, Factory, MovedClock, Store, Task};
use tenure_core::names::Namespace;
use tenure_engine::Engine;
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tenure_testkit::TestClock;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

/// The engine that is open now, for those who hold it only as an `Engine`.
type Open = Arc<Mutex<Arc<RedisEngine>>>;

struct Single;

struct Here {
    server: RedisServer,
    clock: Arc<TestClock>,
    open: Open,
}

async fn open(server: &RedisServer, clock: &Arc<TestClock>) -> Arc<RedisEngine> {
    let address = Address::parse(&server.url()).expect("the address of the fixture is one");
    // A kill takes nothing from this server: what is learnt after a loss is tested elsewhere.
    let options = Options { forgets_never: true, ..Options::testing(address) };
    let engine = RedisEngine::open(options).expect("an engine can be opened");
    let set = engine.testing_set_clock(&**clock, &[Namespace::main()]).await;
    set.expect("the clock can be set");
    Arc::new(engine)
}

impl Factory for Single {
    fn open(&self) -> Task<'_, Bench> {
        Box::pin(async {
            if !wanted() {
                // A sentence cannot be left out, but the process of all of them can end here; why has
                // been said.
                std::process::exit(0);
            }
            let (server, clock) =
                (RedisServer::start(Aof::Always, &[]), Arc::new(TestClock::default()));
            let engine = open(&server, &clock).await;
            let now_open = Arc::new(Mutex::new(engine.clone()));
            let (open_now, moved) = (now_open.clone(), clock.clone());
            let control = MovedClock::new(clock.clone(), move || {
                let engine = open_now.lock().expect("nobody panics with it").clone();
                let clock = moved.clone();
                Box::pin(async move {
                    let set = engine.testing_set_clock(&*clock, &[Namespace::main()]).await;
                    set.expect("the clock can be set");
                })
            });
            let can = Capabilities { reopen: true, clock_back: true, crowd: true, gauges: true };
            let store = Here { server, clock, open: now_open };
            Bench::new(engine, Arc::new(control), can, Box::new(store))
        })
    }
}

impl Store for Here {
    fn reopen(&mut self, old: Arc<dyn Engine>) -> Task<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            drop(old);
            // Who waited is told by the end of its engine; then the server crashes.
            self.server.kill();
            self.server.restart();
            let engine = open(&self.server, &self.clock).await;
            *self.open.lock().expect("nobody panics with it") = engine.clone();
            engine as Arc<dyn Engine>
        })
    }
}

tenure_conformance::conformance_tests!(Single);
