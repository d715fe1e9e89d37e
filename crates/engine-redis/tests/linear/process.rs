//! One process of the histories: this program, started again. Its threads call by two engines, one of them
//! over a proxy that cuts its connections at random.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenure_engine::Engine;
use tenure_engine_redis::link::Address;
use tenure_engine_redis::{Options, RedisEngine};
use tenure_testkit::Dice;
use tokio::runtime::Runtime;

use crate::client::{Client, Object, Process};
use crate::proxy::Proxy;

const NAME: &str = "TENURE_LINEAR_NAME";
const PORT: &str = "TENURE_LINEAR_PORT";
const FILE: &str = "TENURE_LINEAR_FILE";
const HISTORY: &str = "TENURE_LINEAR_HISTORY";
const SEED: &str = "TENURE_LINEAR_SEED";
const MS: &str = "TENURE_LINEAR_MS";

const THREADS: u64 = 4;
/// Connections are cut after so long, at least and at most.
const CUT_MS: (u64, u64) = (50, 400);

/// What a process is told.
#[derive(Clone, Copy)]
pub struct Told {
    pub port: u16,
    /// The number of the history: its objects are named by it.
    pub history: u64,
    pub seed: u64,
    pub lasts: Duration,
}

/// Starts a process that writes down what it does in a file of its name.
pub fn start(name: &str, folder: &Path, told: Told) -> Child {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command.args(["one_process_of_the_histories", "--exact", "--ignored", "--nocapture"]);
    command.env(NAME, name).env(FILE, folder.join(name)).env(PORT, told.port.to_string());
    command.env(HISTORY, told.history.to_string()).env(SEED, told.seed.to_string());
    command.env(MS, told.lasts.as_millis().to_string());
    // It ends when this pipe is closed: no process outlives the test.
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command.spawn().expect("this program can be started again")
}

/// Runs as the process that the environment says; as none it returns at once.
pub fn run() {
    let var = |name| std::env::var(name).ok();
    let number = |name| var(name)?.parse::<u64>().ok();
    let (Some(name), Some(file)) = (var(NAME), var(FILE)) else { return };
    let (Some(port), Some(history), Some(seed), Some(ms)) =
        (number(PORT), number(HISTORY), number(SEED), number(MS))
    else {
        return;
    };
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let file = File::options().create_new(true).append(true).open(file);
    let until = Instant::now() + Duration::from_millis(ms);
    let process = Process::new(file.expect("a file of its own"), until);
    let runtime = Runtime::new().expect("a runtime");
    let port = u16::try_from(port).expect("a port");
    let (direct, cut) = runtime.block_on(async {
        let proxy = Proxy::to(port).await;
        let engines = (open(port), open(proxy.port));
        tokio::spawn(cuts(proxy, Dice(seed ^ 0x5555)));
        engines
    });
    let (process, objects) = (Arc::new(process), Object::all(history));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let client = Client {
                process: process.clone(),
                engine: if thread % 2 == 0 { direct.clone() } else { cut.clone() },
                is_passed_on: false,
                name: format!("{name}.{thread}"),
                dice: Dice(seed.wrapping_add(thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
                made: 0,
            };
            let (runtime, objects) = (runtime.handle(), &objects);
            scope.spawn(move || runtime.block_on(client.run(objects)));
        }
    });
}

fn open(port: u16) -> Arc<dyn Engine> {
    let url = format!("redis://127.0.0.1:{port}?forgets=never");
    let address = Address::parse(&url).expect("an address");
    Arc::new(RedisEngine::open(Options::new(address)).expect("an engine can be opened"))
}

async fn cuts(proxy: Proxy, mut dice: Dice) {
    loop {
        let (least, most) = CUT_MS;
        tokio::time::sleep(Duration::from_millis(least + dice.below(most - least))).await;
        proxy.cut();
    }
}
