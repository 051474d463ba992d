//! Flows and rules, from the file's keys to a plan. Peers of rules are nodes, addresses or networks.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hopwise_air::random::{NumberStream, Purpose};
use hopwise_core::endpoint;
use hopwise_core::ip::Prefix;
use hopwise_core::narrow::as_u32;
use hopwise_core::tcp::TcpConfig;

use crate::located::{Checked, Document, YamlPath};
use crate::programs::Amount;
use crate::rules::Network;
use crate::scenario::nodes::Nodes;
use crate::scenario::schema::{Drawn, ScenarioFile, TrafficFlows, TrafficKind};
use crate::sim::{FlowPlan, RoutingPlan, Talk, TcpPlan, TrafficPlan, address_of};
use crate::tcp::Tcp;
use crate::units::{Size, Time};

pub(super) fn read(
    document: &Document,
    file: &ScenarioFile,
    nodes: &Nodes,
    routing: &RoutingPlan,
    seed: u64,
) -> Checked<Vec<FlowPlan>> {
    let mut flows = Vec::new();
    for (nth, traffic) in file.traffic.iter().enumerate() {
        let at = YamlPath::root().key("traffic").index(nth);
        let end = |key: &str, name: &str| nodes.named(document, &at.key(key), name);
        let (from, to) = (end("from", &traffic.from)?, end("to", &traffic.to)?);
        if from == to {
            let problem = format!("`{}` and `{}` are the same node", traffic.from, traffic.to);
            let paths = [at.key("to"), at.key("from"), YamlPath::root().key("topology")];
            return Err(document.refuse_among(&paths, problem, "another node"));
        }
        let plan = plan_of(traffic, &file.tcp, routing);
        for copy in 0..traffic.flows {
            // A stream of the flow's own: other flows' draws do not change it.
            let mut stream = NumberStream::new(seed, as_u32(flows.len()), Purpose::Traffic);
            let start = Duration::from_nanos(times(traffic.start).draw(&mut stream));
            flows.push(FlowPlan {
                from,
                to,
                start: start + traffic.apart.0 * copy,
                stop: traffic.stop.map(|stop| stop.0),
                is_background: traffic.is_background(),
                traffic: plan.clone(),
            });
        }
    }
    Ok(flows)
}

fn plan_of(traffic: &TrafficFlows, tcp: &Tcp, routing: &RoutingPlan) -> TrafficPlan {
    let bytes = traffic.segment_bytes_under(tcp);
    let dscp = traffic.dscp.unwrap_or_default();
    let marks = routing.marks(dscp);
    let datagrams = |every| TrafficPlan::Datagrams { bytes, every, marks };
    let directions = traffic.direction.unwrap_or_default();
    let (talk, times) = match (traffic.kind, traffic.bytes) {
        (TrafficKind::Cbr, _) => return datagrams(gaps(traffic, bytes)),
        (TrafficKind::Saturated, _) => return datagrams(None),
        (TrafficKind::Probe | TrafficKind::Voice, _) => {
            let every = traffic.every.map_or(Amount::NONE, times);
            return TrafficPlan::Probe { bytes, every, marks };
        }
        (TrafficKind::Bulk, None) => (Talk::Endless(directions), Some(1)),
        (TrafficKind::Bulk, Some(bytes)) => {
            (Talk::Transfers { bytes: sizes(bytes), directions }, Some(traffic.repeat.unwrap_or(1)))
        }
        (TrafficKind::Request | TrafficKind::Web | TrafficKind::Iot, _) => {
            let size = |drawn: Option<Drawn<Size>>| drawn.map_or(Amount::NONE, sizes);
            (
                Talk::Requests { request: size(traffic.request), response: size(traffic.response) },
                traffic.repeat,
            )
        }
    };
    let think = traffic.think.map_or(Amount::NONE, self::times);
    let tcp = Arc::new(TcpConfig { dscp, ..tcp_config(tcp, bytes, routing) });
    TrafficPlan::Tcp(Arc::new(TcpPlan { tcp, talk, think, times }))
}

/// The gaps between datagrams.
fn gaps(traffic: &TrafficFlows, bytes: u16) -> Option<Amount> {
    let of_rate = |bits_per_second: u64| {
        let bits = u64::from(bytes) * 8;
        Amount::Fixed((bits * 1_000_000_000).div_ceil(bits_per_second.max(1)))
    };
    traffic.every.map(times).or(traffic.rate.map(|rate| of_rate(rate.0)))
}

fn times(drawn: Drawn<Time>) -> Amount {
    amount(drawn, |time| time.nanos())
}

fn sizes(drawn: Drawn<Size>) -> Amount {
    amount(drawn, |size| size.0)
}

fn amount<T>(drawn: Drawn<T>, number: impl Fn(T) -> u64) -> Amount {
    match drawn {
        Drawn::Fixed(value) => Amount::Fixed(number(value)),
        Drawn::Mean { mean } => Amount::Mean(number(mean)),
        Drawn::Between { from, to } => Amount::Between(number(from), number(to)),
    }
}

pub(super) fn tcp_config(tcp: &Tcp, segment_bytes: u16, routing: &RoutingPlan) -> TcpConfig {
    routing.limit_hops(Tcp { segment_bytes: Some(segment_bytes), ..*tcp }.config())
}

pub(super) fn rules(document: &Document, file: &ScenarioFile, nodes: &Nodes) -> Checked<Vec<endpoint::Rule>> {
    let mut rules = Vec::new();
    for (nth, rule) in file.rules.iter().enumerate() {
        let at = YamlPath::root().key("rules").index(nth).key("match");
        for (key, peer) in [("from", &rule.matches.from), ("to", &rule.matches.to)] {
            if let Some(peer) = peer.as_ref().filter(|peer| prefix(nodes, peer).is_none()) {
                let accepted = format!("a node such as {}, an address or a network", nodes.last());
                let paths = [at.key(key), YamlPath::root().key("topology")];
                return Err(document.refuse_among(&paths, format!("`{peer}` is no peer"), &accepted));
            }
        }
        let nowhere = Prefix::host(IpAddr::from([0, 0, 0, 0]));
        rules.push(rule.core(|peer| prefix(nodes, peer).unwrap_or(nowhere)));
    }
    Ok(rules)
}

fn prefix(nodes: &Nodes, peer: &str) -> Option<Prefix> {
    let of_node = nodes.find(peer).map(|node| Prefix::host(address_of(node)));
    of_node.or_else(|| peer.parse().ok().map(|Network(prefix)| prefix))
}
