//! The arguments of `hopwise send`, and the measurement that they ask for.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hopwise_lab::units::{Size, Time};
use tokio::time::Instant;

use crate::measure::carrier::LinkArguments;
use crate::measure::flow::Enough;
use crate::measure::protocol::{FlowWork, LARGEST_MESSAGE, MeasurementPlan, PORT, VERSION};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::numbers;

/// Measure a path: send data to `hopwise recv` (with --reverse: receive)
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise send 10.7.0.3 --address 10.7.0.2/24 --kernel 10.7.0.1/24 --time 10s
  hopwise send 10.7.0.3 --config configs/node.yaml --parallel 4 --sender '[newreno, limit:8]' --json
  hopwise send 10.7.0.3 --address 10.7.0.2/24 --file disk.img        # says whether its SHA-256 arrived
  hopwise send 10.7.0.3 --address 10.7.0.2/24 --requests 10000
  hopwise send 10.7.0.3 --address 10.7.0.2/24 --bytes 10MB --reverse

It runs a TCP stack of its own, on a TUN device that it makes (--address) or on the links of a node that does not
run (--config). With --kernel-tcp it uses the kernel's TCP for comparison.")]
pub struct Arguments {
    /// Address or name of the host with `hopwise recv`; a port may follow
    #[arg(value_parser = target)]
    pub to: SocketAddr,
    /// Duration of the measurement (default 10s)
    #[arg(long, value_name = "TIME", conflicts_with_all = ["bytes", "file"])]
    pub(super) time: Option<Time>,
    /// Amount of data to send on each flow
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["file", "requests"])]
    pub(super) bytes: Option<Size>,
    /// File to send; its SHA-256 is compared at the other end
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requests", "reverse", "parallel"])]
    pub file: Option<PathBuf>,
    /// Number of requests to send one after another, each timed (default 10000; with --time: as many as fit)
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        default_missing_value = "10000",
        value_parser = numbers::whole(0..=u64::MAX)
    )]
    pub(super) requests: Option<u64>,
    /// Size of a request in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = numbers::whole(1..=LARGEST_MESSAGE))]
    pub(super) request_bytes: u32,
    /// Size of a response in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = numbers::whole(1..=LARGEST_MESSAGE))]
    pub(super) response_bytes: u32,
    /// Let the other end send
    #[arg(long, conflicts_with = "requests")]
    pub(super) reverse: bool,
    /// Number of flows at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = numbers::whole(1..=128_u32))]
    pub(super) parallel: u32,
    /// Time between two printed rows; 0s prints none
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(super) interval: Time,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) link: LinkArguments,
}

const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// An address, or a name that this machine resolves; IPv4 comes first.
fn target(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, PORT));
    }
    let resolved = if text.contains(':') { text.to_socket_addrs() } else { (text, PORT).to_socket_addrs() };
    let first = resolved.map_err(|error| error.to_string()).and_then(|addresses| {
        addresses.min_by_key(SocketAddr::is_ipv6).ok_or_else(|| "the name has no address".to_owned())
    });
    if first.as_ref().is_ok_and(|address| address.port() == 0) {
        return Err("nothing listens at port 0: expected a port from 1 to 65535".to_owned());
    }
    first.map_err(|error| {
        format!(
            "{error}; expected an address such as 10.7.0.3, 10.7.0.3:5201 or [fd07::3]:5201, or a name that this \
             machine resolves"
        )
    })
}

impl Arguments {
    /// The plan for the other end.
    pub(super) fn plan(&self) -> Result<MeasurementPlan, Failure> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let time = self.time.map_or(DEFAULT_TIME, |time| time.0);
        let work = match (self.requests, self.bytes, &self.file) {
            (Some(_), ..) => {
                let (request_bytes, response_bytes) = (self.request_bytes, self.response_bytes);
                FlowWork::Requests { request_bytes, response_bytes }
            }
            (None, Some(size), _) => FlowWork::Bytes { bytes: size.0 },
            (None, None, Some(path)) => {
                let facts = std::fs::metadata(path)
                    .map_err(|error| Failure::refused(path.display().to_string(), error))?;
                FlowWork::File { bytes: facts.len() }
            }
            (None, None, None) => FlowWork::BulkFor { micros: micros(time) },
        };
        let key = hopwise_host::random_key().map_err(Failure::during("draw a number"))?;
        let id = key.iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte));
        Ok(MeasurementPlan { version: VERSION, id, flows: self.parallel, reverse: self.reverse, work })
    }

    /// The end of a flow of requests.
    pub(super) fn enough(&self) -> Enough {
        match (self.requests, self.time) {
            (Some(most), None) => Enough::Asked(most),
            (_, time) => Enough::At(Instant::now() + time.map_or(DEFAULT_TIME, |time| time.0)),
        }
    }

    /// The time of the measurement, unless it is over bytes or requests.
    pub(super) fn time_of(&self, work: FlowWork) -> Option<Duration> {
        let of_requests = self.time.map(|time| time.0).filter(|_| matches!(work, FlowWork::Requests { .. }));
        work.time().or(of_requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_is_an_address_or_a_name_with_or_without_a_port() {
        let at = |text: &str| target(text).map(|address| address.to_string());
        assert_eq!(at("10.7.0.3").as_deref(), Ok("10.7.0.3:5201"));
        assert_eq!(at("[fd07::3]:80").as_deref(), Ok("[fd07::3]:80"));
        assert_eq!(at("fd07::3").as_deref(), Ok("[fd07::3]:5201"));
        assert_eq!(at("localhost").as_deref(), Ok("127.0.0.1:5201"));
        assert_eq!(at("localhost:80").as_deref(), Ok("127.0.0.1:80"));
        let problem = at("10.7.0.3:port").expect_err("no port has that name");
        assert!(problem.contains("expected an address such as 10.7.0.3"), "{problem}");
        for none in ["10.7.0.3:0", "[fd07::3]:0", "localhost:0"] {
            let problem = at(none).expect_err("nothing listens there");
            assert!(problem.contains("a port from 1 to 65535"), "{none}: {problem}");
        }
    }
}
