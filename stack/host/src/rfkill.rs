//! The switch of a radio (rfkill): programs set its soft block, and a button or the firmware the hard one.
//!
//! A blocked radio cannot be taken up. Raspberry Pi OS blocks Wi-Fi until somebody gives the country.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The blocks of a radio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// A program's block, which a program can end.
    pub soft: bool,
    /// A button's or the firmware's block, which no program can end.
    pub hard: bool,
}

/// The folder of the kernel's devices.
const SYS: &str = "/sys";

/// The blocks of the radio of an interface. None if it has no such switch.
pub fn blocks_of(interface: &str) -> Option<Blocks> {
    blocks_below(Path::new(SYS), interface)
}

/// The same by the files of another folder than `/sys`.
pub fn blocks_below(sys: &Path, interface: &str) -> Option<Blocks> {
    let switch = switch_of(sys, interface)?;
    let is_set = |name: &str| fs::read_to_string(switch.join(name)).ok().map(|text| text.trim() == "1");
    Some(Blocks { soft: is_set("soft")?, hard: is_set("hard")? })
}

/// Begins or ends the soft block of the radio of an interface.
pub(crate) fn set_soft_block(interface: &str, is_blocked: bool) -> io::Result<()> {
    set_below(Path::new(SYS), interface, is_blocked)
}

fn set_below(sys: &Path, interface: &str, is_blocked: bool) -> io::Result<()> {
    let switch = switch_of(sys, interface)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "its radio has no switch (rfkill)"))?;
    fs::write(switch.join("soft"), if is_blocked { "1" } else { "0" })
}

fn switch_of(sys: &Path, interface: &str) -> Option<PathBuf> {
    let radio = sys.join("class/net").join(interface).join("phy80211");
    let mut entries = fs::read_dir(radio).ok()?.flatten();
    let is_switch = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("rfkill");
    entries.find(is_switch).map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_of_an_interfaces_radio_is_read_and_set() {
        let sys = std::env::temp_dir().join(format!("hopwise-rfkill-{}", std::process::id()));
        let switch = sys.join("class/net/wlan0/phy80211/rfkill3");
        fs::create_dir_all(&switch).expect("a folder");
        fs::create_dir_all(sys.join("class/net/eth0")).expect("a folder");
        for (name, text) in [("soft", "1\n"), ("hard", "0\n")] {
            fs::write(switch.join(name), text).expect("a file");
        }
        assert_eq!(blocks_below(&sys, "wlan0"), Some(Blocks { soft: true, hard: false }));
        set_below(&sys, "wlan0", false).expect("it has a switch");
        assert_eq!(blocks_below(&sys, "wlan0"), Some(Blocks::default()));
        assert_eq!(blocks_below(&sys, "eth0"), None);
        let absent = set_below(&sys, "eth0", false).expect_err("it has none");
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        let _ = fs::remove_dir_all(&sys);
    }
}
