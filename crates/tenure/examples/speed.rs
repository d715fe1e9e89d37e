//! measure
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tenure::core::requests::{Lease, Push, PushAnswer, Settle};
use tenure::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
fn cpu() -> f64 { let s=std::fs::read_to_string("/proc/self/stat").unwrap(); let f:Vec<&str>=s.rsplit(')').next().unwrap().split_whitespace().collect(); (f[11].parse::<f64>().unwrap()+f[12].parse::<f64>().unwrap())/100.0 }
async fn server(port: u16) {
    let job = r#"{"id":"job_01ARZ3NDEKTSV4RRFFQ69G5FAV","queue":"q","kind":"","state":"running","payload":{"n":1},"priority":0,"group":null,"needs":[],"attempt":1,"lost":0,"run_at":"2026-12-01T09:55:00.000000Z","created_at":"2026-12-01T09:55:00.000000Z","started_at":null,"finished_at":null,"expires_at":null,"result":null,"error":null,"errors":[],"progress":null,"unique":null,"labels":{},"lease":null,"cancel_requested":false,"retry":{"max_attempts":20,"max_lost":3,"backoff":{"kind":"exponential","base":"1s","max":"1h","jitter":true}},"timeout":null,"retain":null}"#;
    let push = format!("[{}]", job.replace(r#""timeout":null"#, r#""timeout":null,"duplicate":false"#));
    let lease = format!(r#"{{"leases":[{{"lease":"l1","fence":7,"holder":"w1","granted_at":"2026-12-01T09:55:00.000000Z","expires_at":"2026-12-01T09:55:30.000000Z","deadline":null,"job":{job},"resources":[],"limits":[]}}]}}"#);
    let settle = r#"{"settled":[{"lease":"l1","ok":true,"state":"succeeded"}]}"#.to_string();
    let all: Arc<Vec<Vec<u8>>> = Arc::new([push, lease, settle].iter().map(|b| format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{b}", b.len()).into_bytes()).collect());
    let l = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    loop {
        let (mut s, _) = l.accept().await.unwrap(); s.set_nodelay(true).unwrap();
        let all = all.clone();
        tokio::spawn(async move {
            let mut buf = vec![0u8; 65536];
            loop {
                let n = match s.read(&mut buf).await { Ok(n) if n > 0 => n, _ => return };
                let t = &buf[..n.min(40)];
                let w = |x: &[u8]| t.windows(x.len()).any(|y| y == x);
                let a = if w(b"/settle") { 2 } else if w(b"/leases") { 1 } else { 0 };
                if s.write_all(&all[a]).await.is_err() { return }
            }
        });
    }
}
fn main() {
    let mode = std::env::args().nth(1).unwrap();
    if mode == "serve" {
        let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        rt.block_on(server(7999));
        return;
    }
    let rt = if mode == "one" { tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap() } else { tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap() };
    rt.block_on(async {
        let StoreUrl::Server(url) = "http://127.0.0.1:7999".parse().unwrap() else { panic!() };
        let e: Arc<dyn Engine> = Arc::new(Remote::open(&url, None).unwrap());
        let e = Client::new(e, Namespace::main());
        let n = Arc::new(AtomicU64::new(0));
        let q = QueueName::parse("q").unwrap();
        for _ in 0..64 { let (e, n, q) = (e.clone(), n.clone(), q.clone()); tokio::spawn(async move { loop {
            let mut j = NewJob::new(q.clone()); j.payload = Json::of(&1);
            e.run(Push { jobs: vec![j], answer: PushAnswer::Ids }).await.unwrap();
            let mut l = Lease::jobs(vec![q.clone()], 1); l.worker = ids::this_process().clone();
            let g = e.run(l).await.unwrap();
            e.run(Settle { settle: vec![SettleOutcome::succeeded().of(g.leases[0].lease.clone().unwrap())] }).await.unwrap();
            n.fetch_add(1, Ordering::Relaxed);
        } }); }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (a, c, t) = (n.load(Ordering::Relaxed), cpu(), Instant::now());
        tokio::time::sleep(Duration::from_secs(5)).await;
        let d = (n.load(Ordering::Relaxed) - a) as f64; let s = t.elapsed().as_secs_f64();
        println!("{:.0} lifecycles/s, client cpu {:.2} cores, {:.1} us per lifecycle", d / s, (cpu() - c) / s, (cpu() - c) / d * 1e6);
    });
    std::process::exit(0);
}
