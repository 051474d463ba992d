//! `hopwise send`: the end of a measurement that begins it.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use hopwise_lab::units::{Size, Time};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::io::AsyncRead;
use tokio::task::JoinSet;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::failure::{self, Failure};
use crate::measure::carrier::{Carrier, LinkArguments, Stream};
use crate::measure::flow::{self, Enough, Source, Wanted};
use crate::measure::protocol::{
    self, Answer, FlowSeen, LARGEST_MESSAGE, LONGEST_ANSWER, Opening, Plan, RESULT_WITHIN, VERSION, Work,
};
use crate::measure::report::{Report, rate_of};
use crate::signals;

/// Measure a path: send data to a `hopwise recv`, or receive data from it with --reverse
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise send 10.7.0.3 --address 10.7.0.2/24 --kernel 10.7.0.1/24 --time 10s
  hopwise send 10.7.0.3 --config configs/node.yaml --parallel 4 --sender '[newreno, limit:8]' --json
  hopwise send 10.7.0.3 --address 10.7.0.2/24 --file disk.img        # says whether its SHA-256 arrived
  hopwise send 10.7.0.3 --address 10.7.0.2/24 --requests 10000 --reverse

It runs a TCP stack of its own, on a TUN device that it makes (--address) or on the links of a node that does not
run (--config). With --kernel-tcp it uses the kernel's TCP for comparison.")]
pub(crate) struct Arguments {
    /// Address, or address and port, of a `hopwise recv`
    #[arg(value_parser = target)]
    to: SocketAddr,
    /// Duration of the measurement (default 10s)
    #[arg(long, value_name = "TIME", conflicts_with_all = ["bytes", "file"])]
    time: Option<Time>,
    /// Amount of data to send on each flow
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["file", "requests"])]
    bytes: Option<Size>,
    /// File to send; its SHA-256 is compared at the other end
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requests", "reverse", "parallel"])]
    file: Option<PathBuf>,
    /// Number of requests to send one after another, each timed (default 10000; with --time: as many as fit)
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10000")]
    requests: Option<u64>,
    /// Size of a request in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    request_bytes: u32,
    /// Size of a response in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    response_bytes: u32,
    /// Let the other end send
    #[arg(long, conflicts_with = "requests")]
    reverse: bool,
    /// Number of flows at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    parallel: u32,
    /// Time between two printed rows; 0s prints none
    #[arg(long, value_name = "TIME", default_value = "1s")]
    interval: Time,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    link: LinkArguments,
}

const DEFAULT_TIME: Duration = Duration::from_secs(10);
const CONNECT_WITHIN: Duration = Duration::from_secs(30);
/// Time after which the user sees what the program waits for.
const TELL_AFTER: Duration = Duration::from_secs(2);
/// The largest number of round-trip times that are kept, over all flows.
const MOST_TIMES: usize = 4 << 20;

fn target(text: &str) -> Result<SocketAddr, String> {
    let with_port =
        text.parse().or_else(|_| text.parse().map(|ip| SocketAddr::new(ip, crate::measure::recv::PORT)));
    with_port.map_err(|_| "expected an address such as 10.7.0.3, 10.7.0.3:5201 or [fd07::3]:5201".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plan = arguments.plan()?;
    let (runtime, mut ending) = signals::runtime()?;
    let carrier = arguments.link.open()?;
    let interrupted = || Failure::failed("measure", "interrupted");
    let measured = runtime.block_on(async {
        let report = tokio::select! {
            report = arguments.measure(&carrier, plan) => report,
            () = ending.next() => Err(interrupted()),
        };
        carrier.stop().await;
        let report = report?;
        tokio::select! {
            printed = failure::print(arguments.shown(&report)?) => printed?,
            () = ending.next() => return Err(interrupted()),
        }
        report.problem().map_or(Ok(()), |problem| Err(Failure::failed("measure", problem)))
    });
    runtime.shutdown_timeout(signals::LAST_WORDS_WITHIN);
    measured
}

impl Arguments {
    fn shown(&self, report: &Report) -> Result<String, Failure> {
        if !self.json {
            return Ok(report.page());
        }
        let json = serde_json::to_string(report).map_err(|error| Failure::failed("write JSON", error))?;
        Ok(json + "\n")
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let time = self.time.map_or(DEFAULT_TIME, |time| time.0);
        let work = match (self.requests, self.bytes, &self.file) {
            (Some(_), ..) => {
                let (request_bytes, response_bytes) = (self.request_bytes, self.response_bytes);
                Work::Requests { request_bytes, response_bytes }
            }
            (None, Some(size), _) => Work::Bytes { bytes: size.0 },
            (None, None, Some(path)) => {
                let facts = std::fs::metadata(path)
                    .map_err(|error| Failure::refused(path.display().to_string(), error))?;
                Work::File { bytes: facts.len() }
            }
            (None, None, None) => Work::BulkFor { micros: micros(time) },
        };
        if !work.is_sound() {
            let wanted =
                format_args!("expected 1 to {LARGEST_MESSAGE} bytes for a question and for an answer");
            return Err(Failure::refused("--request-bytes, --response-bytes", wanted));
        }
        let key = hopwise_host::random_key().map_err(|error| Failure::failed("draw a number", error))?;
        let id = key.iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte));
        Ok(Plan { version: VERSION, id, flows: self.parallel, reverse: self.reverse, work })
    }

    async fn measure(&self, carrier: &Carrier, plan: Plan) -> Result<Report, Failure> {
        let mut control = self.connect(carrier, Opening::Control).await?;
        protocol::write_line(&mut control, &plan).await.map_err(talk)?;
        ready(&mut control).await?;
        let moved = Arc::new(AtomicU64::new(0));
        let mut streams = Vec::new();
        for nth in 0..plan.flows {
            let stream = self.connect(carrier, Opening::Flow { id: plan.id, flow: nth }).await?;
            streams.push((nth, stream));
        }
        // All of them are connected, so that their sum is of one time.
        let (mut flows, enough, began) = (JoinSet::new(), self.enough(), Instant::now());
        for (nth, stream) in streams {
            let (plan, file, moved) = (plan.clone(), self.file.clone(), Arc::clone(&moved));
            flows.spawn(async move {
                let (seen, took) = one_flow(stream, (&plan, file, enough), began, &moved).await;
                (FlowSeen { flow: nth, ..seen }, took)
            });
        }
        let mut answer = pin!(protocol::read_line::<Answer>(&mut control, LONGEST_ANSWER));
        let mut answered = None;
        let over = async {
            let hears = async {
                let is_told = answered.insert(answer.as_mut().await).is_ok();
                sleep(if is_told { RESULT_WITHIN } else { flow::LAST_BYTES_WITHIN }).await;
                "it has ended the measurement, and not the flows"
            };
            tokio::select! {
                problem = hears => problem,
                problem = flow::stands_still(|| moved.load(Ordering::Relaxed)) => problem,
                problem = flow::overtime(self.time_of(plan.work)) => problem,
            }
        };
        let (ours, took) = tokio::select! {
            seen = self.watch(&plan, &mut flows, &moved) => seen,
            problem = over => return Err(Failure::failed("measure", problem)),
        };
        let answer = match answered {
            Some(answered) => Ok(answered),
            None => timeout(RESULT_WITHIN, answer).await,
        };
        let theirs = flows_seen(answer)?;
        Ok(Report::new(plan.work, plan.reverse, &paired(ours, &theirs, plan.reverse), took))
    }

    fn enough(&self) -> Enough {
        match (self.requests, self.time) {
            (Some(most), None) => Enough::Asked(most),
            (_, time) => Enough::At(Instant::now() + time.map_or(DEFAULT_TIME, |time| time.0)),
        }
    }

    /// The time of the measurement, unless it is over bytes or requests.
    fn time_of(&self, work: Work) -> Option<Duration> {
        let of_requests = self.time.map(|time| time.0).filter(|_| matches!(work, Work::Requests { .. }));
        work.time().or(of_requests)
    }

    async fn connect(&self, carrier: &Carrier, opening: Opening) -> Result<Stream, Failure> {
        let to = self.to;
        let failed =
            |error: &dyn std::fmt::Display| Failure::failed("connect", format_args!("{to}: {error}"));
        let mut connecting = pin!(timeout(CONNECT_WITHIN, carrier.connect(to)));
        let connected = match timeout(TELL_AFTER, &mut connecting).await {
            Ok(connected) => connected,
            Err(_) => {
                let seconds = CONNECT_WITHIN.as_secs();
                failure::remark(&format!("{to} does not answer yet; it may take {seconds} s"));
                connecting.await
            }
        };
        let mut stream = connected
            .map_err(|_| failed(&"nobody answers: is `hopwise recv` running there?"))?
            .map_err(|error| match error.kind() {
                io::ErrorKind::ConnectionRefused => {
                    failed(&format_args!("{error}: is `hopwise recv` running there, at this port?"))
                }
                _ => failed(&error),
            })?;
        opening.write(&mut stream).await.map_err(|error| failed(&error))?;
        Ok(stream)
    }

    /// Waits until all flows have ended, and shows progress.
    async fn watch(
        &self,
        plan: &Plan,
        flows: &mut JoinSet<(FlowSeen, Vec<u32>)>,
        moved: &AtomicU64,
    ) -> (Vec<FlowSeen>, Vec<u32>) {
        let (mut seen, mut took) = (Vec::new(), Vec::new());
        let (began, mut last) = (Instant::now(), (Instant::now(), 0));
        let bar = self.bar(plan);
        let rows = !self.json && !self.interval.0.is_zero();
        let mut ticks = interval(self.interval.0.max(Duration::from_millis(50)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks.tick().await;
        loop {
            tokio::select! {
                ended = flows.join_next() => match ended {
                    None => break,
                    Some(Ok((flow, times))) => {
                        seen.push(flow);
                        took.extend(times);
                    }
                    Some(Err(error)) => {
                        let problem = Some(error.to_string());
                        seen.push(FlowSeen { problem, ..FlowSeen::default() });
                    }
                },
                now = ticks.tick() => {
                    let total = moved.load(Ordering::Relaxed);
                    bar.set_position(if bar_shows_bytes(plan) { total } else { elapsed_ms(began) });
                    if rows {
                        let rate = rate_of(total - last.1, now - last.0);
                        let (from, to) = ((last.0 - began).as_secs_f64(), (now - began).as_secs_f64());
                        let size = Size(total - last.1).to_string();
                        let row = format!("{from:6.2}-{to:<6.2} s  {size:>10}  {rate}\n");
                        let bar = bar.clone();
                        let write = move || bar.suspend(|| hopwise_lab::plain::out().write_all(row.as_bytes()));
                        // A reader that stops still gets the measurement's exit status.
                        let _ = tokio::task::spawn_blocking(write).await;
                    }
                    last = (now, total);
                }
            }
        }
        bar.finish_and_clear();
        (seen, took)
    }

    fn bar(&self, plan: &Plan) -> ProgressBar {
        if self.json || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let all = match plan.work {
            Work::Bytes { bytes } => bytes.saturating_mul(u64::from(plan.flows)),
            Work::File { bytes } => bytes,
            Work::BulkFor { micros } => micros / 1000,
            Work::Requests { .. } => return ProgressBar::new_spinner(),
        };
        let template = if bar_shows_bytes(plan) {
            "{bar:40} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}"
        } else {
            "{bar:40} {elapsed} of the time"
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::new(all).with_style(style)
    }
}

fn talk(error: io::Error) -> Failure {
    Failure::failed("talk to the other end", error)
}

/// The flows as the other end saw them.
fn flows_seen(answer: Result<io::Result<Answer>, Elapsed>) -> Result<Vec<FlowSeen>, Failure> {
    let silent = || Failure::failed("talk to the other end", "it did not tell what it saw");
    match answer.map_err(|_| silent())?.map_err(talk)? {
        Answer::Saw { flows } => Ok(flows),
        _ => Err(silent()),
    }
}

/// Waits until the other end says that it is ready.
async fn ready(control: &mut (impl AsyncRead + Unpin)) -> Result<(), Failure> {
    let failed = |problem: &str| Err(Failure::failed("talk to the other end", problem));
    match timeout(CONNECT_WITHIN, protocol::read_line(control, LONGEST_ANSWER)).await {
        Ok(Ok(Answer::Ready)) => Ok(()),
        Ok(Ok(Answer::Refused { problem })) => Err(Failure::failed("the other end refused", problem)),
        Ok(Ok(Answer::Saw { .. })) => failed("it spoke out of turn"),
        Ok(Err(error)) => failed(&error.to_string()),
        Err(_) => failed("it does not say whether it is ready"),
    }
}

fn bar_shows_bytes(plan: &Plan) -> bool {
    matches!(plan.work, Work::Bytes { .. } | Work::File { .. })
}

fn elapsed_ms(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

async fn one_flow(
    mut stream: Stream,
    (plan, file, enough): (&Plan, Option<PathBuf>, Enough),
    began: Instant,
    moved: &AtomicU64,
) -> (FlowSeen, Vec<u32>) {
    let mut took = Vec::new();
    let seen = match (plan.work, &file) {
        (Work::Requests { request_bytes, response_bytes }, _) => {
            took.reserve_exact(MOST_TIMES / usize::try_from(plan.flows).unwrap_or(1).max(1));
            flow::ask(&mut stream, (request_bytes, response_bytes), enough, moved, &mut took).await
        }
        _ if plan.reverse => {
            let wanted = Wanted { sha256: false, copy: None, flows: plan.flows };
            flow::receive(&mut stream, began, wanted, moved).await
        }
        (_, Some(path)) => flow::send(&mut stream, Source::File(path), moved).await,
        (work, None) => flow::send(&mut stream, Source::of(work), moved).await,
    };
    (seen, took)
}

/// Each flow's source and sink, in the flows' order. A flow without a report from the other end has a problem of its
/// own.
fn paired(mut ours: Vec<FlowSeen>, theirs: &[FlowSeen], reverse: bool) -> Vec<(FlowSeen, FlowSeen)> {
    ours.sort_by_key(|seen| seen.flow);
    let pair = |our: FlowSeen| {
        let their = theirs.iter().find(|their| their.flow == our.flow).cloned();
        let their = their.unwrap_or_else(|| FlowSeen {
            problem: Some("the other end never saw this flow".to_owned()),
            ..FlowSeen::default()
        });
        if reverse { (their, our) } else { (our, their) }
    };
    ours.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_accepts_and_says_nothing_is_not_waited_for_without_end() {
        let (mut control, _silent) = tokio::io::duplex(64);
        let ended = timeout(Duration::from_secs(3600), ready(&mut control)).await;
        let problem = ended.expect("it ends").expect_err("nobody is ready").to_string();
        assert!(problem.contains("does not say whether it is ready"), "{problem}");
    }
}
