//! `hopwise recv`: the end of a measurement that waits for the other.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use clap::Args;
use hopwise_lab::units::Size;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::failure::Failure;
use crate::measure::carrier::{Listener, Place, Stream};
use crate::measure::flow::{self, Source};
use crate::measure::protocol::{
    self, Answer, FlowSeen, LARGEST_MESSAGE, MOST_FLOWS, Opening, Plan, VERSION, Work,
};
use crate::measure::report::rate_of;
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
    place: Place,
}

const OPENING_WITHIN: Duration = Duration::from_secs(10);
/// The time from the plan to its last flow.
const FLOWS_WITHIN: Duration = Duration::from_secs(60);
/// The largest number of simultaneous measurements.
const MOST_MEASUREMENTS: usize = 64;

/// The receiver of flows for each measurement, by its id.
type Expected = Arc<Mutex<BTreeMap<u64, mpsc::Sender<(u32, Stream)>>>>;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.output.as_deref().map_or(Ok(()), check_output)?;
    let (runtime, mut ending) = signals::runtime()?;
    let carrier = arguments.place.open()?;
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
        let mut clients = JoinSet::new();
        if !self.json {
            crate::failure::print(format!("waiting at port {}\n", self.port)).await?;
        }
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let stream = accepted.map_err(|error| Failure::failed("accept", error))?;
                    clients.spawn(client(stream, Arc::clone(&expected), self.output.clone()));
                }
                Some(ended) = clients.join_next() => {
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

/// Serves one connection: hands a flow on, or follows a control connection to its end.
async fn client(
    mut stream: Stream,
    expected: Expected,
    output: Option<PathBuf>,
) -> Option<(Plan, Vec<FlowSeen>)> {
    match timeout(OPENING_WITHIN, Opening::read(&mut stream)).await.ok()?.ok()? {
        Opening::Flow { id, flow } => {
            let to = expected.lock().get(&id).cloned()?;
            // A measurement that is over takes no more flows.
            let _ = to.send((flow, stream)).await;
            None
        }
        Opening::Control => {
            let plan: Plan = timeout(OPENING_WITHIN, protocol::read_line(&mut stream)).await.ok()?.ok()?;
            measurement(stream, plan, &expected, output).await
        }
    }
}

async fn measurement(
    mut control: Stream,
    plan: Plan,
    expected: &Expected,
    output: Option<PathBuf>,
) -> Option<(Plan, Vec<FlowSeen>)> {
    let (to, mut coming) = mpsc::channel(1);
    if let Err(problem) = register(&plan, expected, to) {
        let _ = protocol::write_line(&mut control, &Answer::Refused { problem }).await;
        return None;
    }
    let seen = match protocol::write_line(&mut control, &Answer::Ready).await {
        Ok(()) => all_flows(&plan, &mut coming, output).await,
        Err(_) => Vec::new(),
    };
    expected.lock().remove(&plan.id);
    // The other end may be gone; the results are printed here all the same.
    let _ = protocol::write_line(&mut control, &Answer::Saw { flows: seen.clone() }).await;
    Some((plan, seen))
}

fn register(plan: &Plan, expected: &Expected, to: mpsc::Sender<(u32, Stream)>) -> Result<(), String> {
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
    if expected.len() >= MOST_MEASUREMENTS {
        return Err("too many measurements are under way: try again later".to_owned());
    }
    match expected.insert(plan.id, to) {
        None => Ok(()),
        Some(other) => {
            expected.insert(plan.id, other);
            Err("a measurement of that number is under way".to_owned())
        }
    }
}

async fn all_flows(
    plan: &Plan,
    coming: &mut mpsc::Receiver<(u32, Stream)>,
    output: Option<PathBuf>,
) -> Vec<FlowSeen> {
    let mut streams = Vec::new();
    for _ in 0..plan.flows {
        let Ok(Some(flow)) = timeout(FLOWS_WITHIN, coming.recv()).await else { break };
        streams.push(flow);
    }
    // The other end also begins once all of them are connected.
    let (mut flows, began) = (JoinSet::new(), Instant::now());
    for (nth, stream) in streams {
        let copy = output.clone().filter(|_| nth == 0);
        flows.spawn(one_flow((nth, stream), plan.work, plan.reverse, copy, began));
    }
    let mut seen: Vec<FlowSeen> = flows.join_all().await;
    seen.sort_by_key(|seen| seen.flow);
    seen
}

async fn one_flow(
    (nth, mut stream): (u32, Stream),
    work: Work,
    reverse: bool,
    copy: Option<PathBuf>,
    began: Instant,
) -> FlowSeen {
    let moved = AtomicU64::new(0);
    let seen = match work {
        Work::Requests { request_bytes, response_bytes } => {
            flow::answer(&mut stream, request_bytes, response_bytes).await
        }
        work if reverse => flow::send(&mut stream, Source::of(work), &moved).await,
        work => {
            let is_file = matches!(work, Work::File { .. });
            flow::receive(&mut stream, began, (is_file, copy.as_deref()), &moved).await
        }
    };
    FlowSeen { flow: nth, ..seen }
}

#[cfg(test)]
mod tests {
    use super::*;

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
