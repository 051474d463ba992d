//! One measurement, from its admission to its result.

use std::future::pending;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::OPENING_WITHIN;
use super::room::{Admitted, Flows};
use crate::measure::carrier::Stream;
use crate::measure::flow::{self, FlowUse};
use crate::measure::protocol::{self, CalledAnswer, FlowSeen, FlowWork, MeasurementPlan, RESULT_WITHIN};

/// The time from the plan to its last flow.
const FLOWS_WITHIN: Duration = Duration::from_secs(60);
/// The time for the results of a measurement that makes room for another.
const GOES_WITHIN: Duration = Duration::from_millis(500);

/// Carries the flows of an admitted measurement, and tells the other end what this one saw.
pub(super) async fn carry(
    (mut control, plan, admitted, coming): (Stream, MeasurementPlan, Admitted, Flows),
    output: Option<PathBuf>,
) -> (MeasurementPlan, Vec<FlowSeen>) {
    let ready = timeout(OPENING_WITHIN, protocol::write_line(&mut control, &CalledAnswer::Ready)).await;
    let streams = match ready {
        Ok(Ok(())) => gathered(&plan, &mut control, &admitted, coming).await,
        _ => Vec::new(),
    };
    let output = output.filter(|_| admitted.may_write());
    let seen = all_flows(&plan, &mut control, streams, &admitted, output).await;
    // The other end may be gone; that does not keep this end from printing the results.
    let saw = CalledAnswer::Saw { flows: seen.clone() };
    let within = if admitted.is_told() { GOES_WITHIN } else { RESULT_WITHIN };
    tokio::select! {
        _ = timeout(within, protocol::write_line(&mut control, &saw)) => {}
        () = admitted.told_to_go() => {}
    }
    (plan, seen)
}

/// The connections of its flows, one of each.
async fn gathered(
    plan: &MeasurementPlan,
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
    plan: &MeasurementPlan,
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
    plan: MeasurementPlan,
    output: Option<PathBuf>,
    began: Instant,
    moved: Arc<AtomicU64>,
    mut end: watch::Receiver<Option<&'static str>>,
) -> FlowSeen {
    let carried = async {
        match plan.work {
            FlowWork::Requests { request_bytes, response_bytes } => {
                flow::answer(&mut stream, (request_bytes, response_bytes), plan.flows, &moved).await
            }
            work if plan.reverse => flow::send(&mut stream, flow::FlowSource::of(work), &moved).await,
            work => {
                let sha256 = matches!(work, FlowWork::File { .. });
                let copy = output.map(|path| (path, work.bytes()));
                flow::receive(&mut stream, began, FlowUse { sha256, copy, flows: plan.flows }, &moved).await
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
