//! The guest's image: made once of Debian's packages, and kept in the user's cache.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use sha2::{Digest, Sha256};

use crate::serving::waited;
use hopwise_daemon::failure::Failure;

/// The pause between two looks at a maker.
const LOOK_EVERY: Duration = Duration::from_millis(200);

const SCRIPT: &str = include_str!("image.sh");
const EARLY: &str = include_str!("early.sh");
const INIT: &str = include_str!("init.sh");

/// The tools that Hopwise calls, and tools to debug drivers and daemons. Debian's library of C comes with them, for the
/// host's binary.
const PACKAGES: [&str; 23] = [
    "base-files",
    "bash",
    "busybox-static",
    "coreutils",
    "ethtool",
    "gawk",
    "grep",
    "iperf3",
    "iproute2",
    "iputils-ping",
    "iw",
    "kmod",
    "libgcc-s1",
    "ncurses-base",
    "nftables",
    "procps",
    "python3",
    "sed",
    "strace",
    "tcpdump",
    "util-linux",
    "wireless-regdb",
    "libpcap0.8",
];

/// An image that is complete.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) folder: PathBuf,
}

impl Image {
    /// Makes the image unless it is there. The lock that makers share goes with the last process of a killed one.
    /// A descriptor that becomes readable ends the making, and the next one goes on with what was fetched. Each set of
    /// further packages has an image of its own.
    pub(super) fn prepare(ends: Option<&OwnedFd>, more: &[String]) -> Result<Image, Failure> {
        let cache = cache()?;
        let qemu = if installed().is_some() { "there" } else { "fetch" };
        // The script reads it: a suite of Debian for the kernel, such as bookworm-backports.
        let suite = std::env::var("HOPWISE_HWSIM_SUITE").unwrap_or_default();
        let packages: BTreeSet<&str> = PACKAGES.into_iter().chain(more.iter().map(String::as_str)).collect();
        let folder = cache.join(format!("image-{}", key([qemu, &suite], &packages)));
        if folder.join("ready").exists() {
            // The mark of a use: an image that nobody uses for a month is removed.
            let _ = std::fs::write(folder.join("ready"), "");
            return Ok(Image { folder });
        }
        let mut making = Command::new("bash");
        making.args(["-c", SCRIPT, "image"]).arg(&cache).arg(&folder).arg(qemu).args(&packages);
        making.env("HOPWISE_EARLY", EARLY).env("HOPWISE_INIT", INIT);
        making.stdin(Stdio::null()).stdout(Stdio::null());
        let made = match ends {
            None => making.status().map(Some),
            Some(ends) => made_unless(&mut making, ends),
        };
        let kept = format!("{} keeps what was fetched", cache.display());
        let problem =
            match made.map_err(|error| Failure::failed("make the guest's image: run bash", error))? {
                Some(status) if status.success() => return Ok(Image { folder }),
                Some(_) => format!("what went wrong is above; {kept}"),
                None => format!("it was ended before it was ready; {kept}"),
            };
        Err(Failure::failed("make the guest's image", problem))
    }

    /// The machine's own qemu, or else the fetched one, which needs its own libraries and their loader.
    pub(super) fn qemu(&self) -> Vec<String> {
        if let Some(path) = installed() {
            return vec![path.to_string_lossy().into_owned()];
        }
        let at = |place: &str| self.folder.join("qemu/usr").join(place).to_string_lossy().into_owned();
        let libraries = at("lib/x86_64-linux-gnu");
        let mut words =
            vec![format!("{libraries}/ld-linux-x86-64.so.2"), "--library-path".to_owned(), libraries];
        words.push(at("bin/qemu-system-x86_64"));
        for place in ["share/qemu", "share/seabios", "lib/ipxe/qemu"] {
            words.extend(["-L".to_owned(), at(place)]);
        }
        words
    }
}

/// Runs the command with all its children in a group of their own. None if the descriptor became readable first: the
/// group is then ended.
fn made_unless(making: &mut Command, ends: &OwnedFd) -> io::Result<Option<ExitStatus>> {
    let mut child = making.process_group(0).spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if waited(&[ends], LOOK_EVERY).is_some() {
            kill_process_group(Pid::from_child(&child), Signal::TERM)?;
            child.wait()?;
            return Ok(None);
        }
    }
}

fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("qemu-system-x86_64")).find(|file| file.is_file())
}

fn cache() -> Result<PathBuf, Failure> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("HOPWISE_HWSIM_CACHE")
        .or_else(|| Some(named("XDG_CACHE_HOME")?.join("hopwise/hwsim")))
        .or_else(|| Some(named("HOME")?.join(".cache/hopwise/hwsim")))
        .ok_or_else(|| {
            Failure::failed("find a folder for the guest's image", "expected HOME or XDG_CACHE_HOME")
        })
}

/// A hash of all that an image is made from.
fn key(of: [&str; 2], packages: &BTreeSet<&str>) -> String {
    let mut hash = Sha256::new();
    for part in [SCRIPT, EARLY, INIT].iter().chain(&of).chain(packages) {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;
    use hopwise_daemon::signals::ring;

    #[test]
    fn another_way_to_make_an_image_has_another_key() {
        let few = BTreeSet::from(["iw"]);
        let usual = key(["there", ""], &few);
        assert_eq!(usual, key(["there", ""], &few));
        assert_eq!(usual.len(), 12);
        assert_ne!(usual, key(["fetch", ""], &few));
        assert_ne!(usual, key(["there", "bookworm-backports"], &few));
        assert_ne!(usual, key(["there", ""], &BTreeSet::from(["hostapd", "iw"])));
    }

    #[test]
    fn a_maker_ends_with_all_its_children_once_nothing_more_is_wanted() {
        let ends = eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor is left");
        let mut short = Command::new("true");
        assert!(made_unless(&mut short, &ends).expect("it runs").is_some_and(|status| status.success()));
        ring(&ends);
        let (heard, said) = io::pipe().expect("a descriptor is left");
        let mut long = Command::new("bash");
        long.args(["-c", "sleep 600 & sleep 600"]).stdout(said);
        assert_eq!(made_unless(&mut long, &ends).expect("it runs"), None);
        drop(long);
        // The pipe ends with its last writer.
        assert_eq!(io::read_to_string(heard).expect("it is read"), "");
    }

    #[test]
    fn scripts_are_sound_shell() {
        for (name, script) in [("image.sh", SCRIPT), ("early.sh", EARLY), ("init.sh", INIT)] {
            let read = Command::new("bash").args(["-n", "-c", script]).output().expect("bash runs");
            assert!(read.status.success(), "{name}: {}", String::from_utf8_lossy(&read.stderr));
        }
    }
}
