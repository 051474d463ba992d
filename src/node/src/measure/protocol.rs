//! Protocol between the two ends of a measurement.
//!
//! A control connection carries one line of JSON in each direction before and after: first the plan and the other end's
//! readiness, then its results. Each flow is a connection of its own that begins with a fixed header. After that it
//! carries payload alone.

use std::io;
use std::time::Duration;

use hopwise_lab::plain;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::side::SideReport;

/// The default port of measurements, as for iperf3.
pub(crate) const PORT: u16 = 5201;
/// Ends with different numbers cannot work together.
pub(crate) const VERSION: u32 = 1;
pub(crate) const LONGEST_PLAN: usize = 1 << 10;
/// Results of 128 flows are shorter.
pub(crate) const LONGEST_ANSWER: usize = 256 << 10;
/// The longest text of the other end that counts, in letters.
pub(crate) const LONGEST_TEXT: usize = 256;
pub(crate) const MOST_FLOWS: u32 = 128;
/// Time that the called end has to report its results.
pub(crate) const RESULT_WITHIN: Duration = Duration::from_secs(60);
/// The largest request or response.
pub(crate) const LARGEST_MESSAGE: u32 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MeasurementPlan {
    pub version: u32,
    /// Identifies the measurement in the flows' headers.
    pub(crate) id: u64,
    pub(crate) flows: u32,
    /// Data flows from the called end.
    pub(crate) reverse: bool,
    pub(crate) work: FlowWork,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FlowWork {
    /// As much as possible in this time.
    BulkFor { micros: u64 },
    /// Number of bytes over each flow.
    Bytes { bytes: u64 },
    /// A file, over one flow.
    File { bytes: u64 },
    /// A request, a response, the next request, until the requesting end closes.
    Requests { request_bytes: u32, response_bytes: u32 },
}

impl FlowWork {
    /// Returns whether the sizes are sound: empty messages would never end.
    pub(crate) fn is_sound(self) -> bool {
        let fits = |bytes| (1..=LARGEST_MESSAGE).contains(&bytes);
        match self {
            FlowWork::Requests { request_bytes, response_bytes } => {
                fits(request_bytes) && fits(response_bytes)
            }
            _ => true,
        }
    }

    /// The time after which data ends, if that is planned.
    pub(crate) fn time(self) -> Option<Duration> {
        if let FlowWork::BulkFor { micros } = self { Some(Duration::from_micros(micros)) } else { None }
    }

    /// The bytes of a flow, if they are planned.
    pub(crate) fn bytes(self) -> Option<u64> {
        match self {
            FlowWork::Bytes { bytes } | FlowWork::File { bytes } => Some(bytes),
            FlowWork::BulkFor { .. } | FlowWork::Requests { .. } => None,
        }
    }
}

/// A message of the called end: first that it is ready, then its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CalledAnswer {
    Ready,
    Refused { problem: String },
    Saw { flows: Vec<FlowSeen> },
}

/// One end's view of one flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FlowSeen {
    pub(crate) flow: u32,
    /// Payload that this end wrote or read.
    pub(crate) bytes: u64,
    /// From its beginning to its end.
    pub(crate) micros: u64,
    /// For a file.
    pub(crate) sha256: Option<String>,
    pub(crate) side: SideReport,
    /// Why it broke off.
    pub problem: Option<String>,
}

impl FlowSeen {
    pub(crate) fn time(&self) -> Duration {
        Duration::from_micros(self.micros)
    }
}

/// First message on the connection of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowOpening {
    Control,
    Flow { id: u64, flow: u32 },
}

const MAGIC: [u8; 4] = *b"HWM1";
const OPENING_BYTES: usize = 16;

impl FlowOpening {
    fn bytes(self) -> [u8; OPENING_BYTES] {
        let (id, flow) = match self {
            FlowOpening::Control => (0, u32::MAX),
            FlowOpening::Flow { id, flow } => (id, flow),
        };
        let mut bytes = [0; OPENING_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..12].copy_from_slice(&id.to_be_bytes());
        bytes[12..].copy_from_slice(&flow.to_be_bytes());
        bytes
    }

    pub(crate) async fn write(self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        to.write_all(&self.bytes()).await
    }

    pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<FlowOpening> {
        let mut magic = [0; 4];
        from.read_exact(&mut magic).await?;
        if magic != MAGIC {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no hopwise send is talking there"));
        }
        let id = from.read_u64().await?;
        Ok(match from.read_u32().await? {
            u32::MAX => FlowOpening::Control,
            flow => FlowOpening::Flow { id, flow },
        })
    }
}

pub(crate) async fn write_line<T: Serialize>(
    to: &mut (impl AsyncWrite + Unpin),
    value: &T,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::other)?;
    line.push(b'\n');
    to.write_all(&line).await
}

/// Reads a line byte by byte, since lines are few and later bytes belong to other readers. Its texts end no line of
/// ours, and are cut.
pub(crate) async fn read_line<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
    longest: usize,
) -> io::Result<T> {
    let mut line = Vec::new();
    loop {
        match from.read_u8().await? {
            b'\n' => return tamed(&line).map_err(of_another_program),
            _ if line.len() >= longest => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line without an end"));
            }
            byte => line.push(byte),
        }
    }
}

fn of_another_program(error: serde_json::Error) -> io::Error {
    let problem = format!(
        "what came is nothing that `hopwise send` and `recv` write: is another program there? ({error})"
    );
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

fn tamed<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
    let mut value = serde_json::from_slice(line)?;
    tame(&mut value);
    T::deserialize(value)
}

/// Tames each text, however deep: serde_json reads 128 levels at most.
fn tame(value: &mut Value) {
    match value {
        Value::String(text) => *text = plain::cut(&plain::line(text), LONGEST_TEXT),
        Value::Array(items) => items.iter_mut().for_each(tame),
        Value::Object(fields) => fields.values_mut().for_each(tame),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn openings_and_lines_are_read_back() {
        let (mut a, mut b) = tokio::io::duplex(4096);
        for opening in [FlowOpening::Control, FlowOpening::Flow { id: u64::MAX, flow: 7 }] {
            opening.write(&mut a).await.expect("open");
            assert_eq!(FlowOpening::read(&mut b).await.expect("an opening"), opening);
        }
        let work = FlowWork::Requests { request_bytes: 1, response_bytes: 2 };
        let plan = MeasurementPlan { version: VERSION, id: 9, flows: 2, reverse: true, work };
        write_line(&mut a, &plan).await.expect("open");
        assert_eq!(read_line::<MeasurementPlan>(&mut b, LONGEST_PLAN).await.expect("a plan"), plan);
        a.write_all(b"HTTP/1.1 400 Bad Request\r\n").await.expect("open");
        let error =
            read_line::<MeasurementPlan>(&mut b, LONGEST_PLAN).await.expect_err("no plan").to_string();
        assert!(error.contains("is another program there?"), "{error}");
    }

    #[tokio::test]
    async fn anything_else_is_refused() {
        let (mut a, mut b) = tokio::io::duplex(4096);
        a.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("open");
        let error = FlowOpening::read(&mut b).await.expect_err("it is no opening");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        read_line::<MeasurementPlan>(&mut b, LONGEST_PLAN).await.expect_err("it is no plan");
    }

    #[tokio::test]
    async fn a_text_of_the_other_end_is_cut_and_begins_no_line() {
        let (mut a, mut b) = tokio::io::duplex(LONGEST_ANSWER);
        let problem = format!("no\nhopwise: all is well \u{202e}{}", "x".repeat(70_000));
        write_line(&mut a, &CalledAnswer::Refused { problem }).await.expect("open");
        let heard = read_line(&mut b, LONGEST_ANSWER).await.expect("an answer");
        let CalledAnswer::Refused { problem } = heard else { panic!("{heard:?}") };
        assert!(problem.starts_with("no?hopwise: all is well ?xx"), "{problem}");
        assert_eq!(problem.chars().count(), LONGEST_TEXT);
        let mut flow = FlowSeen { sha256: Some("\n".into()), ..FlowSeen::default() };
        flow.side.remote = "\u{2066}".repeat(1000);
        write_line(&mut a, &CalledAnswer::Saw { flows: vec![flow] }).await.expect("open");
        let heard = read_line(&mut b, LONGEST_ANSWER).await.expect("an answer");
        let CalledAnswer::Saw { flows } = heard else { panic!("{heard:?}") };
        assert_eq!(flows[0].sha256.as_deref(), Some("?"));
        assert_eq!(flows[0].side.remote, "?".repeat(LONGEST_TEXT - 1) + "…");
    }

    #[tokio::test]
    async fn a_line_ends_where_it_is_too_long() {
        let (mut a, mut b) = tokio::io::duplex(LONGEST_ANSWER);
        a.write_all(&[b' '; 2 * LONGEST_PLAN]).await.expect("open");
        let problem =
            read_line::<MeasurementPlan>(&mut b, LONGEST_PLAN).await.expect_err("it has no end").to_string();
        assert!(problem.contains("a line without an end"), "{problem}");
    }
}
