//! `hopwise recv`: the end of a measurement that waits for the other.

use std::future::pending;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use hopwise_lab::units::Size;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::failure::Failure;
use crate::measure::carrier::{Carrier, LinkArguments, Listener, Stream};
use crate::measure::flow::{self, Wanted};
use crate::measure::output;
use crate::measure::protocol::{
    self, Answer, FlowSeen, LONGEST_PLAN, MOST_FLOWS, Opening, Plan, RESULT_WITHIN, Work,
};
use crate::measure::report::rate_of;
use crate::node::{descriptors, places::Places};
use crate::signals;

mod room;

use room::{Admitted, Flows, MOST_MEASUREMENTS, Room};

/// The default port of measurements, as for iperf3.
pub(crate) const PORT: u16 = 5201;

/// Wait for a `hopwise send` and receive its data, or send data if it asks with --reverse
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise recv --address 10.7.0.3/24 --kernel 10.7.0.1/24
  hopwise recv --config configs/node.yaml --receiver delayed:d=3 --once --json
  hopwise recv --kernel-tcp --port 5202

It runs a TCP stack of its own, on a TUN device that it makes (--address) or on the links of a node that does not
run (--config). With --kernel-tcp it uses the kernel's TCP for comparison. It ends with Ctrl-C, or on SIGTERM.")]
pub(crate) struct Arguments {
    /// Port to listen on
    #[arg(long, value_name = "PORT", default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
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

const OPENING_WITHIN: Duration = Duration::from_secs(10);
/// The time from the plan to its last flow.
const FLOWS_WITHIN: Duration = Duration::from_secs(60);
/// The time for the results of a measurement that makes room for another.
const GOES_WITHIN: Duration = Duration::from_millis(500);
/// The largest number of connections that have not named their measurement yet.
const MOST_OPENINGS: usize = 256;

/// Descriptors for all measurements and openings at once, and for the program itself.
const DESCRIPTORS: u64 = MOST_MEASUREMENTS as u64 * (MOST_FLOWS as u64 + 1) + MOST_OPENINGS as u64 + 256;

/// A connection that begins a measurement.
type Begun = Option<(Stream, Plan, Admitted, Flows)>;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
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
                served = arguments.serve(listener) => served,
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

impl Arguments {
    async fn serve(&self, listener: Listener) -> Result<(), Failure> {
        let room = Room::new(self.once, self.output.is_some());
        let (mut openings, mut places) = (JoinSet::new(), Places::new(MOST_OPENINGS));
        let mut measurements = JoinSet::new();
        if !self.json {
            crate::failure::print(self.link.waits_at(self.port)).await?;
        }
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (stream, from) = accepted.map_err(|error| Failure::failed("accept", error))?;
                    places.take(openings.spawn(opening(stream, from, Arc::clone(&room))), from.into());
                }
                Some(begun) = openings.join_next() => {
                    if let Ok(Some(begun)) = begun {
                        measurements.spawn(measurement(begun, self.output.clone()));
                    }
                }
                Some(ended) = measurements.join_next() => {
                    let Ok((plan, flows)) = ended else { continue };
                    if self.once && !has_carried(&plan, &flows) {
                        continue;
                    }
                    crate::failure::print(self.shown(&plan, &flows)).await?;
                    if self.once {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn shown(&self, plan: &Plan, flows: &[FlowSeen]) -> String {
        if self.json {
            let json = serde_json::json!({ "plan": plan, "flows": flows });
            json.to_string() + "\n"
        } else {
            flows.iter().map(row).collect()
        }
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

/// Returns whether data has moved, or none was planned and all flows have ended well.
fn has_carried(plan: &Plan, flows: &[FlowSeen]) -> bool {
    let is_whole = flows.len() == plan.flows as usize && flows.iter().all(|flow| flow.problem.is_none());
    plan.work.bytes() == Some(0) && is_whole || flows.iter().any(|flow| flow.bytes > 0)
}

/// Reads the beginning of one connection. It hands a flow on, and returns a control connection with its plan once that
/// is admitted.
async fn opening(mut stream: Stream, from: IpAddr, room: Arc<Room>) -> Begun {
    match timeout(OPENING_WITHIN, Opening::read(&mut stream)).await.ok()?.ok()? {
        Opening::Flow { id, flow } => {
            let to = room.flows_of(id)?;
            // A measurement that has its flows takes no more.
            let _ = to.send((flow, stream)).await;
            None
        }
        Opening::Control => {
            let plan = protocol::read_line(&mut stream, LONGEST_PLAN);
            let plan: Plan = timeout(OPENING_WITHIN, plan).await.ok()?.ok()?;
            match room.admit(&plan, from).await {
                Ok((admitted, flows)) => Some((stream, plan, admitted, flows)),
                Err(problem) => {
                    let refused = Answer::Refused { problem };
                    let _ = timeout(OPENING_WITHIN, protocol::write_line(&mut stream, &refused)).await;
                    None
                }
            }
        }
    }
}

async fn measurement(
    (mut control, plan, admitted, coming): (Stream, Plan, Admitted, Flows),
    output: Option<PathBuf>,
) -> (Plan, Vec<FlowSeen>) {
    let ready = timeout(OPENING_WITHIN, protocol::write_line(&mut control, &Answer::Ready)).await;
    let streams = match ready {
        Ok(Ok(())) => gathered(&plan, &mut control, &admitted, coming).await,
        _ => Vec::new(),
    };
    let output = output.filter(|_| admitted.may_write());
    let seen = all_flows(&plan, &mut control, streams, &admitted, output).await;
    // The other end may be gone; the results are printed here all the same.
    let saw = Answer::Saw { flows: seen.clone() };
    let within = if admitted.is_told() { GOES_WITHIN } else { RESULT_WITHIN };
    tokio::select! {
        _ = timeout(within, protocol::write_line(&mut control, &saw)) => {}
        () = admitted.told_to_go() => {}
    }
    (plan, seen)
}

/// The connections of its flows, one of each.
async fn gathered(
    plan: &Plan,
    control: &mut Stream,
    admitted: &Admitted,
    mut coming: Flows,
) -> Vec<(u32, Stream)> {
    let mut streams: Vec<(u32, Stream)> = Vec::new();
    let deadline = Instant::now() + FLOWS_WITHIN;
    let mut left = pin!(left(control));
    while streams.len() < plan.flows as usize {
        let coming = tokio::select! {
            coming = timeout_at(deadline, coming.recv()) => coming,
            () = admitted.told_to_go() => return Vec::new(),
            _ = &mut left => return Vec::new(),
        };
        let Ok(Some((nth, stream))) = coming else { break };
        if nth < plan.flows && streams.iter().all(|(other, _)| *other != nth) {
            streams.push((nth, stream));
        }
    }
    streams
}

async fn all_flows(
    plan: &Plan,
    control: &mut Stream,
    streams: Vec<(u32, Stream)>,
    admitted: &Admitted,
    output: Option<PathBuf>,
) -> Vec<FlowSeen> {
    // The other end also begins once all of them are connected.
    let (mut flows, began, (end, ended)) = (JoinSet::new(), Instant::now(), watch::channel(None));
    let mut moved = Vec::new();
    for (nth, stream) in streams {
        let copy = output.clone().filter(|_| nth == 0);
        let own = Arc::new(AtomicU64::new(0));
        moved.push(Arc::clone(&own));
        flows.spawn(one_flow((nth, stream), plan.clone(), copy, began, own, ended.clone()));
    }
    let total = || moved.iter().map(|own: &Arc<AtomicU64>| own.load(Ordering::Relaxed)).sum::<u64>();
    let mut seen = Vec::new();
    let over = async {
        let problem = tokio::select! {
            problem = left(control) => problem,
            problem = flow::stands_still(total) => problem,
            problem = flow::overtime(plan.work.time()) => problem,
            problem = admitted.stays_while(total) => problem,
            () = admitted.told_to_go() => "it has made room for another measurement",
        };
        end.send_replace(Some(problem));
        pending::<()>().await;
    };
    let all = async {
        while let Some(ended) = flows.join_next().await {
            seen.extend(ended);
        }
    };
    tokio::select! {
        () = all => {}
        () = over => {}
    }
    seen.sort_by_key(|seen: &FlowSeen| seen.flow);
    seen
}

/// Ends a while after the control connection, since data may still be on its way.
async fn left(control: &mut Stream) -> &'static str {
    // The other end has nothing to say now: a byte is as bad as an end.
    let _ = control.read_u8().await;
    sleep(flow::LAST_BYTES_WITHIN).await;
    "the other end has left"
}

/// Carries one flow, until `end` names a reason to break off.
async fn one_flow(
    (nth, mut stream): (u32, Stream),
    plan: Plan,
    output: Option<PathBuf>,
    began: Instant,
    moved: Arc<AtomicU64>,
    mut end: watch::Receiver<Option<&'static str>>,
) -> FlowSeen {
    let carried = async {
        match plan.work {
            Work::Requests { request_bytes, response_bytes } => {
                flow::answer(&mut stream, (request_bytes, response_bytes), plan.flows, &moved).await
            }
            work if plan.reverse => flow::send(&mut stream, flow::Source::of(work), &moved).await,
            work => {
                let sha256 = matches!(work, Work::File { .. });
                let copy = output.map(|path| (path, work.bytes()));
                flow::receive(&mut stream, began, Wanted { sha256, copy, flows: plan.flows }, &moved).await
            }
        }
    };
    let seen = tokio::select! {
        seen = carried => Ok(seen),
        problem = end.wait_for(Option::is_some) => Err(problem.ok().and_then(|problem| *problem)),
    };
    let seen = seen.unwrap_or_else(|problem| FlowSeen {
        bytes: moved.load(Ordering::Relaxed),
        micros: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
        side: stream.report(),
        problem: problem.map(str::to_owned),
        ..FlowSeen::default()
    });
    FlowSeen { flow: nth, ..seen }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_measurement_that_carries_nothing_does_not_count() {
        let of =
            |bytes, flows| Plan { version: 1, id: 1, flows, reverse: false, work: Work::Bytes { bytes } };
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
