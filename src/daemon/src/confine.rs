//! The last step of a daemon's start: it gives up all that it no longer needs, for good.

use std::borrow::Cow;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use caps::Capability;
use hopwise_host::confine::{
    CallRefusal, Calls, Enforced, Paths, give_up_calls, give_up_files, try_a_refused_call,
};
use hopwise_host::own_file::folder_of;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

use super::log;
use super::privileges::{Privileges, forbid_tracing};
use crate::failure::Failure;

hopwise_core::named! {
    /// The key `confine`.
    #[derive(Default)]
    pub enum Confine {
        #[default]
        On = "on",
        /// The kernel's log names the calls that would be refused.
        Log = "log",
        Off = "off",
    }
}

impl FromStr for Confine {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Confine, &'static str> {
        let known = Confine::ALL.iter().find(|known| known.name() == text);
        known.copied().ok_or("expected on, log or off")
    }
}

impl JsonSchema for Confine {
    fn schema_name() -> Cow<'static, str> {
        "Confine".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["on", "log", "off", true, false] })
    }
}

impl<'de> Deserialize<'de> for Confine {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Confine, D::Error> {
        // YAML 1.1 reads `on` and `off` as true and false.
        match serde_yaml::Value::deserialize(from)? {
            serde_yaml::Value::Bool(is_on) => Ok(if is_on { Confine::On } else { Confine::Off }),
            serde_yaml::Value::String(text) => text.parse().map_err(de::Error::custom),
            _ => Err(de::Error::custom("expected on, log or off")),
        }
    }
}

/// Files and calls that a daemon needs after it has opened everything.
#[derive(Clone, Debug, Default)]
pub struct AccessNeeds {
    pub capabilities: Vec<Capability>,
    pub paths: Paths,
    /// Address families of new sockets.
    pub families: Vec<i32>,
}

/// The descriptors that have to stay open for the confinement to hold.
#[derive(Debug)]
pub struct Confined {
    _folders: Vec<OwnedFd>,
}

/// Gives up everything else, and logs it. The log is written from here on.
pub fn confine(how: Confine, privileges: &Privileges, needs: &AccessNeeds) -> Result<Confined, Failure> {
    let failed = |error: &dyn fmt::Display| Failure::failed("confine the daemon", error);
    let mut capabilities = needs.capabilities.clone();
    // A daemon stays root to reach files, and some files belong to other users.
    capabilities.extend(privileges.stay_root().then_some(Capability::CAP_DAC_OVERRIDE));
    let kept = privileges.narrow(&capabilities).map_err(|error| failed(&error))?;
    let mut kept: Vec<_> = kept.iter().map(|one| one.to_string().replace("CAP_", "")).collect();
    kept.sort();
    let (user, capabilities) = (privileges.name(), kept.join(" "));
    let folders = match how {
        Confine::On => {
            forbid_tracing().map_err(|error| failed(&error))?;
            let folders = files(&needs.paths)?;
            calls(needs, CallRefusal::Fails);
            folders
        }
        Confine::Log => {
            calls(needs, CallRefusal::IsLogged);
            Vec::new()
        }
        Confine::Off => Vec::new(),
    };
    tracing::info!(user, capabilities, confine = %how, "privileges dropped");
    if user == "nobody" {
        tracing::warn!("other programs run as `nobody` and can end this one: name another `user`");
    }
    // Until here, identity and capabilities belong to a single thread.
    log::flow().map_err(Failure::during("start the log"))?;
    Ok(Confined { _folders: folders })
}

fn files(paths: &Paths) -> Result<Vec<OwnedFd>, Failure> {
    match give_up_files(paths).map_err(Failure::during("give up files"))? {
        Enforced::Fully(folders) => Ok(folders),
        Enforced::Partly(folders) => {
            tracing::info!("this kernel's Landlock is an older one, and holds a part of the rules");
            Ok(folders)
        }
        Enforced::No => {
            tracing::warn!("this kernel has no Landlock: the daemon reaches each file that its user may");
            Ok(Vec::new())
        }
    }
}

/// A kernel without seccomp filters no calls.
fn calls(needs: &AccessNeeds, refusal: CallRefusal) {
    let calls = Calls { families: needs.families.clone() };
    if let Err(error) = give_up_calls(&calls, refusal) {
        tracing::warn!(%error, "this kernel filters no system calls");
    } else if refusal == CallRefusal::Fails && !try_a_refused_call() {
        tracing::warn!("this kernel took the filter of system calls and does not follow it");
    }
}

/// The folder of a file, and the folder of the target if the file is a link.
pub fn folders_of(path: &Path) -> Vec<PathBuf> {
    let linked = path.canonicalize().ok().map(|path| folder_of(&path).to_owned());
    std::iter::once(folder_of(path).to_owned()).chain(linked).collect()
}
