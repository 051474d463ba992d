//! Flows, from the file's keys to a plan.

use std::sync::Arc;
use std::time::Duration;

use hopwise_air::random::{Purpose, Stream};
use hopwise_core::narrow::as_u32;
use hopwise_core::tcp::TcpConfig;

use super::nodes::Nodes;
use super::schema::{Drawn, ScenarioFile, Traffic, TrafficKind};
use crate::located::{Document, Refusal, YamlPath};
use crate::programs::Amount;
use crate::sim::{FlowPlan, RoutingPlan, Talk, TcpPlan, TrafficPlan};
use crate::tcp::Tcp;
use crate::units::{Size, Time};

pub(super) fn read(
    document: &Document,
    file: &ScenarioFile,
    nodes: &Nodes,
    routing: &RoutingPlan,
    seed: u64,
) -> Result<Vec<FlowPlan>, Box<Refusal>> {
    let mut flows = Vec::new();
    for (nth, traffic) in file.traffic.iter().enumerate() {
        let at = YamlPath::root().key("traffic").index(nth);
        let end = |key: &str, name: &str| {
            nodes.find(name).ok_or_else(|| {
                let accepted = format!("first, last, or one of {} to {}", nodes.names[0], nodes.last());
                let paths = [at.key(key), YamlPath::root().key("topology")];
                document.refuse_among(&paths, format!("no node is called `{name}`"), &accepted)
            })
        };
        let (from, to) = (end("from", &traffic.from)?, end("to", &traffic.to)?);
        if from == to {
            let problem = format!("`{}` and `{}` are the same node", traffic.from, traffic.to);
            let paths = [at.key("to"), at.key("from"), YamlPath::root().key("topology")];
            return Err(document.refuse_among(&paths, problem, "another node"));
        }
        let plan = plan_of(traffic, &file.tcp, routing);
        for copy in 0..traffic.flows {
            // A stream of the flow's own: other flows' draws do not change it.
            let mut stream = Stream::new(seed, as_u32(flows.len()), Purpose::Traffic);
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

fn plan_of(traffic: &Traffic, tcp: &Tcp, routing: &RoutingPlan) -> TrafficPlan {
    let bytes = traffic.segment_bytes_under(tcp);
    let dscp = traffic.dscp.unwrap_or_default();
    let marks = routing.marks(dscp);
    let datagrams = |every| TrafficPlan::Datagrams { bytes, every, marks };
    let directions = traffic.direction.unwrap_or_default();
    let (talk, times) = match (traffic.kind, traffic.bytes) {
        (TrafficKind::Cbr, _) => return datagrams(gaps(traffic, bytes)),
        (TrafficKind::Saturated, _) => return datagrams(None),
        (TrafficKind::Probe, _) => {
            let every = traffic.every.map_or(Amount::NONE, times);
            return TrafficPlan::Probe { bytes, every, marks };
        }
        (TrafficKind::Bulk, None) => (Talk::Endless(directions), Some(1)),
        (TrafficKind::Bulk, Some(bytes)) => {
            (Talk::Transfers { bytes: sizes(bytes), directions }, Some(traffic.repeat.unwrap_or(1)))
        }
        (TrafficKind::Request, _) => {
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
fn gaps(traffic: &Traffic, bytes: u16) -> Option<Amount> {
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
