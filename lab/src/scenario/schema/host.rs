//! `host:`, settings of the hosts of live worlds.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Time;
use crate::words::OrOff;

/// Settings of the hosts of a live world during a run (default: as they are). Each is read back before and after the
/// run, and has its old value again after it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::scenario) struct HostConfig {
    /// RTS/CTS precedes each frame of at least this size (default: as it is). off: none. In worlds sim, netns and hwsim
    /// it replaces `radio.rts_threshold`.
    #[schemars(extend("x-range" = "0 to 65536", "x-unit" = "bytes"))]
    pub(in crate::scenario) rts_threshold: Option<OrOff<u32>>,
    /// Size above which a frame is cut into fragments, an even number (default: as it is). off: never. Only in worlds
    /// mesh and hwsim, and simulated radios do not cut.
    #[schemars(extend("x-range" = "256 to 8000", "x-unit" = "bytes"))]
    pub(in crate::scenario) fragmentation: Option<OrOff<u32>>,
    /// Tries of a frame shorter than the RTS threshold (default: as it is). Only in worlds mesh and hwsim, and
    /// simulated radios count their tries themselves.
    #[schemars(extend("x-range" = "1 to 255", "x-unit" = "tries"))]
    pub(in crate::scenario) short_retries: Option<u8>,
    /// Tries of a frame longer than the RTS threshold (default: as it is). Only in worlds mesh and hwsim.
    #[schemars(extend("x-range" = "1 to 255", "x-unit" = "tries"))]
    pub(in crate::scenario) long_retries: Option<u8>,
    /// Coverage class (default: as it is). A station waits 3 µs longer for an answer with each class, as for 450 m more
    /// of distance. Only in worlds mesh and hwsim.
    #[schemars(extend("x-range" = "0 to 31", "x-unit" = "classes"))]
    pub(in crate::scenario) coverage_class: Option<u8>,
    /// The radio sleeps between frames (default: as it is). Only in worlds mesh and hwsim.
    pub(in crate::scenario) power_save: Option<bool>,
    /// Power of what the radio sends (default: as it is). A regulatory domain may allow less. Only in worlds mesh and
    /// hwsim, and simulated radios keep theirs.
    #[schemars(extend("x-range" = "0 to 36", "x-unit" = "dBm"))]
    pub(in crate::scenario) tx_power: Option<u8>,
    /// Packets that may wait in mac80211's own queues, which are FQ-CoDel (default: as it is). Only in worlds mesh and
    /// hwsim.
    #[schemars(extend("x-range" = "1 to 1000000", "x-unit" = "packets"))]
    pub(in crate::scenario) txq_limit: Option<u32>,
    /// Airtime that may wait in the driver, of all access categories: AQL (default: as it is). Linux has 5ms for a
    /// station beside further ones and 12ms for a station alone; both get this value. It needs debugfs. Only in worlds
    /// mesh and hwsim.
    #[schemars(extend("x-range" = "1us to 65ms"))]
    pub(in crate::scenario) aql_limit: Option<Time>,
    /// Time after which a station of an 802.11s mesh repeats a request to peer (default: as it is). Only in worlds mesh
    /// and hwsim.
    #[schemars(extend("x-range" = "1ms to 255ms"))]
    pub(in crate::scenario) mesh_retry_timeout: Option<Time>,
    /// Time before the end of a path of an 802.11s mesh from which a packet makes the station ask again (default: as it
    /// is). Only in worlds mesh and hwsim.
    #[schemars(extend("x-range" = "1ms to 1h"))]
    pub(in crate::scenario) mesh_path_refresh_time: Option<Time>,
    /// Lifetime of a path of an 802.11s mesh, in whole units of 1024 us (default: as it is). Only in worlds mesh and
    /// hwsim.
    #[schemars(extend("x-range" = "2ms to 67s"))]
    pub(in crate::scenario) mesh_hwmp_active_path_timeout: Option<Time>,
    /// Root mode of a station of an 802.11s mesh (default: as it is). 0: no root. 2, 3: it sends requests to all
    /// stations, without and with replies. 4: it announces itself. Only in worlds mesh and hwsim.
    #[schemars(extend("x-range" = "0 to 4", "x-unit" = "no unit"))]
    pub(in crate::scenario) mesh_hwmp_rootmode: Option<u8>,
    /// Least signal of a station with which an 802.11s mesh peers (default: as it is). 0: any. Only in worlds mesh and
    /// hwsim.
    #[schemars(extend("x-range" = "-255 to 0", "x-unit" = "dBm"))]
    pub(in crate::scenario) mesh_rssi_threshold: Option<i16>,
    /// Time between originator messages of batman-adv (default: as it is). Only in worlds mesh and hwsim.
    #[schemars(extend("x-range" = "40ms to 1h"))]
    pub(in crate::scenario) orig_interval: Option<Time>,
    /// Packets that may wait in the queue of an interface (default: as it is). A queue such as fq_codel has a limit of
    /// its own, and so has mac80211. Only in live worlds.
    #[schemars(extend("x-range" = "1 to 1000000", "x-unit" = "packets"))]
    pub(in crate::scenario) txqueuelen: Option<u32>,
    /// An interface joins segments that arrive: GRO (default: as it is). Only in live worlds.
    pub(in crate::scenario) gro: Option<bool>,
    /// The kernel cuts segments as late as it can: GSO (default: as it is). Only in live worlds.
    pub(in crate::scenario) gso: Option<bool>,
    /// An interface cuts segments of TCP itself: TSO (default: as it is). Only in live worlds.
    pub(in crate::scenario) tso: Option<bool>,
    /// Switches of the kernel by name, such as `net.ipv4.tcp_slow_start_after_idle: 0` (default: none). All begin with
    /// `net.`, and none changes more than itself. Only in live worlds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub(in crate::scenario) sysctl: BTreeMap<String, serde_yaml::Value>,
    /// Commands for a shell before the run, each by the name of its node or under `all` (default: none). Each has 30 s,
    /// and what it leaves in the background ends with it. Only in live worlds. They run as the user of `hopwise` there:
    /// read a scenario of somebody else before you run it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(in crate::scenario) before: BTreeMap<String, String>,
    /// Commands that undo those of `before`, in the same form, also after a trial that was killed (default: none).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(in crate::scenario) after: BTreeMap<String, String>,
    /// Time between the changes and the run (default 0s).
    #[schemars(extend("x-range" = "at most 20s"))]
    pub(in crate::scenario) settle: Option<Time>,
}
