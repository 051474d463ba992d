//! `hopwise recv`: the end of a measurement that waits for the other.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, OpenOptions};
use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use hopwise_core::ip::Source;
use hopwise_lab::units::Size;
use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::failure::Failure;
use crate::measure::carrier::{Carrier, LinkArguments, Listener, Stream};
use crate::measure::flow;
use crate::measure::protocol::{
    self, Answer, FlowSeen, LARGEST_MESSAGE, LONGEST_PLAN, MOST_FLOWS, Opening, Plan, RESULT_WITHIN, VERSION, Work,
};
use crate::measure::report::rate_of;
use crate::node::{descriptors, places::Places};
use crate::signals;

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
    /// Exit after one measurement
    #[arg(long)]
    once: bool,
    /// File for the data of the first flow; an existing file is replaced when a flow starts
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
/// The largest number of simultaneous measurements. A source may begin one while more places are free than it has.
const MOST_MEASUREMENTS: usize = 64;
/// The largest number of connections that have not named their measurement yet.
const MOST_OPENINGS: usize = 256;

/// Descriptors for all measurements and openings at once, and for the program itself.
const DESCRIPTORS: u64 = MOST_MEASUREMENTS as u64 * (MOST_FLOWS as u64 + 1) + MOST_OPENINGS as u64 + 256;

/// The measurements that are under way, by their ids.
type Expected = Arc<Mutex<BTreeMap<u64, Awaits>>>;

/// The receiver of a measurement's flows, and the source that began it.
struct Awaits {
    flows: mpsc::Sender<(u32, Stream)>,
    from: Source,
}

/// A connection that begins a measurement.
type Begun = Option<(Stream, Plan, IpAddr)>;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.output.as_deref().map_or(Ok(()), check_output)?;
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

/// Checks that a flow can be written to this file, before the first flow comes. An existing file stays unchanged until
/// then.
fn check_output(path: &Path) -> Result<(), Failure> {
    let refused = |problem: &dyn std::fmt::Display| Failure::refused(path.display().to_string(), problem);
    let mut options = OpenOptions::new();
    options.write(true);
    match fs::metadata(path) {
        Ok(facts) if facts.is_dir() => Err(refused(&"it is a folder, expected a file")),
        Ok(facts) if facts.is_file() => options.open(path).map(drop).map_err(|error| refused(&error)),
        // The reader of a pipe would take this for its end.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match options.create_new(true).open(path) {
            Ok(_) => fs::remove_file(path).map_err(|error| refused(&error)),
            // A link to a missing file.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(refused(&error)),
        },
        Err(error) => Err(refused(&error)),
    }
}

impl Arguments {
    async fn serve(&self, listener: Listener) -> Result<(), Failure> {
        let expected = Expected::default();
        let (mut openings, mut places) = (JoinSet::new(), Places::new(MOST_OPENINGS));
        let mut measurements = JoinSet::new();
        if !self.json {
            crate::failure::print(format!("waiting at port {}\n", self.port)).await?;
        }
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (stream, from) = accepted.map_err(|error| Failure::failed("accept", error))?;
                    places.take(openings.spawn(opening(stream, from, Arc::clone(&expected))), from.into());
                }
                Some(begun) = openings.join_next() => {
                    if let Ok(Some(begun)) = begun {
                        measurements.spawn(measurement(begun, Arc::clone(&expected), self.output.clone()));
                    }
                }
                Some(ended) = measurements.join_next() => {
                    if let Ok(Some((plan, flows))) = ended {
                        crate::failure::print(self.shown(&plan, &flows)).await?;
                        if self.once {
                            return Ok(());
                        }
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

/// Reads the beginning of one connection. It hands a flow on, and returns a control connection with its plan.
async fn opening(mut stream: Stream, from: IpAddr, expected: Expected) -> Begun {
    match timeout(OPENING_WITHIN, Opening::read(&mut stream)).await.ok()?.ok()? {
        Opening::Flow { id, flow } => {
            let to = expected.lock().get(&id).map(|awaits| awaits.flows.clone())?;
            // A measurement that is over takes no more flows.
            let _ = to.send((flow, stream)).await;
            None
        }
        Opening::Control => {
            let plan = protocol::read_line(&mut stream, LONGEST_PLAN);
            let plan: Plan = timeout(OPENING_WITHIN, plan).await.ok()?.ok()?;
            Some((stream, plan, from))
        }
    }
}

async fn measurement(
    (mut control, plan, from): (Stream, Plan, IpAddr),
    expected: Expected,
    output: Option<PathBuf>,
) -> Option<(Plan, Vec<FlowSeen>)> {
    let (to, mut coming) = mpsc::channel(1);
    let awaits = Awaits { flows: to, from: Source::of(from) };
    if let Err(problem) = register(&plan, &expected, awaits) {
        let refused = Answer::Refused { problem };
        let _ = timeout(OPENING_WITHIN, protocol::write_line(&mut control, &refused)).await;
        return None;
    }
    let seen = match protocol::write_line(&mut control, &Answer::Ready).await {
        Ok(()) => all_flows(&plan, &mut control, &mut coming, output).await,
        Err(_) => Vec::new(),
    };
    // The other end may be gone; the results are printed here all the same.
    let saw = Answer::Saw { flows: seen.clone() };
    let _ = timeout(RESULT_WITHIN, protocol::write_line(&mut control, &saw)).await;
    expected.lock().remove(&plan.id);
    Some((plan, seen))
}

fn register(plan: &Plan, expected: &Expected, awaits: Awaits) -> Result<(), String> {
    if plan.version != VERSION {
        return Err(format!("it speaks version {}, and this end version {VERSION}", plan.version));
    }
    if plan.flows == 0 || plan.flows > MOST_FLOWS {
        return Err(format!("{} flows, expected 1 to {MOST_FLOWS}", plan.flows));
    }
    if !plan.work.is_sound() {
        return Err(format!("questions and answers have 1 to {LARGEST_MESSAGE} bytes"));
    }
    let mut expected = expected.lock();
    let of_source = expected.values().filter(|other| other.from == awaits.from).count();
    if of_source >= MOST_MEASUREMENTS - expected.len() {
        return Err("too many measurements are under way: try again later".to_owned());
    }
    match expected.entry(plan.id) {
        Entry::Vacant(free) => {
            free.insert(awaits);
            Ok(())
        }
        Entry::Occupied(_) => Err("a measurement of that number is under way".to_owned()),
    }
}

async fn all_flows(
    plan: &Plan,
    control: &mut Stream,
    coming: &mut mpsc::Receiver<(u32, Stream)>,
    output: Option<PathBuf>,
) -> Vec<FlowSeen> {
    let mut streams = Vec::new();
    let gather = async {
        while streams.len() < plan.flows as usize {
            let Some(flow) = coming.recv().await else { break };
            streams.push(flow);
        }
    };
    tokio::select! {
        _ = timeout(FLOWS_WITHIN, gather) => {}
        _ = left(control) => return Vec::new(),
    }
    // The other end also begins once all of them are connected.
    let (mut flows, began, (end, ended)) = (JoinSet::new(), Instant::now(), watch::channel(None));
    let mut moved = Vec::new();
    for (nth, stream) in streams {
        let copy = output.clone().filter(|_| nth == 0);
        let own = Arc::new(AtomicU64::new(0));
        moved.push(Arc::clone(&own));
        flows.spawn(one_flow((nth, stream), (plan.work, plan.reverse, copy), began, own, ended.clone()));
    }
    let total = || moved.iter().map(|own| own.load(Ordering::Relaxed)).sum();
    let mut seen = Vec::new();
    let over = async {
        let problem = tokio::select! {
            problem = left(control) => problem,
            problem = flow::stands_still(total) => problem,
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
    (work, reverse, copy): (Work, bool, Option<PathBuf>),
    began: Instant,
    moved: Arc<AtomicU64>,
    mut end: watch::Receiver<Option<&'static str>>,
) -> FlowSeen {
    let carried = async {
        match work {
            Work::Requests { request_bytes, response_bytes } => {
                flow::answer(&mut stream, request_bytes, response_bytes, &moved).await
            }
            work if reverse => flow::send(&mut stream, flow::Source::of(work), &moved).await,
            work => {
                let is_file = matches!(work, Work::File { .. });
                flow::receive(&mut stream, began, (is_file, copy.as_deref()), &moved).await
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
    use super::*;

    #[test]
    fn a_source_begins_a_measurement_only_while_more_are_free_than_it_has() {
        let expected = Expected::default();
        let begin = |id: u64, from: [u8; 4]| {
            let plan =
                Plan { version: VERSION, id, flows: 1, reverse: false, work: Work::Bytes { bytes: 1 } };
            let awaits = Awaits { flows: mpsc::channel(1).0, from: Source::of(from.into()) };
            register(&plan, &expected, awaits)
        };
        let begun =
            |first: u64, from: [u8; 4]| (first..first + 100).filter(|id| begin(*id, from).is_ok()).count();
        assert_eq!(begun(0, [10, 7, 0, 2]), MOST_MEASUREMENTS / 2);
        assert_eq!(begun(1000, [10, 8, 0, 2]), MOST_MEASUREMENTS / 4);
        assert_eq!(begin(2000, [10, 9, 0, 2]), Ok(()));
        assert!(begin(2000, [10, 9, 0, 2]).is_err_and(|problem| problem.contains("of that number")));
    }

    #[test]
    fn an_output_that_cannot_be_made_is_refused_and_one_that_can_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("hopwise-recv-output-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let said = |path: PathBuf| check_output(&path).expect_err("it is no file").to_string();
        let nowhere = said(folder.join("nosuch/x"));
        assert!(nowhere.contains("nosuch/x: No such file or directory"), "{nowhere}");
        assert!(said(folder.clone()).ends_with("it is a folder, expected a file"));
        let (old, new) = (folder.join("old"), folder.join("new"));
        fs::write(&old, "kept").expect("the folder can be written");
        assert!(said(old.join("x")).contains("Not a directory"));
        for path in [&old, &new, Path::new("/dev/null")] {
            check_output(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        assert_eq!(fs::read_to_string(&old).ok().as_deref(), Some("kept"));
        assert!(!new.exists(), "nothing has come yet");
        let _ = fs::remove_dir_all(&folder);
    }
}
