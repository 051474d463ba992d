//! The queue between a node and its radio: `radio.queue`.

use hopwise_air::dcf::MacConfig;
use hopwise_air::phy::Phy;
use hopwise_core::queue::{AirtimeLimits, FqCodelConfig};
use serde_yaml::Value;

use super::check;
use super::schema::ScenarioFile;
use crate::located::{Checked, Document, YamlPath};
use crate::world::World;

/// Linux's queue, if the scenario has it.
pub(super) fn read(
    document: &Document,
    file: &ScenarioFile,
    (phy, mac): (&Phy, &MacConfig),
) -> Checked<Option<FqCodelConfig>> {
    let (queue, at) = (&file.radio.queue, YamlPath::root().key("radio").key("queue"));
    let given = document.value_at("radio.queue").and_then(Value::as_mapping);
    let is_given = |key: &str| given.is_some_and(|given| given.contains_key(key));
    if queue.is_drop_tail() {
        let mut keys = given.into_iter().flat_map(|given| given.keys()).filter_map(Value::as_str);
        let odd = keys.find(|key| *key != "kind").filter(|_| !check::varies(file, "radio.queue.kind"));
        return match odd {
            None => Ok(None),
            Some(key) => {
                let problem = format!("`{key}` changes nothing under kind: drop-tail");
                Err(document.refuse_key(&at.key(key), problem, "kind: fq-codel beside it"))
            }
        };
    }
    if file.world.0 == World::Hwsim {
        let problem = "kernels have this queue above their simulated radios in the world hwsim";
        return Err(document.refuse(&at.key("kind"), problem, "drop-tail, or world: sim or netns"));
    }
    let limits = queue.limits();
    if let Some((key, _)) = limits.iter().find(|(key, _)| !queue.aql && is_given(key)) {
        let paths = [at.key(key), at.key("aql")];
        let problem = format!("`{key}` changes nothing under aql: false");
        return Err(document.refuse_key_among(&paths, problem, "aql: true"));
    }
    for ((less, low), (more, high)) in limits.iter().zip(&limits[1..]) {
        if low > high {
            let paths = [at.key(less), at.key(more)];
            let problem = format!("`{less}` is above `{more}`");
            return Err(document.refuse_key_among(&paths, problem, "limits that do not fall"));
        }
    }
    let airtime = AirtimeLimits { low: queue.aql_low.0, high: queue.aql_high.0, total: queue.aql_total.0 };
    Ok(Some(FqCodelConfig {
        target: queue.target.0,
        interval: queue.interval.0,
        ecn: queue.ecn,
        quantum: queue.quantum,
        flows: queue.flows,
        packets: queue.packets as usize,
        memory: queue.memory_kib as usize * 1_024,
        airtime: queue.aql.then_some(airtime),
        is_fair: queue.airtime_fairness,
        device_packets: queue.device_packets as usize,
        header: 0,
        estimate: phy.under(mac.rules).estimate(phy.data, mac.ampdu.is_some()),
        // Each node has one of its own.
        key: 0,
    }))
}
