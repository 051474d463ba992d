//! `scripts/bench host --peers`: our stack and three foreign ones, each on such a device against one kernel. Each has a
//! process of its own. smoltcp is in this program. `scripts/bench` builds the programs of lwIP and gVisor.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::ours::PORT;
use crate::peer;
use crate::place::{BEYOND, Device, KERNELS, OURS, Other, ip};
use crate::row::SMOLTCP;
use crate::task::Task;
use crate::usage::resident_mib_of;

pub(crate) const OPTION: &str = "--peers";
/// The folder of the programs.
const FOLDER: &str = "HOPWISE_PEERS";

/// A process of the benchmark: a TCP that is measured, or the kernel's ends of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stack {
    Ours,
    Smoltcp,
    Lwip,
    Gvisor,
    /// The kernel's, over a wire to another namespace.
    Kernel,
    /// The kernel's ends of idle connections to ours.
    Idle,
}

impl Stack {
    const OTHERS: [Stack; 4] = [Stack::Smoltcp, Stack::Lwip, Stack::Gvisor, Stack::Kernel];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Stack::Ours => "ours",
            Stack::Smoltcp => SMOLTCP,
            Stack::Lwip => "lwIP",
            Stack::Gvisor => "gVisor",
            Stack::Kernel => "kernel, veth",
            Stack::Idle => "idle",
        }
    }

    /// Those that can be measured on that device here.
    pub(crate) fn all_on(device: Device) -> Vec<Stack> {
        let is_there = |stack: &Stack| match stack {
            Stack::Lwip => device == Device::Mtu && program("lwip").is_some(),
            Stack::Gvisor => program("gvisor").is_some(),
            _ => true,
        };
        [Stack::Ours].into_iter().chain(Stack::OTHERS).filter(is_there).collect()
    }

    fn address(self) -> IpAddr {
        if self == Stack::Kernel { BEYOND } else { OURS }
    }

    fn command(self, wire: Option<&Other>) -> Command {
        let this = std::env::current_exe().expect("the benchmark is a file");
        let of_this = |stack: &str| {
            let mut command = Command::new(&this);
            command.args([peer::OPTION, stack]);
            command
        };
        match (self, wire) {
            (Stack::Kernel, Some(wire)) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", wire.name()]).arg(&this).args([peer::OPTION, "kernel"]);
                command
            }
            (Stack::Smoltcp, _) => of_this("smoltcp"),
            (Stack::Idle, _) => of_this("idle"),
            (Stack::Lwip, _) => Command::new(program("lwip").expect("it was there")),
            (Stack::Gvisor, _) => Command::new(program("gvisor").expect("it was there")),
            _ => of_this("ours"),
        }
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(FOLDER)?).join(name);
    path.exists().then_some(path)
}

/// Says which peers are left out, and why.
pub(crate) fn say_who_is_missing() {
    for name in ["lwip", "gvisor"] {
        if program(name).is_none() {
            eprintln!(
                "skipped: {name}: there is no program of it in {FOLDER}, where scripts/bench builds it"
            );
        }
    }
}

/// A stack at work.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    says: BufReader<ChildStdout>,
    stack: Stack,
    _wire: Option<Other>,
}

impl Running {
    /// The stack is there, and waits for [`go`](Running::go).
    pub(crate) fn start(stack: Stack, task: Task) -> Running {
        let wire = (stack == Stack::Kernel).then(Other::new);
        if let (Some(wire), Device::Mtu) = (&wire, task.device) {
            wire.without_offload();
        }
        let mut command = stack.command(wire.as_ref());
        command.args(task.words()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", stack.name()));
        let says = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut running = Running { child, says, stack, _wire: wire };
        assert_eq!(running.line(), "ready", "{}", stack.name());
        if matches!(stack, Stack::Lwip | Stack::Gvisor) {
            ip(&["address", "add", &format!("{KERNELS}/24"), "dev", "bench0"]);
            ip(&["link", "set", "bench0", "up", "mtu", "1500", "txqueuelen", "8192"]);
        }
        running
    }

    /// The address that the kernel's end connects to.
    pub(crate) fn address(&self) -> SocketAddr {
        (self.stack.address(), PORT).into()
    }

    pub(crate) fn go(&mut self) {
        self.child.stdin.as_mut().expect("it is a pipe").write_all(b"go\n").expect("it waits for a line");
    }

    pub(crate) fn resident_mib(&self) -> f64 {
        resident_mib_of(&self.child.id().to_string())
    }

    /// The CPU time of a process that ends, or that ends with its input.
    pub(crate) fn end(&mut self) -> f64 {
        drop(self.child.stdin.take());
        let line = self.line();
        let seconds = line.strip_prefix("cpu ").and_then(|seconds| seconds.parse().ok());
        let done = self.child.wait().expect("it is a child");
        assert!(done.success(), "{}: {done}", self.stack.name());
        seconds.unwrap_or_else(|| panic!("{}: {line:?}", self.stack.name()))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).expect("it is a pipe");
        line.trim_end().to_owned()
    }
}

/// A process that a failed measurement leaves would keep the device.
impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The figures of each stack, run by run, measured in turn. The first turn warms up.
pub(crate) fn in_turn<const N: usize>(
    stacks: &[Stack],
    runs: usize,
    mut measure: impl FnMut(Stack) -> [f64; N],
) -> Vec<[Vec<f64>; N]> {
    let mut all: Vec<[Vec<f64>; N]> = stacks.iter().map(|_| std::array::from_fn(|_| Vec::new())).collect();
    for run in 0..=runs {
        for (stack, figures) in stacks.iter().zip(&mut all) {
            let measured = measure(*stack);
            if run > 0 {
                figures.iter_mut().zip(measured).for_each(|(figures, measured)| figures.push(measured));
            }
        }
    }
    all
}
