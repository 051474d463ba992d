//! Changes from root, or any starting user, to a user with only the rights that the daemon needs.
//!
//! Capabilities belong to threads: all of this happens before there is a second one.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, fchown};
use std::path::Path;

use caps::{CapSet, Capability, CapsHashSet};
use nix::unistd::{Gid, Group, Uid, User, geteuid, setgroups, setresgid, setresuid};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// The user of a daemon that is started as root and names none.
const OWN: &str = "hopwise";
/// Numbers that neither distributions nor systemd give to a user, for a machine without that one. The user `nobody` has
/// other programs, which could end the daemon.
const NAMELESS: RangeInclusive<u32> = 60_706..=61_183;
/// The user `nobody`, also on a machine without names of users.
pub(crate) const NOBODY: u32 = 65_534;
/// The folder of sockets and states of all daemons.
const SHARED: &str = "/run/hopwise";

/// The capabilities for opening devices, sockets, packet programs, and other users' files.
const OPENING: [Capability; 8] = [
    Capability::CAP_NET_ADMIN,
    Capability::CAP_NET_RAW,
    Capability::CAP_NET_BIND_SERVICE,
    Capability::CAP_BPF,
    Capability::CAP_DAC_OVERRIDE,
    Capability::CAP_FOWNER,
    Capability::CAP_CHOWN,
    Capability::CAP_SETPCAP,
];
/// The capabilities of programs that are started meanwhile, such as nft.
const OF_PROGRAMS: [Capability; 2] = [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW];

/// The user to become.
#[derive(Clone, Debug)]
struct Someone {
    name: String,
    uid: Uid,
    gid: Gid,
}

#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    #[error("there is no user `{0}` on this machine")]
    NoSuchUser(String),
    /// A daemon that is not root can become no other user.
    #[error("only root can become `{0}`")]
    NotRoot(String),
    /// The kernel does not let root change its user, as in a container without these capabilities.
    #[error(
        "become `{name}`: {problem}; this takes the capabilities SETUID and SETGID: give them, or write \
                 `user: root` to stay root"
    )]
    Kept { name: String, problem: String },
    #[error("{doing}: {problem}")]
    System { doing: &'static str, problem: String },
}

/// Identity and capabilities of a daemon while it opens its devices and files, until [`narrow`](Privileges::narrow).
#[derive(Debug)]
pub struct Privileges {
    /// `None` if the daemon keeps its starting user.
    someone: Option<Someone>,
    /// The name of the user that it has then. A confined daemon cannot look it up.
    name: String,
}

impl Privileges {
    /// Finds the user. `named` is the one in the configuration.
    pub fn find(named: Option<&str>) -> Result<Privileges, PrivilegeError> {
        let someone = match named {
            Some(name) => Some(someone(name)?),
            None if geteuid().is_root() => Some(own()),
            None => None,
        };
        let name = someone.as_ref().map_or_else(|| name_of(geteuid()), |someone| someone.name.clone());
        Ok(Privileges { someone, name })
    }

    /// Users of daemons that root starts on this machine.
    pub fn of_daemons() -> Vec<u32> {
        vec![own().uid.as_raw()]
    }

    /// The number of the user that a daemon of this process becomes. `named` is the user in its configuration.
    pub fn uid_of_daemon(named: Option<&str>) -> u32 {
        let someone = Privileges::find(named).ok().and_then(|privileges| privileges.someone);
        someone.map_or_else(geteuid, |someone| someone.uid).as_raw()
    }

    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Returns whether a daemon that is root now will become another user.
    fn leaves_root(&self) -> bool {
        geteuid().is_root() && self.someone.as_ref().is_some_and(|someone| !someone.uid.is_root())
    }

    /// The privileges of a daemon's helper, which keeps its user.
    pub fn of_helper() -> Result<Privileges, PrivilegeError> {
        give_up_new()?;
        Ok(Privileges { someone: None, name: name_of(geteuid()) })
    }

    /// Returns whether the configuration asks for root.
    pub(crate) fn stay_root(&self) -> bool {
        self.someone.as_ref().is_some_and(|someone| someone.uid.is_root())
    }

    /// Makes the folder of a file while this is root, and gives it to the user, so that the user may remove the file. A
    /// folder that was there stays root's, but for /run/hopwise, which all daemons share.
    pub fn make_folder(&self, path: &Path) {
        let Some(someone) = self.someone.as_ref().filter(|_| self.leaves_root()) else { return };
        let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return };
        let is_new = !folder.exists();
        if is_new {
            // Without it, the later opening reports the error.
            let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(folder);
            drop(made);
        }
        // Other programs run as `nobody`, and would own the folder too.
        if (is_new || folder == Path::new(SHARED)) && someone.uid.as_raw() != NOBODY {
            // Without it, files stay until the next start.
            let given = give(folder, someone);
            drop(given);
        }
    }

    /// Becomes the user, with the capabilities for opening.
    pub fn begin(&self) -> Result<(), PrivilegeError> {
        give_up_new()?;
        let keep = failed("keep the capabilities that opening takes");
        let has = caps::read(None, CapSet::Permitted).map_err(|error| keep(&error))?;
        let has = |wanted: &[Capability]| -> CapsHashSet {
            wanted.iter().copied().filter(|capability| has.contains(capability)).collect()
        };
        let (opening, of_programs) = (has(&OPENING), has(&OF_PROGRAMS));
        if let Some(someone) = self.someone.as_ref().filter(|_| geteuid().is_root()) {
            become_user(someone)?;
        }
        bound(&opening)?;
        let sets = [
            (CapSet::Effective, &opening),
            (CapSet::Permitted, &opening),
            (CapSet::Inheritable, &of_programs),
            (CapSet::Ambient, &of_programs),
        ];
        sets.into_iter().try_for_each(|(set, kept)| caps::set(None, set, kept).map_err(|error| keep(&error)))
    }

    /// Keeps only these capabilities, in every set.
    pub fn narrow(&self, kept: &[Capability]) -> Result<CapsHashSet, PrivilegeError> {
        let keep = failed("keep the capabilities that the daemon needs");
        let has = caps::read(None, CapSet::Permitted).map_err(|error| keep(&error))?;
        let kept: CapsHashSet = kept.iter().copied().filter(|capability| has.contains(capability)).collect();
        bound(&kept)?;
        for set in [CapSet::Ambient, CapSet::Inheritable] {
            caps::clear(None, set).map_err(|error| keep(&error))?;
        }
        for set in [CapSet::Effective, CapSet::Permitted] {
            caps::set(None, set, &kept).map_err(|error| keep(&error))?;
        }
        Ok(kept)
    }
}

/// Other programs of this process's user can then neither read its memory nor stop it as a debugger does.
pub fn forbid_tracing() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Later executed programs cannot give more privileges.
fn give_up_new() -> Result<(), PrivilegeError> {
    rustix::thread::set_no_new_privs(true)
        .map_err(|error| failed("give up new privileges")(&io::Error::from(error)))
}

fn failed(doing: &'static str) -> impl Fn(&dyn fmt::Display) -> PrivilegeError {
    move |error| PrivilegeError::System { doing, problem: error.to_string() }
}

/// The user of that name, if this process may become it.
fn someone(name: &str) -> Result<Someone, PrivilegeError> {
    let user = User::from_name(name).map_err(|error| failed("look a user up")(&error))?;
    let user = user.ok_or_else(|| PrivilegeError::NoSuchUser(name.to_owned()))?;
    if !geteuid().is_root() && geteuid() != user.uid {
        return Err(PrivilegeError::NotRoot(name.to_owned()));
    }
    Ok(Someone { name: name.to_owned(), uid: user.uid, gid: user.gid })
}

/// A user of its own: programs of one user can end each other, and `nobody` has many.
fn own() -> Someone {
    let nameless = || {
        let is_free = |number: &u32| {
            let user = User::from_uid(Uid::from_raw(*number));
            let group = Group::from_gid(Gid::from_raw(*number));
            matches!((user, group), (Ok(None), Ok(None)))
        };
        let number = NAMELESS.into_iter().find(is_free).unwrap_or(NOBODY);
        let (uid, gid) = (Uid::from_raw(number), Gid::from_raw(number));
        Someone { name: name_of(uid), uid, gid }
    };
    someone(OWN).unwrap_or_else(|_| nameless())
}

fn name_of(uid: Uid) -> String {
    let user = User::from_uid(uid).ok().flatten();
    user.map_or_else(|| format!("uid {uid}"), |user| user.name)
}

/// Gives a folder of root's to the user. A link is not followed.
fn give(folder: &Path, someone: &Someone) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = File::from(open(folder, flags, Mode::empty())?);
    if folder.metadata()?.uid() != 0 {
        return Ok(());
    }
    fchown(&folder, Some(someone.uid.as_raw()), Some(someone.gid.as_raw()))
}

fn become_user(someone: &Someone) -> Result<(), PrivilegeError> {
    if someone.uid.is_root() {
        return Ok(());
    }
    let failed = |error: &dyn fmt::Display| PrivilegeError::Kept {
        name: someone.name.clone(),
        problem: error.to_string(),
    };
    setgroups(&[someone.gid]).map_err(|error| failed(&error))?;
    setresgid(someone.gid, someone.gid, someone.gid).map_err(|error| failed(&error))?;
    caps::securebits::set_keepcaps(true).map_err(|error| failed(&error))?;
    setresuid(someone.uid, someone.uid, someone.uid).map_err(|error| failed(&error))
}

/// Bounds the capabilities of later programs, if this process may. Without new privileges they get none anyway.
fn bound(kept: &CapsHashSet) -> Result<(), PrivilegeError> {
    let bound = failed("bound the capabilities");
    // After a change of the user no capability is effective, and this needs one itself.
    let permitted = caps::read(None, CapSet::Permitted).map_err(|error| bound(&error))?;
    if !permitted.contains(&Capability::CAP_SETPCAP) {
        return Ok(());
    }
    caps::set(None, CapSet::Effective, &permitted).map_err(|error| bound(&error))?;
    let all = caps::read(None, CapSet::Bounding).map_err(|error| bound(&error))?;
    let mut others = all.difference(kept);
    others.try_for_each(|other| caps::drop(None, CapSet::Bounding, *other).map_err(|error| bound(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_called_by_its_name_and_one_without_by_its_number() {
        assert_eq!(name_of(Uid::from_raw(0)), "root");
        assert_eq!(name_of(Uid::from_raw(4_294_000_000)), "uid 4294000000");
    }

    #[test]
    fn a_daemon_of_root_s_is_nobody_else_s() {
        let own = own();
        assert!(own.name == OWN || NAMELESS.contains(&own.uid.as_raw()), "{own:?}");
    }
}
