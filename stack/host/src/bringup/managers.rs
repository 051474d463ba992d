//! Programs of a machine that configure interfaces by themselves: told by their own means to leave one alone.

pub(super) mod networkd;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::namespace::OWN_NAMESPACE;
use crate::netlink::KernelRefusal;
use crate::running::run;

hopwise_core::named! {
    /// A program that may hold interfaces.
    pub(super) enum Manager {
        #[expect(clippy::enum_variant_names, reason = "the program has this name")]
        NetworkManager = "NetworkManager",
        Networkd = "systemd-networkd",
        Dhcpcd = "dhcpcd",
        WpaSupplicant = "wpa_supplicant",
    }
}

impl Manager {
    /// Its word in a file on disk.
    pub(super) fn word(self) -> &'static str {
        match self {
            Manager::NetworkManager => "networkmanager",
            Manager::Networkd => "networkd",
            Manager::Dhcpcd => "dhcpcd",
            Manager::WpaSupplicant => "wpa-supplicant",
        }
    }

    pub(super) fn read(word: &str) -> Option<Manager> {
        Manager::ALL.iter().copied().find(|manager| manager.word() == word)
    }

    /// The programs that hold an interface now.
    pub(super) fn of(index: u32, interface: &str) -> Vec<Manager> {
        Manager::ALL.iter().copied().filter(|manager| manager.holds(index, interface)).collect()
    }

    fn holds(self, index: u32, interface: &str) -> bool {
        match self {
            Manager::NetworkManager => said("nmcli", &["-t", "-f", "DEVICE,STATE", "device"])
                .is_ok_and(|said| is_managed(&said, interface)),
            Manager::Networkd => networkd::holds(index),
            // It does not tell which interfaces it has.
            Manager::Dhcpcd => runs_here("dhcpcd"),
            Manager::WpaSupplicant => supplicant(interface).is_ok_and(|said| is_at_work(&said)),
        }
    }

    /// Gives the interface to the program, or takes it away.
    pub(super) fn tell(self, index: u32, interface: &str, has: bool) -> Result<(), KernelRefusal> {
        let (program, words): (_, &[&str]) = match (self, has) {
            (Manager::Networkd, true) => return networkd::give(index),
            (Manager::Networkd, false) => return networkd::take(index, interface),
            (Manager::NetworkManager, true) => ("nmcli", &["device", "set", interface, "managed", "yes"]),
            (Manager::NetworkManager, false) => ("nmcli", &["device", "set", interface, "managed", "no"]),
            (Manager::Dhcpcd, true) => ("dhcpcd", &["-n", interface]),
            (Manager::Dhcpcd, false) => ("dhcpcd", &["-x", interface]),
            (Manager::WpaSupplicant, true) => ("wpa_cli", &["-i", interface, "reconnect"]),
            (Manager::WpaSupplicant, false) => ("wpa_cli", &["-i", interface, "disconnect"]),
        };
        match said(program, words) {
            // NetworkManager has taken its own supplicant along, and brings it back.
            Err(_) if self == Manager::WpaSupplicant && supplicant(interface).is_err() => Ok(()),
            done => done.map(drop),
        }
    }
}

/// The state of a supplicant's interface, if it has it.
fn supplicant(interface: &str) -> Result<String, KernelRefusal> {
    said("wpa_cli", &["-i", interface, "status"])
}

/// The output of a command that succeeds in time.
fn said(program: &str, words: &[&str]) -> Result<String, KernelRefusal> {
    let mut command = Command::new(program);
    let output = run(command.args(words), "")?;
    let [out, err] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).trim().to_owned());
    // wpa_cli succeeds whatever the answer is.
    if output.status.success() && !out.ends_with("FAIL") {
        return Ok(out);
    }
    let said = if err.is_empty() { out } else { err };
    let error = io::Error::other(format!("`{program} {}` failed", words.join(" ")));
    Err(KernelRefusal { error, said: (!said.is_empty()).then_some(said) })
}

/// A line for each device: its name, and its state.
fn is_managed(said: &str, interface: &str) -> bool {
    let state = said.lines().find_map(|line| line.strip_prefix(interface)?.strip_prefix(':'));
    state.is_some_and(|state| state != "unmanaged")
}

/// Lines such as `wpa_state=COMPLETED`.
fn is_at_work(said: &str) -> bool {
    let state = said.lines().find_map(|line| line.strip_prefix("wpa_state="));
    state.is_some_and(|state| !["DISCONNECTED", "INTERFACE_DISABLED"].contains(&state))
}

/// Returns whether a process of this name runs in this network namespace.
fn runs_here(program: &str) -> bool {
    let Ok(own) = fs::metadata(OWN_NAMESPACE) else { return false };
    let is_one = |process: &Path| {
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        let is_here = || fs::metadata(process.join("ns/net")).is_ok_and(|facts| facts.ino() == own.ino());
        name.trim_end() == program && is_here()
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().any(|entry| is_one(&entry.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_managed_unless_the_manager_says_no() {
        let said = "wlan0:connected\nwlan0mon:unmanaged\neth0:unmanaged\nlo:connected (externally)";
        assert!(is_managed(said, "wlan0"));
        for other in ["eth0", "wlan0mon", "wlan1", "wlan"] {
            assert!(!is_managed(said, other), "{other}");
        }
    }

    #[test]
    fn a_supplicant_that_was_told_to_rest_is_not_at_work() {
        assert!(is_at_work("bssid=02:00:00:00:00:01\nwpa_state=COMPLETED\n"));
        assert!(is_at_work("wpa_state=SCANNING"));
        assert!(!is_at_work("wpa_state=DISCONNECTED") && !is_at_work(""));
    }

    #[test]
    fn a_command_that_fails_is_told_with_its_words_and_one_that_is_not_there_by_its_error() {
        let failed = said("sh", &["-c", "echo no such device >&2; exit 3"]).expect_err("it fails");
        assert!(failed.to_string().ends_with("failed: no such device"), "{failed}");
        assert!(said("sh", &["-c", "echo FAIL"]).is_err());
        assert_eq!(said("sh", &["-c", "echo OK"]).expect("it does"), "OK");
        let absent = said("nosuchprogram", &[]).expect_err("it is not there");
        assert_eq!(absent.error.kind(), io::ErrorKind::NotFound);
        assert!(Manager::ALL.iter().all(|manager| Manager::read(manager.word()) == Some(*manager)));
    }
}
