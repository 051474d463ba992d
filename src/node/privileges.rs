//! From root to a user who may do no more than the daemon needs.
//!
//! Capabilities belong to threads: this happens before there is a second one.

use std::fmt;
use std::io;

use caps::{CapSet, Capability, CapsHashSet};
use nix::unistd::{Gid, Uid, User, geteuid, setgroups, setresgid, setresuid};

/// Whom to become.
#[derive(Clone, Debug)]
pub(super) struct Someone {
    pub(super) name: String,
    pub(super) uid: Uid,
    pub(super) gid: Gid,
}

#[derive(Debug)]
pub(super) enum PrivilegeError {
    NoSuchUser(String),
    /// Who is not root can become nobody else.
    NotRoot(String),
    System {
        doing: &'static str,
        problem: String,
    },
}

impl fmt::Display for PrivilegeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrivilegeError::NoSuchUser(name) => write!(f, "there is no user `{name}` on this machine"),
            PrivilegeError::NotRoot(name) => write!(f, "only root can become `{name}`"),
            PrivilegeError::System { doing, problem } => write!(f, "{doing}: {problem}"),
        }
    }
}

impl std::error::Error for PrivilegeError {}

pub(super) fn find(name: &str) -> Result<Someone, PrivilegeError> {
    let system =
        |error: nix::Error| PrivilegeError::System { doing: "look a user up", problem: error.to_string() };
    let user = User::from_name(name).map_err(system)?;
    let user = user.ok_or_else(|| PrivilegeError::NoSuchUser(name.to_owned()))?;
    if !geteuid().is_root() && geteuid() != user.uid {
        return Err(PrivilegeError::NotRoot(name.to_owned()));
    }
    Ok(Someone { name: name.to_owned(), uid: user.uid, gid: user.gid })
}

/// Becomes `someone`, for good, with nothing but `kept`.
pub(super) fn become_only(someone: &Someone, kept: &[Capability]) -> Result<(), PrivilegeError> {
    let kept: CapsHashSet = kept.iter().copied().collect();
    let failed = |doing: &'static str| {
        move |error: &dyn fmt::Display| PrivilegeError::System { doing, problem: error.to_string() }
    };
    if geteuid().is_root() {
        let groups = failed("leave root's groups");
        setgroups(&[someone.gid]).map_err(|error| groups(&error))?;
        setresgid(someone.gid, someone.gid, someone.gid).map_err(|error| groups(&error))?;
        let become_user = failed("become the user");
        caps::securebits::set_keepcaps(true).map_err(|error| become_user(&error))?;
        setresuid(someone.uid, someone.uid, someone.uid).map_err(|error| become_user(&error))?;
    }
    let keep = failed("keep the capabilities that links need");
    caps::set(None, CapSet::Effective, &kept).map_err(|error| keep(&error))?;
    caps::set(None, CapSet::Permitted, &kept).map_err(|error| keep(&error))?;
    // What a link has changed in the system, a program such as nft takes back: it gets the same.
    caps::set(None, CapSet::Inheritable, &kept).map_err(|error| keep(&error))?;
    caps::set(None, CapSet::Ambient, &kept).map_err(|error| keep(&error))?;
    // Nothing that is executed from here on can give more.
    rustix::thread::set_no_new_privs(true)
        .map_err(|error| failed("give up new privileges")(&io::Error::from(error)))
}
