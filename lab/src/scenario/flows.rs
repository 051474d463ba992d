//! Flows, from the file's keys to a plan.

use std::sync::Arc;
use std::time::Duration;

use hopwise_air::random::{Purpose, Stream};
use hopwise_core::tcp::TcpConfig;

use super::nodes::Nodes;
use super::schema::{DirectionName, Drawn, ScenarioFile, TcpProfile, Traffic, TrafficKind};
use crate::located::{Document, Place, Refusal};
use crate::sim::{Amount, FlowPlan, RoutingPlan, Talk, TcpPlan, TrafficPlan, Ways};
use crate::units::{Size, Time};

/// Segment size without a flow; each flow names its own.
pub(super) const SEGMENT_OF_EACH_FLOW: u16 = 1_000;

pub(super) fn read(
    document: &Document,
    file: &ScenarioFile,
    nodes: &Nodes,
    routing: &RoutingPlan,
    seed: u64,
) -> Result<Vec<FlowPlan>, Box<Refusal>> {
    let mut flows = Vec::new();
    for (nth, traffic) in file.traffic.iter().enumerate() {
        let place = Place::root().key("traffic").index(nth);
        let end = |key: &str, name: &str| {
            nodes.find(name).ok_or_else(|| {
                let accepted = format!("first, last, or one of {} to {}", nodes.names[0], nodes.last());
                let places = [place.key(key), Place::root().key("topology")];
                document.refuse_among(&places, format!("no node is called `{name}`"), &accepted)
            })
        };
        let (from, to) = (end("from", &traffic.from)?, end("to", &traffic.to)?);
        if from == to {
            let problem = format!("`{}` and `{}` are the same node", traffic.from, traffic.to);
            let places = [place.key("to"), place.key("from"), Place::root().key("topology")];
            return Err(document.refuse_among(&places, problem, "another node"));
        }
        let plan = plan_of(traffic, tcp_config(file, traffic.segment_bytes, routing), routing);
        for copy in 0..traffic.flows {
            // A stream of the flow's own: what others draw moves nothing.
            let mut stream = Stream::new(seed, flows.len() as u32, Purpose::Traffic);
            let start = Duration::from_nanos(times(traffic.start).draw(&mut stream));
            flows.push(FlowPlan {
                from,
                to,
                start: start + traffic.apart.0 * copy,
                stop: traffic.stop.map(|stop| stop.0),
                is_background: traffic.background,
                traffic: plan.clone(),
            });
        }
    }
    Ok(flows)
}

fn plan_of(traffic: &Traffic, tcp: TcpConfig, routing: &RoutingPlan) -> TrafficPlan {
    let bytes = traffic.segment_bytes;
    let datagrams = |every| TrafficPlan::datagrams(bytes, every, routing);
    let ways = match traffic.direction.unwrap_or_default() {
        DirectionName::Forth => Ways::Forth,
        DirectionName::Back => Ways::Back,
        DirectionName::Both => Ways::Both,
    };
    let (talk, times) = match (traffic.kind, traffic.bytes) {
        (TrafficKind::Cbr, _) => return datagrams(gaps(traffic)),
        (TrafficKind::Saturated, _) => return datagrams(None),
        (TrafficKind::Bulk, None) => (Talk::Endless(ways), Some(1)),
        (TrafficKind::Bulk, Some(bytes)) => {
            (Talk::Transfers { bytes: sizes(bytes), ways }, Some(traffic.repeat.unwrap_or(1)))
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
    TrafficPlan::Tcp(Arc::new(TcpPlan { tcp: Arc::new(tcp), talk, think, times }))
}

/// Between datagrams.
fn gaps(traffic: &Traffic) -> Option<Amount> {
    let of_rate = |bits_per_second: u64| {
        let bits = u64::from(traffic.segment_bytes) * 8;
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

pub(super) fn tcp_config(file: &ScenarioFile, segment_bytes: u16, routing: &RoutingPlan) -> TcpConfig {
    let mut tcp = match file.tcp.profile {
        TcpProfile::Modern => TcpConfig { segment_bytes, ..TcpConfig::modern() },
        TcpProfile::Ns2 => TcpConfig::ns2(segment_bytes),
    };
    let set = |own: Option<bool>, value: &mut bool| *value = own.unwrap_or(*value);
    set(file.tcp.sack, &mut tcp.sack);
    set(file.tcp.timestamps, &mut tcp.timestamps);
    set(file.tcp.ecn, &mut tcp.ecn);
    set(file.tcp.nagle, &mut tcp.nagle);
    if let Some(rto_min) = file.tcp.rto_min {
        tcp.rto.min = rto_min.0;
    }
    routing.limit_hops(tcp)
}
