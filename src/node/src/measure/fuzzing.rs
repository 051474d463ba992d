//! The bytes of strangers at `hopwise recv`, and of a called end at `hopwise send`, for fuzz targets.

use std::fmt;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::protocol::{
    CalledAnswer, FlowOpening, LONGEST_ANSWER, LONGEST_PLAN, LONGEST_TEXT, MeasurementPlan, read_line,
    write_line,
};

/// A stranger's first bytes at `recv`: an opening, and a plan behind that of a control connection.
pub fn called(mut bytes: &[u8]) {
    let whole = bytes;
    let Ok(opening) = now(FlowOpening::read(&mut bytes)) else { return };
    let mut said = Vec::new();
    now(opening.write(&mut said)).expect("memory takes all");
    assert_eq!(said, whole[..whole.len() - bytes.len()], "{opening:?} is said as it was heard");
    if opening == FlowOpening::Control
        && let Some(plan) = line::<MeasurementPlan>(bytes, LONGEST_PLAN)
    {
        // Its sizes and its time are computed for any plan that is taken.
        let _ = (plan.work.is_sound(), plan.work.time(), plan.work.bytes());
    }
}

/// The answer of a called end.
pub fn answered(bytes: &[u8]) {
    if let Some(CalledAnswer::Saw { flows }) = line(bytes, LONGEST_ANSWER) {
        for flow in flows {
            let texts = [flow.sha256.as_deref(), flow.problem.as_deref(), Some(&*flow.side.remote)];
            for text in texts.into_iter().flatten() {
                assert!(text.chars().count() <= LONGEST_TEXT && !text.contains(char::is_control), "{text:?}");
            }
        }
    }
}

/// The message of a line. It takes the line alone, and is read back as it was written.
fn line<T: DeserializeOwned + Serialize + fmt::Debug>(mut bytes: &[u8], longest: usize) -> Option<T> {
    let whole = bytes;
    let message = now(read_line::<T>(&mut bytes, longest));
    let taken = whole.len() - bytes.len();
    let ends = whole.iter().position(|byte| *byte == b'\n').map_or(whole.len(), |at| at + 1);
    assert!(taken <= ends.min(longest + 1), "{taken} bytes of a line of {ends}");
    let message = message.ok()?;
    let mut written = Vec::new();
    now(write_line(&mut written, &message)).expect("memory takes all");
    let again = now(read_line::<T>(&mut &written[..], usize::MAX)).expect("it is ours");
    assert_eq!(format!("{again:?}"), format!("{message:?}"));
    Some(message)
}

/// Bytes in memory are never waited for.
fn now<T>(future: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits for memory"),
    }
}
