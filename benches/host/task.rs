//! The work of one stack in a process of its own, as words on its command line.

use std::num::ParseIntError;

use crate::ours::PORT;
use crate::place::Device;

/// The part that the stack plays. The kernel's TCP has the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Send,
    Receive,
    Echo,
}

const MODES: [(Mode, &str); 3] = [(Mode::Send, "send"), (Mode::Receive, "receive"), (Mode::Echo, "echo")];
const LINKS: [(Device, &str); 2] = [(Device::Mtu, "plain"), (Device::Offload, "offload")];

/// A task. Programs in other languages take these words, in the order of these fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) mode: Mode,
    pub(crate) device: Device,
    pub(crate) connections: usize,
    pub(crate) bytes_each: u64,
    /// The stack's own port, or the kernel's port if the stack sends.
    pub(crate) port: u16,
}

impl Task {
    pub(crate) fn echo(device: Device, connections: usize) -> Task {
        Task { mode: Mode::Echo, device, connections, bytes_each: 0, port: PORT }
    }

    pub(crate) fn words(&self) -> [String; 5] {
        let numbers = [self.connections as u64, self.bytes_each, self.port.into()].map(|n| n.to_string());
        let [connections, bytes_each, port] = numbers;
        [
            word(&MODES, self.mode).to_owned(),
            word(&LINKS, self.device).to_owned(),
            connections,
            bytes_each,
            port,
        ]
    }

    /// The task of these words, or what was expected instead.
    pub(crate) fn read(words: &[String]) -> Result<Task, String> {
        let [mode, link, connections, bytes_each, port] = words else {
            return Err(format!("{words:?}: expected MODE LINK CONNECTIONS BYTES_EACH PORT"));
        };
        let number = |error: ParseIntError| format!("{words:?}: {error}");
        Ok(Task {
            mode: value(&MODES, mode)?,
            device: value(&LINKS, link)?,
            connections: connections.parse().map_err(number)?,
            bytes_each: bytes_each.parse().map_err(number)?,
            port: port.parse().map_err(number)?,
        })
    }
}

fn word<T: Copy + PartialEq>(table: &[(T, &'static str)], value: T) -> &'static str {
    table.iter().find(|(known, _)| *known == value).map_or("", |(_, word)| word)
}

fn value<T: Copy>(table: &[(T, &'static str)], word: &str) -> Result<T, String> {
    let known: Vec<_> = table.iter().map(|(_, word)| *word).collect();
    let found = table.iter().find(|(_, known)| *known == word);
    found.map(|(value, _)| *value).ok_or_else(|| format!("{word}: expected one of {}", known.join(", ")))
}
