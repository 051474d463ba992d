//! Ends a proxy that hangs. Its packets then go on without it, as they do when it is killed.
//!
//! The watcher holds a descriptor of the proxy's process, so that no other process can be killed in its place.

use std::borrow::Cow;
use std::io::{self, Read};
use std::time::Duration;

use hopwise_lab::units::Time;
use rustix::process::{PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

use crate::daemon::log;
use crate::daemon::privileges::{Privileges, forbid_tracing};
use crate::daemon::watchdog::{Watcher, comes_again};
use crate::failure::Failure;

/// Time without commands that a proxy is allowed; `None` without a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patience(pub(super) Option<Duration>);

impl Default for Patience {
    fn default() -> Patience {
        Patience(Some(Duration::from_secs(1)))
    }
}

impl JsonSchema for Patience {
    fn schema_name() -> Cow<'static, str> {
        "Patience".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<Time>(), { "enum": ["off", false] }] })
    }
}

impl<'de> Deserialize<'de> for Patience {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Patience, D::Error> {
        // YAML 1.1 reads `off` as false.
        match serde_yaml::Value::deserialize(from)? {
            serde_yaml::Value::Bool(false) => Ok(Patience(None)),
            serde_yaml::Value::String(text) if text == "off" => Ok(Patience(None)),
            value => serde_yaml::from_value(value)
                .map(|Time(time)| Patience(Some(time)))
                .map_err(|error| de::Error::custom(format_args!("{error}, or off"))),
        }
    }
}

pub(super) fn start(patience: Duration) -> io::Result<Watcher> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    Watcher::start(&["proxy", "watch", &format!("{}us", patience.as_micros())], own)
}

/// The watcher's side: standard input brings beats, standard output is the proxy's process. The watch begins with the
/// first beat, since a start may take long.
pub(super) fn watch(patience: Duration) -> Result<(), Failure> {
    log::begin();
    let failed = |error: io::Error| Failure::failed("watch the proxy", error);
    // The watcher runs as the proxy's user, which may end the proxy without further privileges.
    let narrowed = Privileges::of_helper().and_then(|privileges| privileges.narrow(&[]));
    narrowed.map_err(|error| Failure::failed("watch the proxy", error))?;
    forbid_tracing().map_err(failed)?;
    log::flow().map_err(failed)?;
    let mut beats = io::stdin().lock();
    let mut buffer = [0; 64];
    while beats.read(&mut buffer).map_err(failed)? > 0 {
        if !comes_again(&beats, patience).map_err(failed)? {
            tracing::error!(?patience, "the proxy hangs and is killed: packets go on without it");
            let killed = pidfd_send_signal(io::stdout(), Signal::KILL);
            return killed.map_err(|error| failed(error.into()));
        }
    }
    Ok(())
}
