//! `hopwise recv`: the end of a measurement that waits for the other.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::measure::carrier::{Carrier, LinkArguments, Listener, Stream};
use crate::measure::output;
use crate::measure::protocol::{
    self, CalledAnswer, FlowOpening, FlowSeen, LONGEST_PLAN, MOST_FLOWS, MeasurementPlan, PORT,
};
use crate::measure::rate_of;
use crate::{descriptors, places::Places};
use hopwise_daemon::failure::{self, Failure};
use hopwise_daemon::{numbers, signals};

mod measurement;
mod room;

use clap::Args;
use hopwise_lab::units::Size;
use room::{Admitted, Flows, MOST_MEASUREMENTS, Room};

const OPENING_WITHIN: Duration = Duration::from_secs(10);
/// The largest number of connections that have not named their measurement yet.
const MOST_OPENINGS: usize = 256;

/// Descriptors for all measurements and openings at once, and for the program itself.
const DESCRIPTORS: u64 = MOST_MEASUREMENTS as u64 * (MOST_FLOWS as u64 + 1) + MOST_OPENINGS as u64 + 256;

/// A connection that begins a measurement.
type BegunMeasurement = Option<(Stream, MeasurementPlan, Admitted, Flows)>;

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(path) = &arguments.output {
        output::check(path).map_err(|error| Failure::refused(path.display().to_string(), error))?;
    }
    let (runtime, mut ending) = signals::runtime()?;
    let carrier = arguments.link.open()?;
    if matches!(carrier, Carrier::Kernel) {
        descriptors::raise(DESCRIPTORS);
    }
    let served = runtime.block_on(async {
        let served = match carrier.listen(arguments.port).await {
            Ok(listener) => tokio::select! {
                served = serve(arguments, listener) => served,
                () = ending.next() => Ok(()),
            },
            Err(error) => Err(Failure::failed("listen", format_args!("port {}: {error}", arguments.port))),
        };
        carrier.stop().await;
        served
    });
    runtime.shutdown_timeout(signals::LAST_WORDS_WITHIN);
    served
}

async fn serve(arguments: &Arguments, listener: Listener) -> Result<(), Failure> {
    let room = Room::new(arguments.once, arguments.output.is_some());
    let (mut openings, mut places) = (JoinSet::new(), Places::new(MOST_OPENINGS));
    let mut measurements = JoinSet::new();
    if !arguments.json {
        failure::print(arguments.link.waits_at(arguments.port)).await?;
    }
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, from) = accepted.map_err(Failure::during("accept"))?;
                places.take(openings.spawn(opening(stream, from, Arc::clone(&room))), from.into());
            }
            Some(begun) = openings.join_next() => {
                if let Ok(Some(begun)) = begun {
                    measurements.spawn(measurement::carry(begun, arguments.output.clone()));
                }
            }
            Some(ended) = measurements.join_next() => {
                let Ok((plan, flows)) = ended else { continue };
                if arguments.once && !has_carried(&plan, &flows) {
                    continue;
                }
                failure::print(result(&plan, &flows, arguments.json)).await?;
                if arguments.once {
                    return Ok(());
                }
            }
        }
    }
}

/// Returns whether data has moved, or none was planned and all flows have ended well.
fn has_carried(plan: &MeasurementPlan, flows: &[FlowSeen]) -> bool {
    let is_whole = flows.len() == plan.flows as usize && flows.iter().all(|flow| flow.problem.is_none());
    plan.work.bytes() == Some(0) && is_whole || flows.iter().any(|flow| flow.bytes > 0)
}

/// Reads the beginning of one connection. It hands a flow on, and returns a control connection with its plan once that
/// is admitted.
async fn opening(mut stream: Stream, from: IpAddr, room: Arc<Room>) -> BegunMeasurement {
    match timeout(OPENING_WITHIN, FlowOpening::read(&mut stream)).await.ok()?.ok()? {
        FlowOpening::Flow { id, flow } => {
            let to = room.flows_of(id)?;
            // A measurement that has its flows takes no more.
            let _ = to.send((flow, stream)).await;
            None
        }
        FlowOpening::Control => {
            let plan = protocol::read_line(&mut stream, LONGEST_PLAN);
            let plan: MeasurementPlan = timeout(OPENING_WITHIN, plan).await.ok()?.ok()?;
            match room.admit(&plan, from).await {
                Ok((admitted, flows)) => Some((stream, plan, admitted, flows)),
                Err(problem) => {
                    let refused = CalledAnswer::Refused { problem };
                    let _ = timeout(OPENING_WITHIN, protocol::write_line(&mut stream, &refused)).await;
                    None
                }
            }
        }
    }
}

/// A line for each flow, or one JSON object.
fn result(plan: &MeasurementPlan, flows: &[FlowSeen], is_json: bool) -> String {
    if is_json {
        serde_json::json!({ "plan": plan, "flows": flows }).to_string() + "\n"
    } else {
        flows.iter().map(row).collect()
    }
}

fn row(seen: &FlowSeen) -> String {
    let FlowSeen { flow, bytes, side, sha256, problem, .. } = seen;
    let mut row = format!("f{flow}  {}  {}  {}", side.remote, Size(*bytes), rate_of(*bytes, seen.time()));
    if let Some(tcp) = &side.tcp {
        if let Some((hops, source)) = tcp.path.way_back() {
            row.push_str(&format!("  {hops} hops ({source})"));
        }
        row.extend(tcp.shadows.iter().map(|shadow| format!("  {shadow}")));
    }
    if let Some(sha256) = sha256 {
        row.push_str(&format!("  SHA-256 {sha256}"));
    }
    if let Some(problem) = problem {
        row.push_str(&format!("  ended early: {problem}"));
    }
    row + "\n"
}

/// Measure a path: receive data from `hopwise send`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise recv --address 10.7.0.3/24 --kernel 10.7.0.1/24
  hopwise recv --config configs/node.yaml --receiver delayed:d=3 --once --json
  hopwise recv --kernel-tcp --port 5202

It runs a TCP stack of its own, on a TUN device that it makes (--address) or on the links of a node that does not
run (--config). With --kernel-tcp it uses the kernel's TCP for comparison. It ends with Ctrl-C, or on SIGTERM.")]
pub struct Arguments {
    /// Port to listen on
    #[arg(long, value_name = "PORT", default_value_t = PORT, value_parser = numbers::whole(1..=u16::MAX))]
    port: u16,
    /// Take one measurement, refuse others meanwhile, and exit after the first that carries something
    #[arg(long)]
    once: bool,
    /// File for the data of the first flow; an existing file is replaced once all of it has come
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON object for each measurement
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    link: LinkArguments,
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::measure::protocol::FlowWork;

    #[test]
    fn a_measurement_that_carries_nothing_does_not_count() {
        let of = |bytes, flows| MeasurementPlan {
            version: 1,
            id: 1,
            flows,
            reverse: false,
            work: FlowWork::Bytes { bytes },
        };
        let problem = || Some("the other end has left".to_owned());
        let seen = |bytes, problem| FlowSeen { bytes, problem, ..FlowSeen::default() };
        assert!(!has_carried(&of(9, 1), &[]) && !has_carried(&of(9, 1), &[seen(0, None)]));
        assert!(!has_carried(&of(0, 2), &[seen(0, None)]) && !has_carried(&of(0, 1), &[seen(0, problem())]));
        assert!(has_carried(&of(0, 1), &[seen(0, None)]), "it was about nothing");
        assert!(has_carried(&of(9, 2), &[seen(1, problem())]));
    }

    #[test]
    fn an_output_that_cannot_be_made_is_refused_and_one_that_can_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("hopwise-recv-output-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let said = |path: PathBuf| output::check(&path).expect_err("it is no file").to_string();
        let nowhere = said(folder.join("nosuch/x"));
        assert!(nowhere.contains("No such file or directory"), "{nowhere}");
        assert!(said(folder.clone()).ends_with("it is a folder, expected a file"));
        let (old, new) = (folder.join("old"), folder.join("new"));
        fs::write(&old, "kept").expect("the folder can be written");
        assert!(said(old.join("x")).contains("Not a directory"));
        for path in [&old, &new, Path::new("/dev/null")] {
            output::check(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        assert_eq!(fs::read_to_string(&old).ok().as_deref(), Some("kept"));
        assert!(!new.exists(), "nothing has come yet");
        let _ = fs::remove_dir_all(&folder);
    }
}
