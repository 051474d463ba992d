//! The daemon's life: links, privileges, the stack, its services, and an end in order.

mod captures;
mod opening;

use std::future::pending;
use std::io;
use std::net::TcpListener as StdListener;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hopwise_host::{Capture, CaptureError, LinkTeller, Shards};
use hopwise_lab::live::part::{CarriedCounts, PartMessage};
use hopwise_lab::located::Document;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot::{Receiver, channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use opening::{OpenedResources, open, start};

use super::config::{self, NodeConfig};
use super::control::{Request, Response};
use super::counts::Counts;
use super::log_limit::Crowding;
use super::metrics::{self, Sums};
use super::seats::Seats;
use super::services::Services;
use super::snapshot::{CaptureSnapshot, Snapshot};
use super::socks5::{self, AccessRules, SocksServer};
use super::stage::Stage;
use super::unmet;
use super::users::Users;
use super::{confined, descriptors, forward, paths, transparent};
use hopwise_daemon::confine::confine;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::notify;
use hopwise_daemon::privileges::Privileges;
use hopwise_daemon::signals::{self, Ending};
use hopwise_daemon::{control, live_by_the_clock, spawn, talk};

/// Interval at which the links are checked.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The time that the stack has for the last segments when relays have used up theirs.
const LEAST_FOR_STACK: Duration = Duration::from_millis(500);
/// The time that a disk has for the end of a capture.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// The time that tasks of the runtime have for their end.
const LAST_TASKS: Duration = Duration::from_secs(1);

/// The state that the services share.
struct Daemon {
    config: NodeConfig,
    /// File of the configuration.
    document: Document,
    /// The user that the daemon became.
    user: String,
    path: PathBuf,
    shards: Shards,
    capture: Capture,
    /// By shard.
    sums: Vec<Arc<Sums>>,
    counts: Counts,
    services: Services,
    users: Users,
}

pub(super) fn run(
    document: Document,
    config: NodeConfig,
    path: &Path,
    has_trial: bool,
) -> Result<(), Failure> {
    take_priority(has_trial);
    let privileges = Privileges::find(config.user.as_deref());
    let privileges = privileges.map_err(|error| unmet::user(&document, &error))?;
    descriptors::allow(&config);
    // Opened devices have to be removed again, whatever happens between.
    let signals = signals::early(DaemonSignals::new)?;
    config.control.iter().for_each(|control| privileges.make_folder(control));
    privileges.begin().map_err(Failure::during("become the user"))?;
    let opened = open(&config).map_err(|unmet| unmet.failure(&document, &config))?;
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    // Confinement may prevent reading them later.
    let users = Users::of_machine();
    let needs = confined::needs(&config, &opened.links, path);
    let _confined = confine(config.confine, &privileges, &needs)?;
    let OpenedResources { links, control, socks5, metrics, forwards, transparent } = opened;
    let capture = Capture::default();
    let sums: Vec<_> = links.iter().map(|_| Arc::new(Sums::new())).collect();
    let shards = start(&config, links, &capture, &sums)?;
    let (user, path, counts) = (privileges.name(), path.to_owned(), Counts::default());
    let services = Services::new(&config, &forwards);
    let links = LinkTeller::start(shards.stacks().to_vec(), capture.clone());
    let _links = links.map_err(Failure::during("start a thread"))?;
    let daemon = Daemon { config, document, user, path, shards, capture, sums, counts, services, users };
    let daemon = Arc::new(daemon);
    let runtime = runtime(workers)?;
    let serving =
        daemon.serve((signals, has_trial), control.as_ref(), socks5, metrics, (forwards, transparent));
    let ended = runtime.block_on(serving);
    runtime.shutdown_timeout(LAST_TASKS);
    drop(control);
    ended.and_then(|carried| tell(has_trial, carried))
}

fn runtime(workers: usize) -> Result<Runtime, Failure> {
    let runtime = Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    runtime.map_err(Failure::during("start a runtime"))
}

struct DaemonSignals {
    ending: Ending,
    hup: Signal,
}

impl DaemonSignals {
    fn new() -> io::Result<DaemonSignals> {
        Ok(DaemonSignals { ending: Ending::new()?, hup: signal(SignalKind::hangup())? })
    }
}

impl Daemon {
    async fn serve(
        self: &Arc<Self>,
        (mut signals, has_trial): (DaemonSignals, bool),
        control: Option<&control::BoundSocket>,
        socks5: Option<StdListener>,
        metrics: Option<StdListener>,
        bound: (Vec<forward::BoundForward>, Option<transparent::Opened>),
    ) -> Result<CarriedCounts, Failure> {
        let system = Failure::during("serve");
        let (stages, stage) = watch::channel(Stage::Open);
        let mut relays = JoinSet::new();
        let mut helpers = JoinSet::new();
        if let Some(control) = control {
            let listener = control.listener.try_clone().and_then(UnixListener::from_std).map_err(system)?;
            let daemon = Arc::clone(self);
            helpers.spawn(control::serve(listener, move |request| daemon.answer(request)));
        }
        if let (Some(metrics), Some(config)) = (metrics, &self.config.metrics) {
            let listener = TcpListener::from_std(metrics).map_err(system)?;
            let names = config.names.iter().chain([&self.config.node.name]).cloned().collect();
            let daemon = Arc::clone(self);
            helpers.spawn(metrics::serve(listener, names, self.users.clone(), move || {
                metrics::text(&Sums::total(&daemon.sums), &daemon.snapshot(), &daemon.capture.totals())
            }));
        }
        if let (Some(socks5), Some(config)) = (socks5, &self.config.socks5) {
            let listener = TcpListener::from_std(socks5).map_err(system)?;
            if !config.listen.ip().is_loopback() && AccessRules::new(config).is_open() {
                let listen = config.listen;
                tracing::warn!(%listen, "socks5 takes each client that reaches it: set its `users` or `allow`");
            }
            let port = listener.local_addr().map_err(system)?.port();
            if let Some(seats) = self.services.socks5_seats.clone() {
                let server = Arc::new(self.socks5_server(config, seats, port));
                relays.spawn(socks5::serve(server, listener, stage.clone()));
            }
        }
        self.carry(bound, &mut relays, &stage)?;
        self.begin_capture()?;
        let service = notify::ready();
        tracing::info!(node = self.config.node.name, "ready");
        let trial = has_trial.then(begin).transpose()?;
        let ended = self.watch(&mut signals, trial).await;
        // An undecided SYN goes straight on from now on, for a program that is over.
        let carried = self.counts.carried();
        service.ends_within(self.config.stop_within.0 + LEAST_FOR_STACK + LAST_WRITES + LAST_TASKS);
        self.finish(&mut signals, &stages, &mut relays).await;
        helpers.shutdown().await;
        ended.map(|()| carried)
    }

    /// Runs until a signal ends the daemon, or a link is lost.
    async fn watch(&self, signals: &mut DaemonSignals, trial: Option<Receiver<()>>) -> Result<(), Failure> {
        let mut crowding = Crowding::default();
        let trial = ended(trial);
        tokio::pin!(trial);
        loop {
            tokio::select! {
                () = signals.ending.next() => return Ok(()),
                () = &mut trial => return Ok(()),
                _ = signals.hup.recv() => self.reload(),
                () = sleep(LOOK_EVERY) => {
                    let counters = self.shards.counters();
                    // Each stack has just answered.
                    notify::alive();
                    self.tell_of(&mut crowding);
                    if let Some(lost) = counters.into_iter().find(|link| link.is_gone) {
                        let problem = format_args!("the device is gone; whoever removed it also ended this node");
                        return Err(Failure::failed("link lost", format_args!("{}: {problem}", lost.name)));
                    }
                }
            }
        }
    }

    fn tell_of(&self, crowding: &mut Crowding) {
        let bounds = self.services.bounds(&self.shards, &self.counts);
        if let Some(news) = crowding.due(&bounds.gave_way, Instant::now()) {
            tracing::warn!("made room for others: {news}; `hopwise status` shows the bounds");
        }
    }

    /// Relays may finish, then the stack's own connections; another signal cuts that short.
    async fn finish(
        self: &Arc<Self>,
        signals: &mut DaemonSignals,
        stages: &watch::Sender<Stage>,
        relays: &mut JoinSet<usize>,
    ) {
        let within = self.config.stop_within.0;
        let until = Instant::now() + within;
        stages.send_replace(Stage::Finishing);
        tokio::select! {
            _ = timeout(within, async { while relays.join_next().await.is_some() {} }) => {}
            () = signals.ending.next() => {}
        }
        stages.send_replace(Stage::Over);
        let mut cut_off = 0;
        while let Some(served) = relays.join_next().await {
            cut_off += served.unwrap_or(0);
        }
        let left = until.saturating_duration_since(Instant::now()).max(LEAST_FOR_STACK);
        let daemon = Arc::clone(self);
        let stopped = tokio::task::spawn_blocking(move || {
            let stopped = daemon.shards.clone().stop(left);
            // It fails if no capture runs. The end of one is in the log by now.
            let _ = daemon.end_capture();
            stopped
        });
        let Ok(stopped) = timeout(left + LAST_WRITES, stopped).await else {
            tracing::error!("the last packets of a capture could not be written in time");
            return;
        };
        match stopped {
            Ok(stopped) if stopped.reset > 0 || cut_off > 0 => {
                tracing::warn!(clients = cut_off, connections = stopped.reset, "reset at the deadline");
            }
            Ok(_) => tracing::info!("ended in order"),
            Err(error) => tracing::error!(%error, "the stack did not stop"),
        }
    }

    /// Sets new rules for later connections; a refused file changes nothing.
    fn reload(&self) {
        let config = config::load(&self.path).map_err(Failure::from);
        let outcome = config.and_then(|config| {
            // All stacks accept the same rules.
            self.shards.stacks().iter().try_for_each(|stack| {
                let set = stack.with(|_, endpoint| endpoint.set_rules(config.core_rules()));
                set.map_err(Failure::during("set the rules"))
            })?;
            Ok(config.says_the_same_beside_rules(&self.config))
        });
        match outcome {
            Ok(true) => tracing::info!("rules reloaded"),
            Ok(false) => tracing::warn!("rules reloaded; what else has changed in the file takes a restart"),
            Err(failure) => {
                tracing::error!(%failure, accepted = failure.accepted(), "the old rules stay");
            }
        }
    }

    fn socks5_server(&self, config: &config::Socks5, seats: Arc<Seats>, port: u16) -> SocksServer {
        SocksServer {
            shards: self.shards.clone(),
            names: self.services.socks5_names.clone(),
            users: self.users.clone(),
            handshake_within: config.handshake_within.0,
            access: AccessRules::new(config),
            attempts: Default::default(),
            own: socks5::Own::new(&self.config, port),
            idle: config.idle.0,
            seats,
            counts: Arc::clone(&self.counts.socks5),
            relayed: Arc::clone(&self.counts.relayed),
        }
    }

    fn forward_context(&self) -> forward::ForwardContext {
        forward::ForwardContext {
            shards: self.shards.clone(),
            names: self.services.forward_names.clone(),
            users: self.users.clone(),
            relayed: Arc::clone(&self.counts.relayed),
            counts: Arc::clone(&self.counts.forwards),
        }
    }

    /// Starts the forwards, and what carries connections of hosts and other nodes.
    fn carry(
        &self,
        (forwards, opened): (Vec<forward::BoundForward>, Option<transparent::Opened>),
        tasks: &mut JoinSet<usize>,
        stage: &watch::Receiver<Stage>,
    ) -> Result<(), Failure> {
        let context = self.forward_context();
        forwards.into_iter().try_for_each(|bound| forward::start(bound, &context, tasks, stage))?;
        let (Some(opened), Some(seats)) = (opened, self.services.carried_seats.clone()) else {
            return Ok(());
        };
        let counts = (Arc::clone(&self.counts.transparent), Arc::clone(&self.counts.relayed));
        transparent::start(opened, &self.config, (self.shards.clone(), seats), counts, tasks, stage)
    }

    /// Ends the capture and logs the result.
    fn end_capture(&self) -> Result<CaptureSnapshot, CaptureError> {
        let (path, counts) = self.capture.stop()?;
        let ended = captures::snapshot(&path, &counts);
        let summary = ended.summary().join("; ");
        if ended.is_whole() {
            tracing::info!("captured into {summary}");
        } else {
            tracing::warn!("captured, not all of it, into {summary}");
        }
        Ok(ended)
    }

    fn answer(&self, request: Request) -> Response {
        let outcome = match request {
            Request::Status => return Response::Status(Box::new(self.snapshot())),
            Request::Paths { news } => return paths::report(self.shards.stacks(), &news),
            Request::Arrivals { peer } => return paths::arrivals(self.shards.stacks(), peer),
            Request::CaptureStart { file, links, rotate_bytes, files } => {
                self.start_capture((file, &links, rotate_bytes, files))
            }
            Request::CaptureStop => self.end_capture().map_err(|error| error.to_string()),
        };
        outcome.map_or_else(|problem| Response::Refused { problem }, Response::Capture)
    }

    fn snapshot(&self) -> Snapshot {
        let running = self.capture.running();
        Snapshot {
            node: self.config.node.name.clone(),
            addresses: self.config.node.address.iter().map(|address| address.0.to_string()).collect(),
            relays: self.counts.named(),
            capture: running.map(|(path, counts)| captures::snapshot(&path, &counts)),
            bounds: self.services.bounds(&self.shards, &self.counts),
            ..Snapshot::of_shards(&self.shards)
        }
    }
}

// The trial that started the node, at the other ends of its pipes.

/// All threads begin with this one's priority, as the programs of a trial have it.
fn take_priority(has_trial: bool) {
    if has_trial {
        live_by_the_clock();
    }
}

/// Tells the trial that all is open. The end of its pipe ends the node as a signal does.
fn begin() -> Result<Receiver<()>, Failure> {
    talk::say(&PartMessage::Ready)?;
    let (ended, ends) = channel();
    let hear = || {
        talk::answer();
        drop(ended);
    };
    spawn("trial", hear)?;
    Ok(ends)
}

/// Ends with the trial; never without one.
async fn ended(trial: Option<Receiver<()>>) {
    match trial {
        Some(trial) => drop(trial.await),
        None => pending().await,
    }
}

/// Tells the trial of the connections that were carried.
fn tell(has_trial: bool, carried: CarriedCounts) -> Result<(), Failure> {
    if has_trial { talk::say(&PartMessage::Carried(carried)) } else { Ok(()) }
}
