//! The running proxy: two devices, one thread that drives them, and the senders of link news.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use caps::Capability;
use hopwise_agents::StandardAgents;
use hopwise_agents::base_station::forecast::{ForecastSettings, Forecaster};
use hopwise_core::trace::TraceEvent;
use hopwise_core::trace::text::TraceText;
use hopwise_core::{Instant, LinkEvent, Machine};
use hopwise_host::confine::Paths;
use hopwise_host::netlink::Detour;
use hopwise_host::own_file::begin_own;
use hopwise_host::{Driver, Iteration, Observer, Poller, SeenPacket};
use hopwise_lab::live::part::PartMessage;
use hopwise_mesh::{Proxy, ProxyConfig, ProxyCounts, TimedEvent};

use super::config::{By, Forecast, MOBILE, ProxySettings};
use super::control::{ProxyRequest, ProxyResponse, ProxyStatus, with_stations};
use super::trial::{self, Trial};
use super::{devices, firewall, sources};
use crate::watchdog;
use hopwise_daemon::confine::{AccessNeeds, confine, folders_of};
use hopwise_daemon::control::{self, BoundSocket};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::notify;
use hopwise_daemon::privileges::Privileges;
use hopwise_daemon::signals::{self, Ending};
use hopwise_daemon::spawn;
use hopwise_daemon::talk;
use hopwise_daemon::watchdog::{BEAT_EVERY, Watcher, repeat};

/// Events kept between two iterations of the driver, which drains them each time.
const TRACE_EVENTS: usize = 4096;
/// The interval between two checks for silent links.
const TICK: Duration = Duration::from_millis(100);
/// The longest time at the end for packets that still wait.
const TO_LEAVE: Duration = Duration::from_millis(300);
const MOST_FORECASTS: usize = 4096;

/// A request to the driver's thread.
enum ProxyCommand {
    Tell(ProxyRequest, Option<Sender<ProxyResponse>>),
    Hear(TimedEvent),
    /// Time has passed: forecasts look for silent links.
    Tick,
    /// Shows the watcher and systemd's watchdog that this thread still takes commands.
    Beat,
    End,
}

/// A sender of commands to the driver's thread.
#[derive(Clone)]
struct CommandSender {
    commands: Sender<ProxyCommand>,
    poller: Arc<Poller>,
}

impl CommandSender {
    /// Returns false once the proxy has ended.
    fn tell(&self, command: ProxyCommand) -> bool {
        let is_heard = self.commands.send(command).is_ok();
        self.poller.wake();
        is_heard
    }

    fn ask(&self, request: ProxyRequest) -> ProxyResponse {
        let (sender, answer) = channel();
        self.tell(ProxyCommand::Tell(request, Some(sender)));
        answer.recv().unwrap_or_else(|_| ProxyResponse::Refused("the proxy has ended".to_owned()))
    }
}

pub(super) fn run(config: &ProxySettings, trial: Option<Trial>) -> Result<(), Failure> {
    let privileges = Privileges::find(config.user.as_deref());
    let privileges = privileges.map_err(|error| Failure::refused("user", error))?;
    // Opened devices have to be removed again, whatever happens between.
    let ending = signals::early(Ending::or_hangup)?;
    privileges.make_folder(&config.control);
    privileges.begin().map_err(Failure::during("become the user"))?;
    let watcher = config.watchdog.on().and_then(|patience| watchdog::start(patience.0));
    let trace = config.trace.as_deref().map(TraceFile::create).transpose()?;
    let links = devices::open(config)?;
    let key = hopwise_host::random_key().map_err(Failure::during("make a key"))?;
    let of_proxy = ProxyConfig { key, ..config.proxy(if trace.is_some() { TRACE_EVENTS } else { 0 }) };
    let agents =
        trial.as_ref().map_or_else(StandardAgents::default, |trial| StandardAgents::new(trial.profile));
    let proxy = Proxy::new(of_proxy, Box::new(agents)).map_err(Failure::during("make the proxy"))?;
    let observers = trace.into_iter().map(|trace| Box::new(trace) as Box<dyn Observer>).collect();
    let mut driver = Driver::new(proxy, links, observers).map_err(Failure::during("drive the devices"))?;
    let bound = BoundSocket::bind(&config.control)?;
    let (commands, waiting) = channel();
    let teller = CommandSender { commands, poller: driver.poller() };
    let (mut sources, reports) = sources::open(config, driver.clock())?;
    firewall::look(config);
    let detour = devices::steer(config)?;
    let _confined = confine(config.confine, &privileges, &needs(config))?;
    let has_trial = trial.is_some();
    if let Some(trial) = trial {
        trial::begin(&mut driver)?;
        sources.push(Box::new(trial.news));
        let teller = teller.clone();
        spawn("trial", move || {
            talk::answer();
            teller.tell(ProxyCommand::End);
        })?;
    }
    if !sources.is_empty() {
        let (teller, clock) = (teller.clone(), driver.clock());
        spawn("links", move || {
            sources::listen(sources, clock, |event| teller.tell(ProxyCommand::Hear(event)));
        })?;
    }
    let clock = driver.clock();
    let answer = {
        let asks = teller.clone();
        move |request| with_stations(asks.ask(request), &reports, clock)
    };
    keep_time(teller, config, (&bound, answer), ending)?;
    let service = notify::ready();
    tracing::info!("ready");
    let forecast = config.forecast.as_ref().map(Forecast::settings).map(Forecasts::new);
    let ended = drive(driver, &waiting, forecast, watcher, detour);
    // Packets go their ordinary way by now: none waits for systemd.
    drop(service);
    drop(bound);
    let counts = trial::counted(&ended?);
    if has_trial { talk::say(&PartMessage::Proxied(counts)) } else { Ok(()) }
}

/// Routing rules are removed at the end, and each verdict on a queued packet needs the capability again.
fn needs(config: &ProxySettings) -> AccessNeeds {
    let by = config.steer.as_ref().map(|steer| steer.by);
    let is_admin = matches!(by, Some(By::Tun | By::Nfqueue));
    AccessNeeds {
        capabilities: is_admin.then_some(Capability::CAP_NET_ADMIN).into_iter().collect(),
        paths: Paths { writes: folders_of(&config.control), ..Paths::default() },
        families: vec![libc::AF_UNIX, libc::AF_NETLINK],
    }
}

/// Handles signals, the forecast's ticks and the control socket, on a thread with tokio's clock.
fn keep_time(
    teller: CommandSender,
    config: &ProxySettings,
    (bound, answer): (&BoundSocket, impl Fn(ProxyRequest) -> ProxyResponse + Send + Sync + 'static),
    mut ending: Ending,
) -> Result<(), Failure> {
    let has_forecast = config.forecast.is_some();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::during("start a runtime"))?;
    let listener = bound.listen(&runtime).map_err(Failure::during("serve the control socket"))?;
    spawn("signals", move || {
        runtime.block_on(async {
            tokio::spawn(control::serve(listener, answer));
            let ticker = teller.clone();
            if has_forecast {
                tokio::spawn(repeat(TICK, move || ticker.tell(ProxyCommand::Tick)));
            }
            let heart = teller.clone();
            tokio::spawn(repeat(BEAT_EVERY, move || heart.tell(ProxyCommand::Beat)));
            ending.next().await;
            teller.tell(ProxyCommand::End);
        });
    })
}

fn drive(
    mut driver: Driver<Proxy>,
    waiting: &Receiver<ProxyCommand>,
    mut forecasts: Option<Forecasts>,
    mut watcher: Option<Watcher>,
    // Last, so that it goes first: the way around the proxy is open again before its devices go.
    mut detour: Option<Detour>,
) -> Result<ProxyCounts, Failure> {
    let (mut ready, mut is_behind) = (Vec::new(), false);
    loop {
        if !is_behind {
            driver.wait(&mut ready).map_err(Failure::during("wait for packets"))?;
        }
        while let Ok(command) = waiting.try_recv() {
            match command {
                ProxyCommand::Tell(request, answer) => {
                    let request = request.with_plain_address();
                    let response = obey(&mut driver, request, forecasts.as_mut());
                    answer.map(|answer| answer.send(response).is_ok());
                }
                ProxyCommand::Hear(event) => hear(&mut driver, &event, forecasts.as_mut()),
                ProxyCommand::Tick => forecasts.iter_mut().for_each(|forecasts| forecasts.tick(&mut driver)),
                ProxyCommand::Beat => {
                    notify::alive();
                    if let Some(problem) = detour.as_mut().and_then(Detour::gap) {
                        return Err(Failure::failed("lead packets through the proxy", problem));
                    }
                    if watcher.as_ref().is_some_and(|watcher| !watcher.beat()) {
                        tracing::warn!("nothing watches any more whether the proxy hangs");
                        watcher = None;
                    }
                }
                ProxyCommand::End => {
                    let counts = driver.machine().counts();
                    driver.act(|now, proxy| proxy.let_go(now));
                    let until = driver.clock().now() + TO_LEAVE;
                    driver.finish(until).map_err(Failure::during("send packets"))?;
                    return Ok(counts);
                }
            }
        }
        // News must not wait until the links run dry, nor one link until the other does.
        is_behind = driver.iterate(&ready) == Iteration::MoreToRead;
        if is_behind {
            ready.clear();
            ready.extend(0..driver.links());
        }
        if let Some(gone) = driver.counters().iter().find(|link| link.is_gone) {
            let problem =
                format_args!("{}: the device is gone, or what led its packets to the proxy", gone.name);
            return Err(Failure::failed("carry packets", problem));
        }
    }
}

/// Processes an event of a source. Signals matter only to a forecast.
fn hear(driver: &mut Driver<Proxy>, timed: &TimedEvent, forecasts: Option<&mut Forecasts>) {
    match (timed.event, forecasts) {
        (LinkEvent::Signal { from, dbm }, Some(forecasts)) => {
            forecasts.hear(driver, timed.at, from, dbm);
        }
        _ => tell(driver, &timed.event),
    }
}

pub(super) fn obey(
    driver: &mut Driver<Proxy>,
    request: ProxyRequest,
    forecasts: Option<&mut Forecasts>,
) -> ProxyResponse {
    if let ProxyRequest::Signal { peer, dbm } = request {
        return match forecasts {
            Some(forecasts) => forecasts.hear(driver, driver.clock().now(), peer, dbm),
            None => ProxyResponse::Refused("this proxy has no `forecast`".to_owned()),
        };
    }
    let Some(event) = request.event() else {
        let status = ProxyStatus::of(&driver.machine().counts());
        return ProxyResponse::Status(Box::new(status));
    };
    tell(driver, &event);
    ProxyResponse::Done
}

fn tell(driver: &mut Driver<Proxy>, event: &LinkEvent<'_>) {
    driver.act(|now, proxy| proxy.handle_link_event(now, MOBILE, event));
}

/// A forecaster for each mobile whose signal is known.
pub(super) struct Forecasts {
    settings: ForecastSettings,
    links: BTreeMap<IpAddr, Forecaster>,
}

impl Forecasts {
    pub(super) fn new(settings: ForecastSettings) -> Forecasts {
        Forecasts { settings, links: BTreeMap::new() }
    }

    fn hear(&mut self, driver: &mut Driver<Proxy>, at: Instant, peer: IpAddr, dbm: i8) -> ProxyResponse {
        if self.links.len() >= MOST_FORECASTS && !self.links.contains_key(&peer) {
            return ProxyResponse::Refused(format!("more than {MOST_FORECASTS} mobiles"));
        }
        let forecaster = self.links.entry(peer).or_insert_with(|| Forecaster::new(self.settings));
        if let Some(news) = forecaster.on_signal(at, dbm) {
            tell(driver, &news.event(peer));
        }
        ProxyResponse::Done
    }

    pub(super) fn tick(&mut self, driver: &mut Driver<Proxy>) {
        let now = driver.clock().now();
        for (peer, forecaster) in &mut self.links {
            if let Some(news) = forecaster.on_silence(now) {
                tell(driver, &news.event(*peer));
            }
        }
    }
}

/// Writes the trace as it comes.
struct TraceFile {
    file: io::BufWriter<std::fs::File>,
    text: TraceText,
}

impl TraceFile {
    fn create(path: &Path) -> Result<TraceFile, Failure> {
        let file = begin_own(path, 0o600).map_err(|error| {
            Failure::failed("write the trace", format_args!("{}: {error}", path.display()))
        })?;
        Ok(TraceFile { file: io::BufWriter::new(file), text: TraceText::new() })
    }
}

impl Observer for TraceFile {
    fn on_packet(&mut self, _: &SeenPacket<'_>) {}

    fn on_trace(&mut self, event: &TraceEvent) {
        self.text.push(event);
        // A full disk costs only the trace.
        let _ = self.file.write_all(self.text.as_str().as_bytes());
        self.text.clear();
    }
}
