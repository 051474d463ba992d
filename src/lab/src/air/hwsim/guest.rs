//! One guest: its folders, its streams, its end.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

use hopwise_host::{Clock, wait_for};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::image::Image;
use super::qemu::{
    Accelerator, BootWay, GuestTerminal, PORTS, RawTerminal, TERMINAL, carry_in, carry_out, has_kvm,
    last_words, size,
};
use hopwise_daemon::failure::{Failure, remark};
use hopwise_daemon::own_files::OwnFolder;
use hopwise_daemon::shell::quoted;
use hopwise_daemon::signals;

/// A guest is up within some seconds, and within minutes where many programs share a processor. One that KVM holds up
/// is given up sooner.
const UP_WITHIN: Duration = Duration::from_secs(300);
const UP_WITH_KVM_WITHIN: Duration = Duration::from_secs(20);
/// The time for a command to end when it is told to, and for the guest to switch itself off.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

/// A folder of this machine that the guest sees under that tag.
#[derive(Debug)]
pub(super) struct SharedFolder {
    pub(super) tag: &'static str,
    pub(super) folder: PathBuf,
    pub(super) is_read_only: bool,
}

#[derive(Debug)]
pub(super) struct Guest<'a> {
    pub(super) image: &'a Image,
    pub(super) memory_mib: u32,
    pub(super) accelerator: Accelerator,
    pub(super) limit: Option<Duration>,
    /// The command gets a terminal in place of three streams.
    pub(super) has_terminal: bool,
    pub(super) shares: Vec<SharedFolder>,
}

/// A guest that is up, with the streams of its command. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Up {
    running: RunningGuest,
    control: BufReader<UnixStream>,
    /// The command's input, output, errors, and terminal. Qemu forgets what it has not read of one that is closed.
    input: UnixStream,
    out: UnixStream,
    err: UnixStream,
    terminal: UnixStream,
}

/// The outcome of one start.
enum Start {
    Up(Box<Up>),
    /// It was not up by then, or is gone: another start may succeed.
    NotUp(String),
}

impl Guest<'_> {
    /// Runs a command in a guest and returns its status.
    pub(super) fn run(self, command: &[String]) -> Result<ExitCode, Failure> {
        let ends = signals::watch().map_err(|error| failed("watch for signals", error))?;
        let (has_terminal, limit) = (self.has_terminal, self.limit);
        let mut up = self.start(command, &ends)?;
        let raw = if has_terminal { RawTerminal::begin() } else { None };
        let carried = if has_terminal {
            carry(&up.terminal, [(&up.terminal, Box::new(io::stdout()))])
        } else {
            carry(&up.input, [(&up.out, Box::new(io::stdout())), (&up.err, Box::new(io::stderr()))])
        };
        let carried = carried.map_err(|error| failed("start a thread", error))?;
        let ended = up.running.to_the_end(&mut up.control, &ends, limit);
        up.running.finish();
        // The output that the guest has written comes through to its end.
        carried.into_iter().for_each(|thread| drop(thread.join()));
        drop(raw);
        ended.map(ExitCode::from)
    }

    /// Starts a guest with that command, in the ways that there are. The kernel ends it with this thread.
    pub(super) fn start(mut self, command: &[String], ends: &OwnedFd) -> Result<Up, Failure> {
        let folder = OwnFolder::make("hopwise-hwsim-")
            .map_err(|error| failed("make a folder for the guest", error))?;
        self.write_order(folder.path(), command).map_err(|error| failed("write the guest's order", error))?;
        let order = SharedFolder { tag: "order", folder: folder.path().join("order"), is_read_only: true };
        self.shares.push(order);
        let folder = Rc::new(folder);
        let mut last = String::new();
        for way in self.accelerator.ways(has_kvm()) {
            match self.attempt(&folder, way, ends)? {
                Start::Up(up) => return Ok(*up),
                Start::NotUp(problem) if way == BootWay::Kvm && self.accelerator == Accelerator::Auto => {
                    remark("the guest does not come up with KVM; it is emulated, which is slower");
                    last = problem;
                }
                Start::NotUp(problem) => last = problem,
            }
        }
        Err(failed("start the guest", last))
    }

    fn write_order(&self, folder: &Path, command: &[String]) -> io::Result<()> {
        let folder = folder.join("order");
        fs::create_dir(&folder)?;
        let words: Vec<_> = command.iter().map(|word| quoted(word)).collect();
        let terminal = std::env::var("TERM").unwrap_or_else(|_| "linux".to_owned());
        let environment = format!("export TERM={}\n", quoted(&terminal));
        fs::write(folder.join("command"), format!("{environment}exec {}\n", words.join(" ")))?;
        let streams = if self.has_terminal { "terminal" } else { "three" };
        let (rows, columns) = size();
        fs::write(folder.join("order"), format!("streams={streams} rows={rows} columns={columns}\n"))
    }

    fn attempt(&self, folder: &Rc<OwnFolder>, way: BootWay, ends: &OwnedFd) -> Result<Start, Failure> {
        let names = PORTS.into_iter().chain([TERMINAL]);
        let listeners = names.map(|name| listen(folder.path(), name)).collect::<io::Result<Vec<_>>>();
        let listeners = listeners.map_err(|error| failed("listen for the guest", error))?;
        let machine = GuestTerminal {
            image: self.image,
            shares: &self.shares,
            memory_mib: self.memory_mib,
            folder: folder.path(),
        };
        let process =
            machine.start(way).map_err(|error| failed("run setpriv (Debian: util-linux) and qemu", error))?;
        let mut running = RunningGuest { process, clock: Clock::start(), folder: Rc::clone(folder) };
        let [control, input, out, err, terminal] = match accept(listeners.iter(), &mut running) {
            Ok(streams) => streams,
            Err(error) => return Ok(Start::NotUp(running.problem(&error.to_string()))),
        };
        let mut control = BufReader::new(control);
        let within = if way == BootWay::Kvm { UP_WITH_KVM_WITHIN } else { UP_WITHIN };
        match running.next_word(&mut control, ends, Some(within)) {
            GuestEvent::Said(word) if word.starts_with("up ") => {
                Ok(Start::Up(Box::new(Up { running, control, input, out, err, terminal })))
            }
            GuestEvent::Said(word) => Err(failed("start the guest", running.problem(&word))),
            GuestEvent::Signal => Err(failed("start the guest", "a signal came first")),
            GuestEvent::Gone => Ok(Start::NotUp(running.problem("qemu has ended"))),
            GuestEvent::Late => {
                let problem = format!("it is not up after {} s", within.as_secs());
                Ok(Start::NotUp(running.problem(&problem)))
            }
        }
    }
}

/// Carries the streams between this process and the guest's ports, each on a thread of its own.
fn carry<const N: usize>(
    input: &UnixStream,
    outputs: [(&UnixStream, Box<dyn Write + Send>); N],
) -> io::Result<Vec<JoinHandle<()>>> {
    carry_in(input.try_clone()?)?;
    outputs.into_iter().map(|(port, ours)| carry_out(port.try_clone()?, ours)).collect()
}

impl Up {
    /// Says a line to the command, and waits for its next one.
    pub(super) fn ask(&mut self, line: &str, ends: &OwnedFd) -> Result<String, Failure> {
        const DOING: &str = "speak with the guest";
        let told = writeln!(&self.input, "{line}");
        told.map_err(|error| failed(DOING, error))?;
        loop {
            let ports = [&self.out, self.control.get_ref()].map(|port| PollFd::new(port, PollFlags::IN));
            let [out, control] = ports;
            let mut ready = [PollFd::new(ends, PollFlags::IN), out, control];
            match wait_for(&mut ready, Duration::from_secs(3600)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(failed(DOING, error)),
                Err(_) | Ok(0) => continue,
                Ok(_) => {}
            }
            let [signal, out, control] = ready.each_ref().map(|port| !port.revents().is_empty());
            if signal {
                return Err(failed("make a run in the guest", "interrupted"));
            }
            let mut answer = String::new();
            // It says one line, and nothing more before it is asked again.
            if out && BufReader::new(&self.out).read_line(&mut answer).is_ok_and(|bytes| bytes > 0) {
                return Ok(answer);
            }
            if out || control {
                return Err(failed(DOING, self.running.problem("it has ended early")));
            }
        }
    }

    /// Carries what the command says on its standard error to ours.
    pub(super) fn carry_errors(&self) -> io::Result<()> {
        carry_out(self.err.try_clone()?, io::stderr()).map(drop)
    }
}

/// The next event of a guest.
enum GuestEvent {
    Said(String),
    Signal,
    Gone,
    Late,
}

/// A guest that runs. Dropping it ends it.
#[derive(Debug)]
struct RunningGuest {
    process: Child,
    clock: Clock,
    // Removed with the last one that has it, after the process has ended.
    folder: Rc<OwnFolder>,
}

impl RunningGuest {
    fn next_word(
        &self,
        control: &mut BufReader<UnixStream>,
        ends: &OwnedFd,
        within: Option<Duration>,
    ) -> GuestEvent {
        let until = within.map(|within| self.clock.now() + within);
        loop {
            let rest = until.map_or(Duration::from_secs(3600), |until| until.since(self.clock.now()));
            let mut ready = [PollFd::new(control.get_ref(), PollFlags::IN), PollFd::new(ends, PollFlags::IN)];
            match wait_for(&mut ready, rest) {
                Ok(0) if until.is_some_and(|until| until <= self.clock.now()) => return GuestEvent::Late,
                Ok(0) => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return GuestEvent::Gone,
                Ok(_) => {}
            }
            if !ready[1].revents().is_empty() {
                let _ = rustix::io::read(ends, &mut [0_u8; 8][..]);
                return GuestEvent::Signal;
            }
            let mut line = String::new();
            return match control.read_line(&mut line) {
                Ok(bytes) if bytes > 0 => GuestEvent::Said(line.trim().to_owned()),
                _ => GuestEvent::Gone,
            };
        }
    }

    /// Waits for the command's status. After the limit, or a signal, the command is told to end.
    fn to_the_end(
        &self,
        control: &mut BufReader<UnixStream>,
        ends: &OwnedFd,
        limit: Option<Duration>,
    ) -> Result<u8, Failure> {
        let (mut within, mut told) = (limit, None);
        loop {
            let word = self.next_word(control, ends, within);
            match (word, &told) {
                (GuestEvent::Said(word), _) => match (word.strip_prefix("status "), told) {
                    (Some(_), Some(why)) if why != SIGNAL => return Err(failed("run the command", why)),
                    (Some(status), _) => return Ok(status.parse().unwrap_or(1)),
                    (None, _) => return Err(failed("run the guest", self.problem(&word))),
                },
                (GuestEvent::Gone, _) => {
                    return Err(failed("run the guest", self.problem("it has ended by itself")));
                }
                (GuestEvent::Late, None) => {
                    let seconds = limit.unwrap_or_default().as_secs_f64();
                    told = Some(format!("it was not done within {seconds} s and was ended"));
                }
                (GuestEvent::Signal, None) => told = Some(SIGNAL.to_owned()),
                (GuestEvent::Late, Some(_)) => {
                    return Err(failed(
                        "run the command",
                        "it did not end when it was told to; the guest was killed",
                    ));
                }
                (GuestEvent::Signal, Some(_)) => {
                    return Err(failed("run the command", "a second signal killed the guest"));
                }
            }
            let _ = control.get_ref().write_all(b"end\n");
            within = Some(ENDS_WITHIN);
        }
    }

    /// Waits until the guest has switched itself off.
    fn finish(&mut self) {
        let id = Pid::from_child(&self.process);
        if let Ok(process) = pidfd_open(id, PidfdFlags::empty()) {
            let _ = wait_for(&mut [PollFd::new(&process, PollFlags::IN)], ENDS_WITHIN);
        }
        self.end();
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    fn problem(&self, problem: &str) -> String {
        format!("{problem}; last it said:\n{}", last_words(self.folder.path()))
    }
}

impl Drop for RunningGuest {
    fn drop(&mut self) {
        self.end();
    }
}

const SIGNAL: &str = "a signal came";

/// A socket for a port of the guest, in place of one of an earlier start.
fn listen(folder: &Path, name: &str) -> io::Result<UnixListener> {
    let path = folder.join(format!("{name}.socket"));
    let _ = fs::remove_file(&path);
    UnixListener::bind(path)
}

/// Qemu connects to all sockets when it starts.
fn accept<'a, const N: usize>(
    listeners: impl Iterator<Item = &'a UnixListener>,
    running: &mut RunningGuest,
) -> io::Result<[UnixStream; N]> {
    let until = running.clock.now() + UP_WITHIN;
    let mut streams = Vec::new();
    for listener in listeners {
        loop {
            let mut ready = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
            if wait_for(&mut ready, Duration::from_millis(50)).unwrap_or(0) > 0 {
                streams.push(listener.accept()?.0);
                break;
            }
            if running.has_ended() {
                return Err(io::Error::other("qemu has ended"));
            }
            if until < running.clock.now() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
    streams.try_into().map_err(|_| io::Error::other("not all ports are there"))
}

fn failed(doing: &'static str, problem: impl std::fmt::Display) -> Failure {
    Failure::failed(doing, problem)
}
