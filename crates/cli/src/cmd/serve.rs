//! `tenure serve`: a server on a store, until a signal or a fatal error ends it.
//!
//! The first SIGTERM or SIGINT drains, a second one ends it at once. SIGHUP makes it read its files again (see
//! [`renewal`]). stderr has its log (see [`logging`]), which never shows the content of a job, a resource or a token.

mod encryption;
mod health;
mod history;
mod listener;
mod memory;
mod metrics_port;
mod otlp;
mod past;
mod renewal;
mod service_manager;
mod start;
mod store;
mod token_file;
mod trail;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tenure_core::gauge::GaugeHosts;
use tenure_dashboard::{Dashboard, History};
use tenure_engine::{Fatal, Recovery};
use tenure_engine_api::Engine;
use tenure_server::metrics::{CallCounts, CountingEngine, Metrics};
use tenure_server::{
    Config, Deps, ForwardingEngine, Leadership, MetricsDoor, OwnBackups, Pages, follow_leadership,
    route_names,
};
use tokio::sync::{Notify, watch};

use self::history::CountedHistory;
use self::listener::{ListenTokens, addresses, bind};
use self::metrics_port::MetricsPort;
use self::otlp::Otlp;
use self::renewal::{Renewal, StartTerminal};
use self::service_manager::ServiceManager;
pub use self::store::redis_of;
use self::store::{ServePlace, ServedStore};
use crate::args::serve::ServeArgs;
use crate::child::signals::Signals;
use crate::exit::{BUG, Failure, by_signal};
use crate::logging::{self, LogFormat};
use crate::output::Output;
use crate::settings::effective::ServerToken;
use crate::settings::layers::Origin;

/// After the engine stopped, its last answers have this long to leave.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Serves until a signal. `accept_loss`: a damaged folder is opened without what it lost.
pub async fn run(args: ServeArgs, accept_loss: bool) -> Result<(), Failure> {
    let token = args.settings.token(args.token_file.as_deref(), args.token_command.as_deref())?;
    if args.print_config {
        let origin = token.as_ref().map(|(origin, _)| origin);
        return Output { json: false }.text(&args.settings.as_toml(origin));
    }
    let format = args.log_format.unwrap_or_else(LogFormat::usual);
    logging::start(args.log_level.clone(), format);
    serve(args, token, accept_loss, format).await.map_err(|why| logging::ended(why, format))
}

async fn serve(
    args: ServeArgs,
    token: Option<(Origin, ServerToken)>,
    accept_loss: bool,
    format: LogFormat,
) -> Result<(), Failure> {
    let mut renewal = Renewal::default();
    let (token_from, token) = token.unzip();
    let tokens = token_file::read(token, &args, &mut renewal)?;
    let of_metrics = args.settings.metrics_token(
        args.metrics_token_file.as_deref(),
        tokens.are_asked_for() || args.metrics_listen.is_some(),
    )?;
    let metrics_tokens = token_file::read_of_metrics(of_metrics, &mut renewal)?;
    if let Some(warning) = args.settings.warning() {
        tracing::warn!("{warning}");
    }
    let tls = encryption::of(&args, &mut renewal)?;
    let otlp = Otlp::of(args.otlp.as_deref())?;
    let place = ServePlace::of(&args)?;
    let trail_place = trail::place(&args, &place)?;
    let has_listed = args.tokens.is_some();
    let guard = ListenTokens { whole: &tokens.whole(), has_listed };
    let addresses = addresses("--listen", &args.listen, guard)?;
    let guards = if tokens.are_asked_for() { &tokens } else { &metrics_tokens };
    let guard = ListenTokens { whole: &guards.whole(), has_listed };
    let metrics_port = MetricsPort::of(args.metrics_listen.as_deref(), guard)?;
    let shown = place.to_string();
    let (terminal, renew) = (StartTerminal::of_this_process(), Notify::new());
    let mut signals = Signals::of_a_server()?;
    let listener = bind("--listen", &args.listen, &addresses)?;
    let mut manager = ServiceManager::of_environment();
    let (tell, mut fatal) = watch::channel(None);
    let scheme = if tls.is_some() { "https" } else { "http" };
    let advertised = place.advertised(&args, listener.local_addr(), tls.is_some()).await?;
    let opened = place.open(&args, accept_loss, advertised.clone(), tell).await?;
    // After the store: its lock keeps a second server away from a trail in its folder, too.
    let server = match (advertised.is_empty(), listener.local_addr()) {
        (true, Ok(at)) => at.to_string(),
        _ => advertised,
    };
    let trail = trail::open(trail_place.clone(), &args, server);
    // Only now: a reader of this line may call.
    if let Ok(at) = listener.local_addr() {
        logging::listening(scheme, at, format);
        start::tell(&args, &shown, at, token_from.as_ref(), trail_place.as_ref());
        manager.ready(&format!("serves {shown} on {at}"));
    }
    if let Some(Recovery { jobs, took }) = opened.recovery() {
        tracing::info!(jobs, took_ms = took.as_millis() as u64, "the store is read");
    }
    let (config, moved) = (config(&args), opened.moved());
    let counts = Arc::new(CallCounts::default());
    let engine: Arc<dyn Engine> = Arc::new(CountingEngine::new(opened.engine(), counts.clone()));
    let engine = otlp.around(engine);
    let leadership = match opened.shared() {
        Some(store) => store.leadership(),
        None => Leadership::always(engine.clone()),
    };
    let leadership = match opened.own() {
        Some(own) => leadership.backed_up_by(Arc::new(OwnBackups(own.clone()))),
        None => leadership,
    };
    // A call that another server answers is counted there.
    let forwarding: Arc<dyn Engine> = Arc::new(ForwardingEngine::new(leadership.clone()));
    let metrics = Arc::new(Metrics::new(forwarding.clone(), counts.clone(), route_names()));
    let sending = otlp.start(&metrics);
    let pages = (!args.no_dashboard).then(|| {
        let for_pages = ForwardingEngine::for_pages(leadership.clone());
        let history = Some(Arc::new(CountedHistory(counts.clone())) as Arc<dyn History>);
        let pages =
            Dashboard::new(for_pages, tokens.clone(), moved.clone(), history, trail.clone());
        Arc::new(pages) as Arc<dyn Pages>
    });
    let gauge_hosts = GaugeHosts::allowing(args.gauge_allow);
    let deps = Deps {
        leadership: leadership.clone(),
        tokens,
        tls,
        config,
        gauge_hosts: gauge_hosts.clone(),
        moved,
        pages,
        metrics: Some(MetricsDoor { metrics, tokens: metrics_tokens, alone: false }),
        trail: trail.clone(),
    };
    let metrics_port = metrics_port.serve(deps.clone());
    let (drain, drained) = watch::channel(false);
    let leaving = opened.shared().cloned();
    let end = async move {
        let mut drained = drained;
        // The sender is gone: that is an end too.
        let _ = drained.wait_for(|is_draining| *is_draining).await;
        // Others serve the store as soon as this server ends.
        if let Some(store) = leaving {
            tokio::task::spawn_blocking(move || store.close());
        }
    };
    let served = tenure_server::run(listener, deps, end);
    let reread = |reread| {
        trail.write(trail::line_of(reread));
    };
    let ended = tokio::select! {
        report = served => {
            tracing::info!(answered = report.answered, cut = report.cut, "stopped");
            Ok(())
        }
        signal = second(&mut signals, &terminal, &renew, &drain, &manager) => {
            tracing::warn!("stopped at once by a second signal");
            Err(Failure::silent(by_signal(signal)))
        }
        why = stopped(&mut fatal) => Err(failure(&why)),
        never = metrics_port => match never {},
        never = renewal.run(&renew, &manager, reread) => match never {},
        never = trail.keep() => match never {},
        never = follow_leadership(leadership, trail.clone()) => match never {},
        never = health::tell(opened.engine(), &manager) => match never {},
        never = history::watch(forwarding.clone(), counts.clone()), if !args.no_dashboard => match never {},
        never = past::fill_in(forwarding, counts), if !args.no_dashboard => match never {},
        never = read_gauges(&opened, gauge_hosts) => match never {},
        never = tell_place(&opened, engine) => match never {},
    };
    sending.end().await;
    let closed = tokio::task::spawn_blocking(move || {
        opened.close();
        trail.close();
    });
    closed.await.map_err(|why| Failure::bug(format!("the store was not closed: {why}")))?;
    let late = fatal.borrow().as_ref().map(failure);
    match (ended, late) {
        (Ok(()), Some(failure)) => Err(failure),
        (ended, _) => ended,
    }
}

/// Reads the gauges that this server's ticks claim, also while it drains: running jobs still hold permits.
async fn read_gauges(opened: &ServedStore, hosts: GaugeHosts) -> Infallible {
    if let Some(store) = opened.shared() {
        return store.read_gauges(hosts).await;
    }
    tenure::read_gauges(opened.engine(), hosts).await;
    std::future::pending().await
}

/// Tells the server where calls are answered, each time that changes.
async fn tell_place(opened: &ServedStore, engine: Arc<dyn Engine>) -> Infallible {
    match opened.shared() {
        Some(store) => store.tell(engine).await,
        None => std::future::pending().await,
    }
}

fn config(args: &ServeArgs) -> Config {
    Config {
        drain_max: args.drain_max(),
        in_flight_bytes_max: usize::try_from(memory::of(args)).unwrap_or(usize::MAX),
        ..Config::default()
    }
}

/// Starts the drain at the first signal that ends the server; returns the second.
async fn second(
    signals: &mut Signals,
    terminal: &StartTerminal,
    renew: &Notify,
    drain: &watch::Sender<bool>,
    manager: &ServiceManager,
) -> i32 {
    let first = ending(signals, terminal, renew).await;
    tracing::info!(signal = first.as_str(), "ending on a signal");
    manager.stopping();
    drain.send_replace(true);
    ending(signals, terminal, renew).await as i32
}

/// The next signal that ends the server. SIGHUP makes it read its files again, unless its terminal was closed.
async fn ending(signals: &mut Signals, terminal: &StartTerminal, renew: &Notify) -> Signal {
    loop {
        match signals.next().await {
            Signal::SIGHUP if !terminal.is_gone().await => renew.notify_one(),
            other => return other,
        }
    }
}

/// Returns when the engine had to stop.
async fn stopped(fatal: &mut watch::Receiver<Option<Fatal>>) -> Fatal {
    let why = match fatal.wait_for(Option::is_some).await {
        Ok(why) => why.clone(),
        Err(_) => None,
    };
    match why {
        Some(why) => {
            tokio::time::sleep(LAST_WORDS).await;
            why
        }
        // The engine lives longer than this waits; it would have reported.
        None => std::future::pending().await,
    }
}

fn failure(why: &Fatal) -> Failure {
    Failure::new(u8::try_from(why.exit_code()).unwrap_or(BUG), why.to_string())
}
