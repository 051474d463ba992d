//! Settings of a host, as trials change them: the table of their names, how each is read, and how it gets a value.
//!
//! A setting has its value in words: `on`, `off`, a number, or a time. Its step undoes itself as all steps do. Whoever
//! makes the step reads the value again: drivers take values that they then ignore.

use std::io;
use std::process::Command;
use std::time::Duration;

use super::change::{InterfaceChange, What};
use super::plan::BringupStep;
use crate::namespace::switch_of;
use crate::netlink::{self, KernelRefusal, batman_adv, device, features};
use crate::nl80211::airtime_limits::AirtimeLimits;
use crate::nl80211::radio::{Radio, RadioNumber};
use crate::running::run_alone;
use crate::sys::driver_of;

/// The way in which a setting is read and written, as a number.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Features of the device, by the kernel's names; the first one tells the value.
    Offloads(&'static [&'static str]),
    Queue,
    Radio(RadioNumber),
    Power,
    AirtimeLimits,
    OriginatorInterval,
}

/// The words for a number.
#[derive(Clone, Copy, Debug)]
enum Words {
    Number,
    Signed,
    OnOff,
    /// Hundredths of dBm.
    Power,
    /// A time in units of so many microseconds.
    Time(u32),
    /// One time for both limits of airtime.
    AirtimeLimits,
}

/// The kernel's unit of some times, in microseconds (TU).
const TIME_UNIT: u32 = 1_024;

/// The settings of interfaces, with nl80211's numbers of attributes and the bytes of their values (linux/nl80211.h). A
/// name that begins with `net.` is a switch of the host (sysctl).
const TABLE: [(&str, Way, Words); 19] = [
    ("rts_threshold", Way::Radio(RadioNumber::of_radio(64, 4)), Words::Number),
    ("fragmentation", Way::Radio(RadioNumber::of_radio(63, 4)), Words::Number),
    ("short_retries", Way::Radio(RadioNumber::of_radio(61, 1)), Words::Number),
    ("long_retries", Way::Radio(RadioNumber::of_radio(62, 1)), Words::Number),
    ("coverage_class", Way::Radio(RadioNumber::of_radio(89, 1)), Words::Number),
    ("power_save", Way::Radio(RadioNumber::POWER_SAVE), Words::OnOff),
    ("tx_power", Way::Power, Words::Power),
    ("txq_limit", Way::Radio(RadioNumber::of_radio(266, 4)), Words::Number),
    ("aql_limit", Way::AirtimeLimits, Words::AirtimeLimits),
    ("mesh_retry_timeout", Way::Radio(RadioNumber::of_mesh(1, 2)), Words::Time(1_000)),
    ("mesh_path_refresh_time", Way::Radio(RadioNumber::of_mesh(9, 4)), Words::Time(1_000)),
    ("mesh_hwmp_active_path_timeout", Way::Radio(RadioNumber::of_mesh(11, 4)), Words::Time(TIME_UNIT)),
    ("mesh_hwmp_rootmode", Way::Radio(RadioNumber::of_mesh(14, 1)), Words::Number),
    ("mesh_rssi_threshold", Way::Radio(RadioNumber::of_mesh(20, 4)), Words::Signed),
    ("orig_interval", Way::OriginatorInterval, Words::Time(1_000)),
    ("txqueuelen", Way::Queue, Words::Number),
    ("gro", Way::Offloads(&["rx-gro"]), Words::OnOff),
    ("gso", Way::Offloads(&["tx-generic-segmentation"]), Words::OnOff),
    ("tso", Way::Offloads(features::TSO), Words::OnOff),
];

/// The kernel's number for a threshold that nothing reaches, and ours for a power that the driver chooses.
pub(super) const OFF: u32 = u32::MAX;

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

    /// The setting of that name of an interface, or else of each interface that it has taken in: a bridge and the
    /// device of batman-adv have no radio of their own. None if no interface has it.
    pub fn on(interface: &str, name: &str) -> io::Result<Vec<Setting>> {
        let of = |interface: String| Setting { interface: Some(interface), name: name.to_owned() };
        let own = of(interface.to_owned());
        if own.value()?.is_some() {
            return Ok(vec![own]);
        }
        let index = own.index()?;
        let devices = netlink::all_interfaces()?.into_iter().filter_map(|other| device::device(other).ok());
        let taken = devices.filter(|device| device.master == Some(index)).map(|device| of(device.name));
        Ok(taken.filter(|setting| matches!(setting.value(), Ok(Some(_)))).collect())
    }

    /// The names of the settings that an interface has, or that an interface has which it has taken in.
    pub fn names_on(interface: &str) -> Vec<&'static str> {
        let has = |name: &&str| Setting::on(interface, name).is_ok_and(|found| !found.is_empty());
        TABLE.iter().map(|(name, ..)| *name).filter(has).collect()
    }

    /// Its value now, in words; none if the interface or this kernel does not have it.
    pub fn value(&self) -> io::Result<Option<String>> {
        match row(&self.name) {
            None => Ok(self.switch()),
            Some((way, words)) => Ok(now(way, self.index()?)?.map(|number| words.text(number))),
        }
    }

    /// A value in the words in which the setting is read back; none if it is no value of the setting.
    pub fn in_words(&self, value: &str) -> Option<String> {
        row(&self.name)
            .map_or_else(|| Some(value.to_owned()), |(_, words)| Some(words.text(words.number(value)?)))
    }

    /// The step that gives it this value, or what would be accepted.
    pub fn step(&self, value: &str) -> io::Result<BringupStep> {
        let Some((way, words)) = row(&self.name) else {
            let before = self.switch().ok_or(io::ErrorKind::Unsupported)?;
            let switch = |text: &str| What::Switch(key(&self.name), text.replace(' ', "\t"));
            return Ok(step(None, 0, switch(value), vec![switch(&before)]));
        };
        let index = self.index()?;
        let before = now(way, index)?.ok_or(io::ErrorKind::Unsupported)?;
        let wanted = words.number(value).ok_or(io::ErrorKind::InvalidInput)?;
        let of = |number| What::Setting(self.name.clone(), number);
        let (change, undo) = match way {
            Way::Offloads(names) => {
                let (on, is_wanted) = (features::active(index)?, wanted == 1);
                let differs = |name: &&&str| on.iter().any(|active| active == **name) != is_wanted;
                let names: Vec<_> = names.iter().filter(differs).map(|name| (*name).to_owned()).collect();
                (What::Offloads(names.clone(), is_wanted), vec![What::Offloads(names, !is_wanted)])
            }
            // No driver tells whether it has chosen the power itself. It chooses again, unless this is another power.
            Way::Power => (of(wanted), vec![of(before), of(OFF)]),
            _ => (of(wanted), vec![of(before)]),
        };
        Ok(step(self.interface.clone(), index, change, undo))
    }

    /// The name of the interface's driver, if it has one that tells.
    pub fn driver(&self) -> Option<String> {
        driver_of(self.interface.as_deref()?).ok().map(|(driver, _)| driver)
    }

    fn index(&self) -> io::Result<u32> {
        netlink::index_of(self.interface.as_deref().unwrap_or_default()).map_err(io::Error::other)
    }

    fn switch(&self) -> Option<String> {
        Some(switch_of(&key(&self.name)).ok()?.replace('\t', " "))
    }
}

impl Words {
    fn text(self, number: u32) -> String {
        match (self, number) {
            (Words::Number, OFF) | (Words::OnOff, 0) => "off".to_owned(),
            (Words::OnOff, 1) => "on".to_owned(),
            (Words::OnOff, _) => "on in part".to_owned(),
            (Words::Number, _) => number.to_string(),
            (Words::Signed, _) => number.cast_signed().to_string(),
            (Words::Power, OFF) => "auto".to_owned(),
            (Words::Power, _) => (f64::from(number) / 100.0).to_string(),
            (Words::Time(unit), _) => format!("{:?}", Duration::from_micros(unit.into()) * number),
            (Words::AirtimeLimits, _) => {
                let AirtimeLimits { low, high } = AirtimeLimits::of_number(number);
                let [low, high] = [low, high].map(|us| format!("{:?}", Duration::from_micros(us.into())));
                if low == high { low } else { format!("{low} and {high}") }
            }
        }
    }

    fn number(self, text: &str) -> Option<u32> {
        match (self, text) {
            (Words::Number, "off") | (Words::Power, "auto") => Some(OFF),
            (Words::Number, _) => text.parse().ok(),
            (Words::Signed, _) => text.parse().ok().map(i32::cast_unsigned),
            (Words::OnOff, _) => ["off", "on"].iter().position(|word| *word == text)?.try_into().ok(),
            (Words::Power, _) => text.parse::<u32>().ok()?.checked_mul(100),
            (Words::Time(unit), _) => Some(text.strip_suffix("us")?.parse::<u32>().ok()? / unit),
            (Words::AirtimeLimits, _) => {
                let us = text.strip_suffix("us")?.parse().ok()?;
                Some(AirtimeLimits { low: us, high: us }.number())
            }
        }
    }
}

/// The step that runs a command of the user, which another command of the user undoes.
pub fn command_step(before: &str, after: &str) -> BringupStep {
    step(None, 0, What::Run(before.to_owned()), vec![What::Run(after.to_owned())])
}

fn step(interface: Option<String>, index: u32, change: What, undo: Vec<What>) -> BringupStep {
    let of = |what| InterfaceChange::new(index, what);
    BringupStep { interface, change: of(change), undo: undo.into_iter().map(of).collect() }
}

fn row(name: &str) -> Option<(Way, Words)> {
    TABLE.iter().find(|(of, ..)| *of == name).map(|(_, way, words)| (*way, *words))
}

/// The key below /proc/sys/net of `net.ipv4.tcp_sack`.
fn key(name: &str) -> String {
    name.trim_start_matches("net.").replace('.', "/")
}

/// The number of a setting in words.
pub(super) fn told(name: &str, number: u32) -> String {
    row(name).map_or_else(|| number.to_string(), |(_, words)| words.text(number))
}

/// The number of a setting now; none if the interface or this kernel does not have it.
fn now(way: Way, index: u32) -> io::Result<Option<u32>> {
    let told = match way {
        Way::Offloads(names) => features::active(index).map(|on| Some(offloads(&on, names))),
        Way::Queue => device::device(index).map(|device| Some(device.queue)),
        Way::Radio(number) => Radio::open().and_then(|radio| radio.number(index, number)),
        Way::Power => Radio::open().and_then(|radio| Ok(radio.state(index)?.and_then(|state| state.power))),
        Way::AirtimeLimits => AirtimeLimits::read(index).map(Some),
        Way::OriginatorInterval => batman_adv::originator_interval(index),
    };
    let is_absent = |error: &io::Error| {
        error.kind() == io::ErrorKind::NotFound
            || matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL))
    };
    match told {
        Err(error) if is_absent(&error) => Ok(None),
        told => told,
    }
}

/// 1 if the first one is on, 0 if all are off. 2 stands for a device that has some others on alone.
fn offloads(on: &[String], names: &[&str]) -> u32 {
    let is_on = |name: &&str| on.iter().any(|active| active == name);
    names.iter().position(is_on).map_or(0, |nth| if nth == 0 { 1 } else { 2 })
}

/// Gives the setting of that name this value, unless it has it.
pub(super) fn set(index: u32, name: &str, value: u32) -> Result<(), KernelRefusal> {
    let Some((way, _)) = row(name) else { return Err(io::Error::from(io::ErrorKind::InvalidInput).into()) };
    if now(way, index).ok().flatten() == Some(value) {
        return Ok(());
    }
    match way {
        // Offloads have changes of their own.
        Way::Offloads(_) => Err(io::Error::from(io::ErrorKind::InvalidInput).into()),
        Way::Queue => device::set_number(index, libc::IFLA_TXQLEN, value),
        Way::Radio(number) => Radio::open()?.set_number(index, number, value),
        Way::Power => Radio::open()?.set_power(index, (value != OFF).then_some(value)),
        Way::AirtimeLimits => Ok(AirtimeLimits::of_number(value).set(index)?),
        Way::OriginatorInterval => Ok(batman_adv::set_originator_interval(index, value)?),
    }
}

/// Runs a command of the user, for a while at most. What it leaves running ends with it, so that nothing outlives the
/// run. Its output is ours only if it fails.
pub(super) fn run(command: &str) -> Result<(), KernelRefusal> {
    let output = run_alone(Command::new("sh").args(["-c", command]))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(KernelRefusal { error: io::Error::other(output.status.to_string()), said: Some(said) })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;
    use crate::poller::wait_to_read;

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
    fn a_number_is_read_from_its_words_and_told_in_them() {
        for (words, text, number, told) in [
            (Words::Number, "off", OFF, "off"),
            (Words::Number, "500", 500, "500"),
            (Words::Signed, "-70", (-70_i32).cast_unsigned(), "-70"),
            (Words::OnOff, "on", 1, "on"),
            (Words::OnOff, "off", 0, "off"),
            (Words::Power, "10", 1_000, "10"),
            (Words::Power, "auto", OFF, "auto"),
            (Words::Time(1_000), "500000us", 500, "500ms"),
            (Words::Time(TIME_UNIT), "5000000us", 4_882, "4.999168s"),
            (Words::AirtimeLimits, "1500us", 1_500 << 16 | 1_500, "1.5ms"),
        ] {
            assert_eq!((words.number(text), words.text(number).as_str()), (Some(number), told), "{words:?}");
        }
        for (words, text) in [(Words::OnOff, "in part"), (Words::Number, "-1"), (Words::Time(1_000), "5")] {
            assert_eq!(words.number(text), None, "{words:?} {text}");
        }
        assert_eq!(Words::AirtimeLimits.text(12_000 << 16 | 5_000), "5ms and 12ms");
        assert_eq!(of("w0", "orig_interval").in_words("1000000us").as_deref(), Some("1s"));
    }

    /// TSO of IPv6 stays on where only TSO of IPv4 is turned off.
    #[test]
    fn offloads_of_which_a_later_one_alone_is_on_are_neither_on_nor_off() {
        let of = |on: &[&str]| {
            let on: Vec<_> = on.iter().map(|name| (*name).to_owned()).collect();
            Words::OnOff.text(offloads(&on, features::TSO))
        };
        assert_eq!(of(&["tx-tcp-segmentation", "tx-tcp6-segmentation"]), "on");
        assert_eq!(of(&["rx-gro"]), "off");
        assert_eq!(of(&["tx-tcp6-segmentation"]), "on in part");
    }

    #[test]
    fn what_a_command_leaves_running_ends_with_it() {
        let file = std::env::temp_dir().join(format!("hopwise-left-{}", std::process::id()));
        run(&format!("sleep 10000 & echo $! > {}", file.display())).expect("it ends");
        let id = std::fs::read_to_string(&file).expect("it was written");
        std::fs::remove_file(&file).expect("it is there");
        let id = id.trim().parse().ok().and_then(Pid::from_raw).expect("a process");
        if let Ok(ended) = pidfd_open(id, PidfdFlags::empty()) {
            wait_to_read(ended.as_fd(), Duration::from_secs(30)).expect("it was killed");
        }
    }

    #[test]
    fn a_command_that_fails_says_why() {
        assert!(run("true").is_ok());
        let failed = run("echo it is so >&2; exit 3").expect_err("it fails");
        assert_eq!(failed.to_string(), "exit status: 3: it is so");
    }
}
