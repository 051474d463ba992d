//! The inner process enters namespaces of its own, or learns what forbids that.

use std::ffi::CString;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid};

use super::EnclosureError;
use crate::sys;

/// The file that names the servers of names.
const RESOLVER: &str = "/etc/resolv.conf";

/// A system that lets this user have no namespaces.
#[derive(Debug)]
pub struct Forbidden {
    error: io::Error,
    /// Each setting that forbids it, with the remedy.
    settings: Vec<&'static str>,
}

/// A setting of the kernel, the value that forbids namespaces, and the remedy.
const SETTINGS: [(&str, &str, &str); 6] = [
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "kernel.unprivileged_userns_clone is 0; to allow it: sudo sysctl kernel.unprivileged_userns_clone=1",
    ),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns is 1; to allow it: \
         sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for hopwise with `userns,`",
    ),
    (
        "user/max_user_namespaces",
        "0",
        "user.max_user_namespaces is 0; to allow it: sudo sysctl user.max_user_namespaces=10000",
    ),
    (
        "user/max_net_namespaces",
        "0",
        "user.max_net_namespaces is 0; to allow it: sudo sysctl user.max_net_namespaces=10000",
    ),
    (
        "user/max_mnt_namespaces",
        "0",
        "user.max_mnt_namespaces is 0; to allow it: sudo sysctl user.max_mnt_namespaces=10000",
    ),
    (
        "user/max_uts_namespaces",
        "0",
        "user.max_uts_namespaces is 0; to allow it: sudo sysctl user.max_uts_namespaces=10000",
    ),
];

impl Forbidden {
    fn new(error: io::Error) -> Forbidden {
        Forbidden { error, settings: settings_of(Path::new("/proc/sys")) }
    }
}

/// The remedies for all settings in this folder that forbid namespaces.
fn settings_of(folder: &Path) -> Vec<&'static str> {
    let forbids = |(path, value, _): &&(&str, &str, &str)| {
        fs::read_to_string(folder.join(path)).is_ok_and(|text| text.trim() == *value)
    };
    SETTINGS.iter().filter(forbids).map(|(_, _, remedy)| *remedy).collect()
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this system lets the user make no network namespace ({}): ", self.error)?;
        if self.settings.is_empty() {
            return f.write_str(
                "no setting of the kernel forbids it, so that a container or a sandbox does: run it outside, or let \
                 the container make user namespaces",
            );
        }
        f.write_str(&self.settings.join("; "))
    }
}

/// Moves this process, which must have one thread, into a user, a network, a mount and a UTS namespace of its own. It
/// keeps its user and group, and has all capabilities inside until it executes another program. A root keeps its number
/// by that, and with it what the kernel asks of the number alone: files of root's, and switches of the machine in
/// `/proc/sys`. Only its network and its name are its own. `resolver` takes the place of `/etc/resolv.conf` there, and
/// each copy that of the file after it, if the kernel lets it.
pub fn enter(resolver: Option<&Path>, copies: &[[PathBuf; 2]]) -> Result<(), EnclosureError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let forbidden = |error| EnclosureError::Forbidden(Forbidden::new(error));
    sys::enter_own_namespaces().map_err(forbidden)?;
    // Without this the kernel takes no map of groups from a user (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny").map_err(forbidden)?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(forbidden)?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(forbidden)?;
    if let Some(resolver) = resolver {
        cover(resolver, Path::new(RESOLVER))
            .map_err(EnclosureError::step("give the command a resolv.conf"))?;
    }
    for [copy, file] in copies {
        // The command then sees the file itself.
        let _ = cover(copy, file);
    }
    Ok(())
}

fn cover(from: &Path, over: &Path) -> io::Result<()> {
    // A link leads out of the folder, and cannot be covered itself.
    let over = fs::canonicalize(over)?;
    let [from, over] = [from, &over].map(|path| CString::new(path.as_os_str().as_bytes()));
    sys::cover_file(&from?, &over?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_each_setting_that_forbids_and_its_remedy() {
        let folder = std::env::temp_dir().join(format!("hopwise-forbids-{}", std::process::id()));
        for part in ["kernel", "user"] {
            fs::create_dir_all(folder.join(part)).expect("it can be made");
        }
        let set = |path: &str, value: &str| fs::write(folder.join(path), value).expect("it can be written");
        let told = || {
            let settings = settings_of(&folder);
            Forbidden { error: io::ErrorKind::PermissionDenied.into(), settings }.to_string()
        };
        assert!(told().contains("a container or a sandbox"), "{}", told());
        set("kernel/unprivileged_userns_clone", "1\n");
        set("kernel/apparmor_restrict_unprivileged_userns", "0\n");
        set("user/max_user_namespaces", "100\n");
        assert!(told().contains("a container or a sandbox"), "{}", told());
        set("kernel/unprivileged_userns_clone", "0\n");
        assert!(told().contains("sudo sysctl kernel.unprivileged_userns_clone=1"), "{}", told());
        set("kernel/apparmor_restrict_unprivileged_userns", "1\n");
        set("user/max_user_namespaces", "0\n");
        set("user/max_net_namespaces", "0\n");
        set("user/max_mnt_namespaces", "0\n");
        set("user/max_uts_namespaces", "0\n");
        let all = told();
        for (_, _, remedy) in SETTINGS {
            assert!(all.contains(remedy), "{all}");
        }
        fs::remove_dir_all(&folder).expect("it is there");
    }
}
