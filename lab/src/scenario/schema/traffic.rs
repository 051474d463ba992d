//! `traffic:`, the flows between nodes.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use crate::sim::Directions;
use crate::tcp::Tcp;
use crate::units::{Rate, Size, Time, number};

/// Sizes of transfers and responses.
pub(in crate::scenario) const TRANSFERS: &str = "1B to 1GiB";
/// Sizes of requests, whose first bytes hold sizes.
pub(in crate::scenario) const REQUESTS: &str = "8B to 1GiB";
/// Times between datagrams.
pub(in crate::scenario) const GAPS: &str = "1us or more";

/// Flows from one node to another. The kind decides which keys apply.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct TrafficFlows {
    /// Node that opens the connection or sends the datagrams: first (w0 if there is a wire), last, or a name such as
    /// n3.
    pub(in crate::scenario) from: String,
    /// Node at the other end: first (w0 if there is a wire), last, or a name such as n3.
    pub(in crate::scenario) to: String,
    /// Kind of traffic.
    pub(in crate::scenario) kind: TrafficKind,
    /// Payload of a full segment or of a datagram; a probe needs 8 or more. With less than 16, loss, jitter and delay
    /// in one direction are not measured (default: tcp.segment_bytes for segments, 64 for a probe, otherwise 1000).
    #[schemars(extend("x-range" = "1 to 1460"))]
    pub(in crate::scenario) segment_bytes: Option<u16>,
    /// Code point (DSCP) of all packets of the flow, in both directions (default 0). Radios of 802.11n choose the
    /// access category by it, as Linux does (RFC 8325). CS1 (8) is background. CS3 to CS5 with AF31 to AF43 (24 to 40)
    /// are video. EF (46), CS6 and CS7 (48, 56) are voice. Other names are best effort. Only in world sim.
    #[schemars(extend("x-range" = "0 to 63", "x-unit" = "no unit"))]
    pub(in crate::scenario) dscp: Option<u8>,
    /// Number of equal flows that this entry starts; at most 10000 in all entries (default 1).
    #[serde(default = "number::<u32, 1>")]
    #[schemars(extend("x-range" = "1 to 10000", "x-unit" = "flows"))]
    pub(in crate::scenario) flows: u32,
    /// Time between the starts of two successive flows of this entry (default 100ms). A random `start` is added for
    /// each flow.
    #[serde(default = "Time::millis::<100>")]
    pub(in crate::scenario) apart: Time,
    /// Start of the first flow of this entry, from time 0 of the simulation (default 0s). If it is random, each flow
    /// draws its own.
    #[serde(default = "at_once")]
    pub(in crate::scenario) start: Drawn<Time>,
    /// Time, from time 0 of the simulation, at which endless data ends. No transfer, request or datagram starts after
    /// it (default: end of the run).
    pub(in crate::scenario) stop: Option<Time>,
    /// Reports list these flows separately and leave them out of all totals (default false; always so for a probe).
    #[serde(default)]
    pub(in crate::scenario) background: bool,
    /// Direction of the data (kind: bulk; default forth).
    pub(in crate::scenario) direction: Option<Directions>,
    /// Size of a transfer; each transfer has a connection of its own (kind: bulk; default: endless data).
    #[schemars(extend("x-range" = TRANSFERS))]
    pub(in crate::scenario) bytes: Option<Drawn<Size>>,
    /// Size of a request (kind: request, which requires it; web, iot).
    #[schemars(extend("x-range" = REQUESTS))]
    pub(in crate::scenario) request: Option<Drawn<Size>>,
    /// Size of a response (kind: request, which requires it; web, iot).
    #[schemars(extend("x-range" = TRANSFERS))]
    pub(in crate::scenario) response: Option<Drawn<Size>>,
    /// Pause after a transfer or a response (kinds: bulk with bytes, request, web, iot; default: no pause).
    pub(in crate::scenario) think: Option<Drawn<Time>>,
    /// Number of transfers (kind: bulk with bytes) or of requests (kind: request) (default: 1 transfer, or as many
    /// requests as fit into the run).
    #[schemars(extend("x-range" = "1 or more", "x-unit" = "times"))]
    pub(in crate::scenario) repeat: Option<u32>,
    /// Time between two datagrams (kinds: cbr, probe, voice). A probe requires it; cbr requires it or `rate`.
    #[schemars(extend("x-range" = GAPS))]
    pub(in crate::scenario) every: Option<Drawn<Time>>,
    /// Rate of payload (kind: cbr, in place of every).
    #[schemars(extend("x-range" = "above 0bit"))]
    pub(in crate::scenario) rate: Option<Rate>,
}

/// Kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::scenario) enum TrafficKind {
    /// TCP with endless data, or with transfers of a given size.
    Bulk,
    /// TCP requests on one connection, each sent after the response to the one before.
    Request,
    /// UDP datagrams at intervals: they show loss, jitter and delay in one direction.
    Cbr,
    /// UDP datagrams as fast as the interface takes them; only in world sim.
    Saturated,
    /// UDP datagrams at intervals, each of which the other end sends back: their round trips show the delay under load.
    Probe,
    /// Requests for pages: by default `request` is 500B, `response` 60kB and `think` 2s in the mean.
    Web,
    /// A probe like a call by G.711: by default `segment_bytes` is 172 and `every` 20ms.
    Voice,
    /// Requests of a sensor: by default `request` is 100B, `response` 20B and `think` 5s in the mean.
    Iot,
}

/// A fixed value or a random one: `2s`, `{ mean: 2s }` (exponential), `{ from: 1s, to: 3s }` (uniform).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(in crate::scenario) enum Drawn<T> {
    Fixed(T),
    Mean { mean: T },
    Between { from: T, to: T },
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Drawn<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Drawn<T>, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct ByChance<T> {
            mean: Option<T>,
            from: Option<T>,
            to: Option<T>,
        }
        let value = serde_yaml::Value::deserialize(from)?;
        if !value.is_mapping() {
            return serde_yaml::from_value(value).map(Drawn::Fixed).map_err(D::Error::custom);
        }
        match serde_yaml::from_value(value).map_err(D::Error::custom)? {
            ByChance { mean: Some(mean), from: None, to: None } => Ok(Drawn::Mean { mean }),
            ByChance { mean: None, from: Some(from), to: Some(to) } => Ok(Drawn::Between { from, to }),
            _ => Err(D::Error::custom("neither a mean nor bounds, expected `mean`, or `from` and `to`")),
        }
    }
}

impl<T: JsonSchema> JsonSchema for Drawn<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Drawn{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        let described = |meaning: &str| {
            let mut schema = one.clone();
            schema.insert("description".to_owned(), meaning.into());
            schema
        };
        let mean = described("Mean of the exponential distribution from which each value is drawn.");
        let from = described("Least value of the uniform distribution from which each value is drawn.");
        let to = described("Largest value of the uniform distribution from which each value is drawn.");
        json_schema!({
            "description": "A fixed value, or a random one: `{ mean: ... }` or `{ from: ..., to: ... }`.",
            "anyOf": [
                one,
                {
                    "type": "object", "description": "Exponential distribution with this mean.",
                    "properties": { "mean": mean }, "required": ["mean"], "additionalProperties": false,
                },
                {
                    "type": "object", "description": "Uniform distribution between these bounds.",
                    "properties": { "from": from, "to": to }, "required": ["from", "to"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

/// Payload of a full segment or of a datagram where the file gives no other.
pub(in crate::scenario) const SEGMENT_BYTES: u16 = 1000;

/// Payload of a probe where the file gives no other.
const PROBE_BYTES: u16 = 64;

impl TrafficFlows {
    /// True if its flows stand in no total.
    pub(in crate::scenario) fn is_background(&self) -> bool {
        self.background || matches!(self.kind, TrafficKind::Probe | TrafficKind::Voice)
    }

    pub(in crate::scenario) fn is_over_tcp(&self) -> bool {
        use TrafficKind::{Bulk, Iot, Request, Web};
        matches!(self.kind, Bulk | Request | Web | Iot)
    }

    /// Gives a kind with sizes and pauses of its own what the file does not.
    pub(in crate::scenario) fn fill(&mut self) {
        let (request, response, think_s) = match self.kind {
            TrafficKind::Web => (500, Drawn::Mean { mean: Size(60_000) }, 2),
            TrafficKind::Iot => (100, Drawn::Fixed(Size(20)), 5),
            TrafficKind::Voice => {
                self.segment_bytes.get_or_insert(172);
                self.every.get_or_insert(Drawn::Fixed(Time(Duration::from_millis(20))));
                return;
            }
            _ => return,
        };
        self.request.get_or_insert(Drawn::Fixed(Size(request)));
        self.response.get_or_insert(response);
        self.think.get_or_insert(Drawn::Mean { mean: Time(Duration::from_secs(think_s)) });
    }

    /// Payload of a full segment or of a datagram.
    pub(in crate::scenario) fn segment_bytes_under(&self, tcp: &Tcp) -> u16 {
        let of_tcp = match self.kind {
            TrafficKind::Probe => Some(PROBE_BYTES),
            _ => tcp.segment_bytes.filter(|_| self.is_over_tcp()),
        };
        self.segment_bytes.or(of_tcp).unwrap_or(SEGMENT_BYTES)
    }
}

fn at_once() -> Drawn<Time> {
    Drawn::Fixed(Time(Duration::ZERO))
}
