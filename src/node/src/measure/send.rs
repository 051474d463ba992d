//! `hopwise send`: the end of a measurement that begins it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::task::JoinSet;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::measure::carrier::{Carrier, Stream};
use crate::measure::flow::{self, Enough, FlowSource, FlowUse};
use crate::measure::protocol::{
    self, CalledAnswer, FlowOpening, FlowSeen, FlowWork, LONGEST_ANSWER, MeasurementPlan, RESULT_WITHIN,
};
use hopwise_daemon::failure::{self, Failure};
use hopwise_daemon::signals;

mod arguments;
mod printing;
mod report;

pub use arguments::Arguments;
use printing::MeasurementProgress;
use report::MeasurementReport;

const CONNECT_WITHIN: Duration = Duration::from_secs(30);
/// Time after which the user sees what the program waits for.
const TELL_AFTER: Duration = Duration::from_secs(2);
/// The largest number of round-trip times that are kept, over all flows.
const MOST_TIMES: usize = 4 << 20;

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plan = arguments.plan()?;
    let (runtime, mut ending) = signals::runtime()?;
    let carrier = arguments.link.open()?;
    let interrupted = || Failure::failed("measure", "interrupted");
    let measured = runtime.block_on(async {
        let report = tokio::select! {
            report = measure(arguments, &carrier, plan) => report,
            () = ending.next() => Err(interrupted()),
        };
        carrier.stop().await;
        let report = report?;
        tokio::select! {
            printed = failure::print(printing::result(&report, arguments.json)?) => printed?,
            () = ending.next() => return Err(interrupted()),
        }
        report.problem().map_or(Ok(()), |problem| Err(Failure::failed("measure", problem)))
    });
    runtime.shutdown_timeout(signals::LAST_WORDS_WITHIN);
    measured
}

async fn measure(
    arguments: &Arguments,
    carrier: &Carrier,
    plan: MeasurementPlan,
) -> Result<MeasurementReport, Failure> {
    let mut control = connect(arguments.to, carrier, FlowOpening::Control).await?;
    protocol::write_line(&mut control, &plan).await.map_err(talk)?;
    ready(&mut control).await?;
    let moved = Arc::new(AtomicU64::new(0));
    let mut streams = Vec::new();
    for nth in 0..plan.flows {
        let stream = connect(arguments.to, carrier, FlowOpening::Flow { id: plan.id, flow: nth }).await?;
        streams.push((nth, stream));
    }
    // All of them are connected, so that their sum is of one time.
    let (mut flows, enough, began) = (JoinSet::new(), arguments.enough(), Instant::now());
    for (nth, stream) in streams {
        let (plan, file, moved) = (plan.clone(), arguments.file.clone(), Arc::clone(&moved));
        flows.spawn(async move {
            let (seen, took) = one_flow(stream, (&plan, file, enough), began, &moved).await;
            (FlowSeen { flow: nth, ..seen }, took)
        });
    }
    let mut answer = pin!(protocol::read_line::<CalledAnswer>(&mut control, LONGEST_ANSWER));
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
            problem = flow::overtime(arguments.time_of(plan.work)) => problem,
        }
    };
    let (ours, took) = tokio::select! {
        seen = watch(arguments, &plan, &mut flows, &moved) => seen,
        problem = over => return Err(Failure::failed("measure", problem)),
    };
    let answer = match answered {
        Some(answered) => Ok(answered),
        None => timeout(RESULT_WITHIN, answer).await,
    };
    let theirs = flows_seen(answer)?;
    Ok(MeasurementReport::new(plan.work, plan.reverse, &paired(ours, &theirs, plan.reverse), took))
}

async fn connect(to: SocketAddr, carrier: &Carrier, opening: FlowOpening) -> Result<Stream, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed("connect", format_args!("{to}: {error}"));
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
    arguments: &Arguments,
    plan: &MeasurementPlan,
    flows: &mut JoinSet<(FlowSeen, Vec<u32>)>,
    moved: &AtomicU64,
) -> (Vec<FlowSeen>, Vec<u32>) {
    let (mut seen, mut took) = (Vec::new(), Vec::new());
    let mut progress = MeasurementProgress::begin(arguments, plan);
    let mut ticks = interval(arguments.interval.0.max(Duration::from_millis(50)));
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
            now = ticks.tick() => progress.tell(now, moved.load(Ordering::Relaxed)).await,
        }
    }
    progress.end();
    (seen, took)
}

fn talk(error: io::Error) -> Failure {
    Failure::failed("talk to the other end", error)
}

/// The flows as the other end saw them.
fn flows_seen(answer: Result<io::Result<CalledAnswer>, Elapsed>) -> Result<Vec<FlowSeen>, Failure> {
    let silent = || Failure::failed("talk to the other end", "it did not tell what it saw");
    match answer.map_err(|_| silent())?.map_err(talk)? {
        CalledAnswer::Saw { flows } => Ok(flows),
        _ => Err(silent()),
    }
}

/// Waits until the other end says that it is ready.
async fn ready(control: &mut (impl AsyncRead + Unpin)) -> Result<(), Failure> {
    let failed = |problem: &str| Err(Failure::failed("talk to the other end", problem));
    match timeout(CONNECT_WITHIN, protocol::read_line(control, LONGEST_ANSWER)).await {
        Ok(Ok(CalledAnswer::Ready)) => Ok(()),
        Ok(Ok(CalledAnswer::Refused { problem })) => Err(Failure::failed("the other end refused", problem)),
        Ok(Ok(CalledAnswer::Saw { .. })) => failed("it spoke out of turn"),
        Ok(Err(error)) => failed(&error.to_string()),
        Err(_) => failed("it does not say whether it is ready"),
    }
}

async fn one_flow(
    mut stream: Stream,
    (plan, file, enough): (&MeasurementPlan, Option<PathBuf>, Enough),
    began: Instant,
    moved: &AtomicU64,
) -> (FlowSeen, Vec<u32>) {
    let mut took = Vec::new();
    let seen = match (plan.work, &file) {
        (FlowWork::Requests { request_bytes, response_bytes }, _) => {
            took.reserve_exact(MOST_TIMES / usize::try_from(plan.flows).unwrap_or(1).max(1));
            flow::ask(&mut stream, (request_bytes, response_bytes), enough, moved, &mut took).await
        }
        _ if plan.reverse => {
            let wanted = FlowUse { sha256: false, copy: None, flows: plan.flows };
            flow::receive(&mut stream, began, wanted, moved).await
        }
        (_, Some(path)) => flow::send(&mut stream, FlowSource::File(path), moved).await,
        (work, None) => flow::send(&mut stream, FlowSource::of(work), moved).await,
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
