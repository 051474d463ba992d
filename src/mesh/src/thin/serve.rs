//! The running daemon: one thread judges packets, another one handles signals, the control socket and the beats.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use caps::Capability;
use hopwise_core::Instant;
use hopwise_host::confine::Paths;
use hopwise_host::{AckQueue, Clock, netlink, wait_for};
use hopwise_lab::live::part::{PartMessage, ThinnedAcks};
use hopwise_lab::version;
use hopwise_mesh::{Thin, ThinConfig, ThinCounts};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

use super::Arguments;
use super::captured::AckCapture;
use super::config::place_of;
use crate::watchdog;
use hopwise_daemon::confine::{AccessNeeds, Confine, confine, folders_of};
use hopwise_daemon::control::{self, BoundSocket};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::live_by_the_clock;
use hopwise_daemon::notify;
use hopwise_daemon::privileges::Privileges;
use hopwise_daemon::signals::{self, Ending, ring};
use hopwise_daemon::spawn;
use hopwise_daemon::talk;
use hopwise_daemon::thin::ThinSnapshot;
use hopwise_daemon::watchdog::{BEAT_EVERY, Watcher, repeat};
use hopwise_node::control::{Request, Response};
use hopwise_node::serve_page;

/// Packets between two looks at the time and at commands.
const AT_ONCE: usize = 64;
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A request to the thread that judges.
enum ThinCommand {
    Tell(Sender<ThinSnapshot>),
    Beat,
    End,
}

#[derive(Clone)]
struct ThinTeller {
    commands: Sender<ThinCommand>,
    bell: Arc<OwnedFd>,
}

impl ThinTeller {
    /// Returns false once the daemon has ended.
    fn tell(&self, command: ThinCommand) -> bool {
        let is_heard = self.commands.send(command).is_ok();
        ring(&self.bell);
        is_heard
    }

    fn answer(&self, request: &Request) -> Response {
        let refused = |problem: &str| Response::Refused { problem: problem.to_owned() };
        if !matches!(request, Request::Status) {
            return refused("a daemon that thins ACKs answers `hopwise status` alone");
        }
        self.ask().map_or_else(|| refused("the daemon has ended"), |told| Response::Thin(Box::new(told)))
    }

    fn ask(&self) -> Option<ThinSnapshot> {
        let (sender, answer) = channel();
        self.tell(ThinCommand::Tell(sender));
        answer.recv().ok()
    }
}

pub(super) fn run(settings: &Arguments, config: ThinConfig) -> Result<(), Failure> {
    let privileges = Privileges::find(None).map_err(|error| Failure::refused("user", error))?;
    // The rules have to be removed, whatever happens between.
    let ending = signals::early(Ending::or_hangup)?;
    if settings.with_trial {
        live_by_the_clock();
    }
    privileges.make_folder(&settings.control);
    privileges.begin().map_err(Failure::during("become the user"))?;
    let watcher = watchdog::start(settings.watchdog);
    // Before ACKs come, which wait until they are judged.
    let bound = BoundSocket::bind(&settings.control)?;
    let listen = |at| TcpListener::bind(at).and_then(|own| own.set_nonblocking(true).map(|()| own));
    let scrapes =
        settings.metrics.map(listen).transpose().map_err(Failure::during("listen for Prometheus"))?;
    let queue = AckQueue::open(&settings.interfaces.iter().cloned().collect(), settings.queue);
    let queue = queue.map_err(Failure::during("take ACKs"))?;
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let bell = Arc::new(bell.map_err(Failure::during("make an event"))?);
    let (commands, waiting) = channel();
    let mut writes = folders_of(&settings.control);
    writes.extend(settings.capture.iter().flat_map(|file| folders_of(file)));
    let needs = AccessNeeds {
        // Each verdict needs it.
        capabilities: vec![Capability::CAP_NET_ADMIN],
        paths: Paths { writes, ..Paths::default() },
        // Names of interfaces come over AF_INET.
        families: vec![libc::AF_UNIX, libc::AF_INET, libc::AF_NETLINK],
    };
    let _confined = confine(Confine::On, &privileges, &needs)?;
    let teller = ThinTeller { commands, bell: Arc::clone(&bell) };
    let clock = Clock::start();
    let begin = |file: &PathBuf| AckCapture::start(file, &settings.interfaces, &clock);
    let capture = settings.capture.as_ref().map(begin).transpose()?;
    keep_time(teller.clone(), (&bound, scrapes), ending)?;
    let service = notify::ready();
    tracing::info!(interfaces = ?settings.interfaces, receiver = settings.receiver, "ready");
    if settings.with_trial {
        talk::say(&PartMessage::Ready)?;
        spawn("trial", move || {
            talk::answer();
            teller.tell(ThinCommand::End);
        })?;
    }
    let judging =
        Judging { thin: Thin::new(config), queue, clock, watcher, places: BTreeMap::new(), capture };
    let ended = judging.run(&waiting, &bell, settings);
    // ACKs leave by themselves by now: none waits for systemd.
    drop(service);
    let ThinCounts { acks, replaced, ridden, news, .. } = ended?;
    if settings.with_trial {
        talk::say(&PartMessage::Thinned(ThinnedAcks { acks, replaced, ridden, news }))?;
    }
    Ok(())
}

/// Handles signals, the beats and the control socket, on a thread with tokio's clock.
fn keep_time(
    teller: ThinTeller,
    (bound, scrapes): (&BoundSocket, Option<TcpListener>),
    mut ending: Ending,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::during("start a runtime"))?;
    let listeners = {
        let _inside = runtime.enter();
        let scrapes = scrapes.map(tokio::net::TcpListener::from_std).transpose();
        bound.listen(&runtime).and_then(|own| Ok((own, scrapes?)))
    };
    let (listener, scrapes) =
        listeners.map_err(Failure::during("serve the control socket and the metrics"))?;
    let work = move || {
        runtime.block_on(async {
            let (asks, heart) = (teller.clone(), teller.clone());
            tokio::spawn(control::serve(listener, move |request: Request| asks.answer(&request)));
            tokio::spawn(repeat(BEAT_EVERY, move || heart.tell(ThinCommand::Beat)));
            if let Some(scrapes) = scrapes {
                let asks = teller.clone();
                let page = move || asks.ask().map_or_else(String::new, |told| told.metrics());
                tokio::spawn(serve_page(scrapes, page));
            }
            ending.next().await;
            teller.tell(ThinCommand::End);
        });
    };
    spawn("signals", work)
}

/// The number in rules of an interface, by the kernel's number, which is another if the interface came anew. Nothing is
/// kept of an interface whose name cannot be asked for, as without a free descriptor.
fn place(places: &mut BTreeMap<u32, u16>, leaves_by: u32, interfaces: &[String]) -> Option<u16> {
    let known = places.get(&leaves_by).copied();
    let place = known.or_else(|| place_of(interfaces, &netlink::name_of(leaves_by).ok()?))?;
    Some(*places.entry(leaves_by).or_insert(place))
}

/// The thread that judges.
struct Judging {
    thin: Thin,
    queue: AckQueue,
    clock: Clock,
    watcher: Option<Watcher>,
    /// The numbers of interfaces in rules, by the kernel's numbers.
    places: BTreeMap<u32, u16>,
    capture: Option<AckCapture>,
}

impl Judging {
    fn run(
        mut self,
        waiting: &Receiver<ThinCommand>,
        bell: &OwnedFd,
        settings: &Arguments,
    ) -> Result<ThinCounts, Failure> {
        let ended = loop {
            let turn = self.wait(bell).and_then(|()| self.obey(waiting, settings));
            match turn
                .and_then(|goes_on| if goes_on { self.judge(settings).map(|()| true) } else { Ok(false) })
            {
                Ok(true) => {}
                ended => break ended.map(drop),
            }
        };
        self.thin.let_go();
        self.carry_out(self.clock.now());
        self.queue.close(|| {
            notify::alive();
            let _ = self.watcher.as_ref().map(Watcher::beat);
        });
        ended.map(|()| self.thin.counts())
    }

    /// Waits for packets, for commands, or until an agent is due.
    fn wait(&mut self, bell: &OwnedFd) -> Result<(), Failure> {
        let now = self.clock.now();
        let most = self.thin.poll_timeout().map_or(LONGEST_WAIT, |due| due.since(now)).min(LONGEST_WAIT);
        let mut ready = [self.queue.descriptor(), bell.as_fd()]
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
        match wait_for(&mut ready, most) {
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                return Err(Failure::failed("wait for packets", error));
            }
            _ => {}
        }
        // An empty one has nothing to read.
        let _ = rustix::io::read(bell, &mut [0; 8]);
        Ok(())
    }

    /// Obeys what has come; returns false at the end.
    fn obey(&mut self, waiting: &Receiver<ThinCommand>, settings: &Arguments) -> Result<bool, Failure> {
        while let Ok(command) = waiting.try_recv() {
            match command {
                // A client that is gone gets nothing.
                ThinCommand::Tell(answer) => drop(answer.send(self.snapshot(settings))),
                ThinCommand::Beat => {
                    notify::alive();
                    self.queue.drop_askers();
                    if !self.queue.stands() {
                        let problem = "the rules that lead them here were removed";
                        return Err(Failure::failed("take ACKs", problem));
                    }
                    if self.watcher.as_ref().is_some_and(|watcher| !watcher.beat()) {
                        tracing::warn!("nothing watches any more whether the daemon hangs");
                        self.watcher = None;
                    }
                }
                ThinCommand::End => return Ok(false),
            }
        }
        Ok(true)
    }

    fn judge(&mut self, settings: &Arguments) -> Result<(), Failure> {
        let mut now: Instant = self.clock.now();
        for _ in 0..AT_ONCE {
            let next = self.queue.read().map_err(Failure::during("read the queue"))?;
            let Some((id, leaves_by, head)) = next else { break };
            now = self.clock.now();
            let named = (id, place(&mut self.places, leaves_by, &settings.interfaces).unwrap_or(u16::MAX));
            self.capture.iter_mut().for_each(|capture| capture.keep(now, named, head));
            match leaves_by {
                0 => self.thin.handle_syn(id, head),
                _ => self.thin.handle_packet(now, named, head),
            }
            self.carry_out(now);
        }
        self.thin.handle_timeout(now);
        self.carry_out(now);
        Ok(())
    }

    fn carry_out(&mut self, now: Instant) {
        while let Some((id, fate)) = self.thin.poll_verdict() {
            self.capture.iter_mut().for_each(|capture| capture.tell(now, id, fate));
            if let Err(error) = self.queue.judge(id, fate.passes()) {
                // The kernel keeps the packet until the queue ends.
                tracing::warn!(%error, "a verdict was not taken");
            }
        }
    }

    fn snapshot(&self, settings: &Arguments) -> ThinSnapshot {
        let counts = self.thin.counts();
        ThinSnapshot {
            pid: process::id(),
            version: version::with_commit().to_owned(),
            interfaces: settings.interfaces.clone(),
            receiver: settings.receiver.clone(),
            queue: settings.queue,
            flows: counts.flows,
            held: counts.held,
            acks: counts.acks,
            replaced: counts.replaced,
            ridden: counts.ridden,
            news: counts.news,
            untouched: counts.untouched,
            no_room: counts.no_room,
        }
    }
}
