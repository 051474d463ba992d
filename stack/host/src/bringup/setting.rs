//! Settings of a host, as trials change them: the table of their names, how each is read, and how it gets a value.
//!
//! A setting has its value in words: `on`, `off`, or a number. Its step undoes itself as all steps do. Whoever makes
//! the step reads the value again: drivers take values that they then ignore.

use std::io;
use std::process::{Command, Stdio};

use super::change::{InterfaceChange, What};
use super::plan::BringupStep;
use crate::namespace::switch_of;
use crate::netlink::{self, KernelRefusal, device, features};
use crate::nl80211::radio::{Radio, RadioNumber};
use crate::sys::driver_of;

/// The way in which a setting is read and written.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Features of the device, by the kernel's names; the first one tells the value.
    Offloads(&'static [&'static str]),
    Queue,
    Radio(RadioNumber),
    PowerSave,
}

/// The settings of interfaces. A name that begins with `net.` is a switch of the host (sysctl).
const TABLE: [(&str, Way); 10] = [
    ("rts_threshold", Way::Radio(RadioNumber::RTS_THRESHOLD)),
    ("fragmentation", Way::Radio(RadioNumber::FRAGMENTATION)),
    ("short_retries", Way::Radio(RadioNumber::SHORT_RETRIES)),
    ("long_retries", Way::Radio(RadioNumber::LONG_RETRIES)),
    ("coverage_class", Way::Radio(RadioNumber::COVERAGE_CLASS)),
    ("power_save", Way::PowerSave),
    ("txqueuelen", Way::Queue),
    ("gro", Way::Offloads(&["rx-gro"])),
    ("gso", Way::Offloads(&["tx-generic-segmentation"])),
    ("tso", Way::Offloads(features::TSO)),
];

/// The kernel's number for a threshold that nothing reaches.
const OFF: u32 = u32::MAX;

/// One setting, of an interface or of the host.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The interface; none for a switch of the host.
    pub interface: Option<String>,
    /// Its name in the table, or that of the switch.
    pub name: String,
}

impl Setting {
    /// Returns whether a setting of that name is one of the host, and of no interface.
    pub fn is_of_host(name: &str) -> bool {
        name.starts_with("net.")
    }

    /// Its value now, in words; none if the interface or this kernel does not have it.
    pub fn value(&self) -> io::Result<Option<String>> {
        let Some(way) = way(&self.name) else { return Ok(self.switch()) };
        let index = self.index()?;
        Ok(match way {
            Way::Offloads(names) => {
                let on = features::active(index)?;
                let is_on = |name: &&str| on.iter().any(|active| active == name);
                let first = names.first().is_some_and(&is_on);
                // A later name alone is neither on nor off.
                (first || !names.iter().any(&is_on)).then(|| on_or_off(first))
            }
            Way::Queue => Some(device::device(index)?.queue.to_string()),
            Way::Radio(number) => {
                radio(Radio::open().and_then(|radio| radio.number(index, number)))?.map(text)
            }
            Way::PowerSave => radio(Radio::open().and_then(|radio| radio.power_save(index)))?.map(on_or_off),
        })
    }

    /// The step that gives it this value, or what would be accepted.
    pub fn step(&self, value: &str) -> io::Result<BringupStep> {
        let refused = || io::Error::new(io::ErrorKind::InvalidInput, "no value of this setting");
        let before = self.value()?.ok_or(io::ErrorKind::Unsupported)?;
        let number = |text: &str| if text == "off" { Some(OFF) } else { text.parse().ok() };
        let both = |of: &dyn Fn(&str) -> Option<What>| of(value).zip(of(&before)).ok_or_else(refused);
        let (change, undo) = match way(&self.name) {
            None => {
                let switch = |text: &str| What::Switch(key(&self.name), text.replace(' ', "\t"));
                (switch(value), switch(&before))
            }
            Some(Way::Queue) => both(&|text| text.parse().ok().map(What::Queue))?,
            Some(Way::Radio(_)) => both(&|text| Some(What::Radio(self.name.clone(), number(text)?)))?,
            Some(Way::PowerSave) => both(&|text| Some(What::PowerSave(text == "on")))?,
            Some(Way::Offloads(names)) => {
                let (on, is_wanted) = (features::active(self.index()?)?, value == "on");
                let differs = |name: &&&str| on.iter().any(|active| active == **name) != is_wanted;
                let names: Vec<_> = names.iter().filter(differs).map(|name| (*name).to_owned()).collect();
                (What::Offloads(names.clone(), is_wanted), What::Offloads(names, !is_wanted))
            }
        };
        let index = self.interface.as_ref().map_or(Ok(0), |_| self.index())?;
        Ok(step(self.interface.clone(), index, change, undo))
    }

    /// The name of the interface's driver, if it has one that tells.
    pub fn driver(&self) -> Option<String> {
        driver_of(self.interface.as_deref()?).ok()
    }

    fn index(&self) -> io::Result<u32> {
        netlink::index_of(self.interface.as_deref().unwrap_or_default()).map_err(io::Error::other)
    }

    fn switch(&self) -> Option<String> {
        Some(switch_of(&key(&self.name)).ok()?.replace('\t', " "))
    }
}

/// The step that runs a command of the user, which another command of the user undoes.
pub fn command_step(before: &str, after: &str) -> BringupStep {
    step(None, 0, What::Run(before.to_owned()), What::Run(after.to_owned()))
}

fn step(interface: Option<String>, index: u32, change: What, undo: What) -> BringupStep {
    let of = |what| InterfaceChange::new(index, what);
    BringupStep { interface, change: of(change), undo: vec![of(undo)] }
}

fn way(name: &str) -> Option<Way> {
    TABLE.iter().find(|(of, _)| *of == name).map(|(_, way)| *way)
}

/// The key below /proc/sys/net of `net.ipv4.tcp_sack`.
fn key(name: &str) -> String {
    name.trim_start_matches("net.").replace('.', "/")
}

fn on_or_off(is_on: bool) -> String {
    (if is_on { "on" } else { "off" }).to_owned()
}

/// A number in words.
pub(super) fn text(number: u32) -> String {
    if number == OFF { on_or_off(false) } else { number.to_string() }
}

/// An interface without a radio, and a kernel without Wi-Fi, have no settings of radios.
fn radio<T>(asked: io::Result<Option<T>>) -> io::Result<Option<T>> {
    match asked {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL)) =>
        {
            Ok(None)
        }
        told => told,
    }
}

/// Sets a number of the radio by its name.
pub(super) fn set_number(index: u32, name: &str, value: u32) -> Result<(), KernelRefusal> {
    match way(name) {
        Some(Way::Radio(number)) => Radio::open()?.set_number(index, number, value),
        _ => Err(io::Error::from(io::ErrorKind::InvalidInput).into()),
    }
}

/// Runs a command of the user. Its output is ours only if it fails.
pub(super) fn run(command: &str) -> Result<(), KernelRefusal> {
    let output = Command::new("sh").args(["-c", command]).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(KernelRefusal { error: io::Error::other(output.status.to_string()), said: Some(said) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(interface: &str, name: &str) -> Setting {
        Setting { interface: Some(interface.to_owned()), name: name.to_owned() }
    }

    #[test]
    fn a_loopback_has_offloads_and_a_queue_and_no_settings_of_radios() {
        assert_eq!(of("lo", "gro").value().expect("it answers").as_deref(), Some("on"));
        assert!(of("lo", "txqueuelen").value().expect("it answers").is_some());
        for radio in ["rts_threshold", "short_retries", "coverage_class", "power_save"] {
            assert_eq!(of("lo", radio).value().expect("it answers"), None, "{radio}");
            let refused = of("lo", radio).step("7").expect_err("it has none");
            assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
        }
    }

    #[test]
    fn a_step_undoes_itself_and_says_what_it_does() {
        let step = of("lo", "gro").step("off").expect("it can be set");
        assert_eq!(step.to_string(), "lo: turn rx-gro off");
        assert_eq!(step.undo[0].what, What::Offloads(vec!["rx-gro".into()], true));
        let switch = Setting { interface: None, name: "net.ipv4.tcp_rmem".to_owned() };
        let before = switch.value().expect("it answers").expect("it is there");
        let step = switch.step("4096 131072 6291456").expect("it can be set");
        let wanted = What::Switch("ipv4/tcp_rmem".into(), "4096\t131072\t6291456".into());
        assert_eq!(step.change.what, wanted);
        assert_eq!(step.undo[0].what, What::Switch("ipv4/tcp_rmem".into(), before.replace(' ', "\t")));
        assert!(Setting { interface: None, name: "net.ipv4.nothing".to_owned() }.step("1").is_err());
    }

    #[test]
    fn a_command_that_fails_says_why() {
        assert!(run("true").is_ok());
        let failed = run("echo it is so >&2; exit 3").expect_err("it fails");
        assert_eq!(failed.to_string(), "exit status: 3: it is so");
    }
}
