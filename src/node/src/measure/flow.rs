//! One flow of a measurement: writes or reads payload and counts it.

use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hopwise_lab::hex;
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout_at};

use super::carrier::Stream;
use super::output::OutputFile;
use super::protocol::{FlowSeen, FlowWork};

const CHUNK: usize = 128 << 10;
/// All that is sent but a file. All flows send these bytes, whatever the size of their messages.
static DATA: [u8; CHUNK] = [b'h'; CHUNK];

/// The bytes that one flow of so many reads at once. All flows of a measurement together have a bounded buffer.
fn chunk(flows: u32) -> Vec<u8> {
    const OF_ALL: usize = 1 << 20;
    let flows = usize::try_from(flows).unwrap_or(usize::MAX).max(1);
    vec![0; (OF_ALL / flows).min(CHUNK)]
}

/// Time for data on its way to arrive after the control connection has ended.
pub(crate) const LAST_BYTES_WITHIN: Duration = Duration::from_secs(5);
/// A link that fades may be silent for minutes.
const STANDS_STILL_FOR: Duration = Duration::from_secs(300);

/// Ends with the reason once a measurement has moved nothing for too long.
pub(crate) async fn stands_still(moved: impl Fn() -> u64) -> &'static str {
    let (mut last, mut since) = (moved(), Instant::now());
    while since.elapsed() < STANDS_STILL_FOR {
        sleep(Duration::from_secs(1)).await;
        let now = moved();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    "nothing has come or gone for 300 s"
}

/// Ends with the reason where a measurement for that time has not ended so long after it, though bytes still come.
pub(crate) async fn overtime(time: Option<Duration>) -> &'static str {
    match time {
        Some(time) => sleep(time.saturating_add(STANDS_STILL_FOR)).await,
        None => pending().await,
    }
    "it has not ended 300 s after its time"
}

/// The data that a flow sends.
#[derive(Clone, Debug)]
pub(crate) enum FlowSource<'a> {
    Until(Instant),
    Bytes(u64),
    File(&'a Path),
}

impl FlowSource<'_> {
    /// The source for a plan without a file.
    pub(crate) fn of(work: FlowWork) -> FlowSource<'static> {
        match work {
            FlowWork::BulkFor { micros } => FlowSource::Until(Instant::now() + Duration::from_micros(micros)),
            FlowWork::Bytes { bytes } | FlowWork::File { bytes } => FlowSource::Bytes(bytes),
            FlowWork::Requests { .. } => FlowSource::Bytes(0),
        }
    }
}

/// Sends all data, closes this side, and waits until the other has read it and closed too. `moved` counts the bytes.
pub(crate) async fn send(stream: &mut Stream, source: FlowSource<'_>, moved: &AtomicU64) -> FlowSeen {
    let began = Instant::now();
    let mut seen = FlowSeen::default();
    let mut ended = match source {
        FlowSource::Until(until) => send_until(stream, until, moved, &mut seen).await,
        FlowSource::Bytes(bytes) => send_bytes(stream, bytes, moved, &mut seen).await,
        FlowSource::File(path) => send_file(stream, path, moved, &mut seen).await,
    };
    if ended.is_ok() {
        ended = finish(stream).await;
    }
    close(seen, began, ended, stream)
}

/// Use of the data of one flow.
#[derive(Debug)]
pub(crate) struct FlowUse {
    pub(crate) sha256: bool,
    /// The place of a copy. It is whole with so many bytes, or without a number with any.
    pub(crate) copy: Option<(PathBuf, Option<u64>)>,
    /// The flows of its measurement.
    pub(crate) flows: u32,
}

/// Reads to the end of a flow that began at `began`, and keeps a copy if one is wanted.
pub(crate) async fn receive(
    stream: &mut Stream,
    began: Instant,
    wanted: FlowUse,
    moved: &AtomicU64,
) -> FlowSeen {
    let mut seen = FlowSeen::default();
    let mut ended = receive_all(stream, wanted, moved, &mut seen).await;
    if ended.is_ok() {
        ended = stream.shutdown().await;
    }
    close(seen, began, ended, stream)
}

/// Answers each request until the other end closes. The sizes are the peer's choice, so neither is ever in memory.
pub(crate) async fn answer(
    stream: &mut Stream,
    (request_bytes, response_bytes): (u32, u32),
    flows: u32,
    moved: &AtomicU64,
) -> FlowSeen {
    let began = Instant::now();
    let mut seen = FlowSeen::default();
    stream.set_nodelay();
    let mut chunk = chunk(flows);
    let ended = loop {
        match read_size(stream, &mut chunk, request_bytes).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break stream.shutdown().await,
            Err(error) => break Err(error),
            Ok(()) => count(size(request_bytes), moved, &mut seen),
        }
        if let Err(error) = write_size(stream, response_bytes).await {
            break Err(error);
        }
    };
    close(seen, began, ended, stream)
}

async fn read_size(from: &mut (impl AsyncRead + Unpin), chunk: &mut [u8], bytes: u32) -> io::Result<()> {
    let mut left = size(bytes);
    while left > 0 {
        let most = left.min(chunk.len());
        match from.read(&mut chunk[..most]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => left -= read,
        }
    }
    Ok(())
}

async fn write_size(to: &mut (impl AsyncWrite + Unpin), bytes: u32) -> io::Result<()> {
    let mut left = size(bytes);
    while left > 0 {
        let most = left.min(DATA.len());
        to.write_all(&DATA[..most]).await?;
        left -= most;
    }
    Ok(())
}

/// The end of a series of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Enough {
    Asked(u64),
    At(Instant),
}

/// Sends one request after the other. `took` gets the microseconds of each, as far as it has room.
pub(crate) async fn ask(
    stream: &mut Stream,
    (request_bytes, response_bytes): (u32, u32),
    enough: Enough,
    moved: &AtomicU64,
    took: &mut Vec<u32>,
) -> FlowSeen {
    let began = Instant::now();
    let mut seen = FlowSeen::default();
    stream.set_nodelay();
    let mut chunk = vec![0; CHUNK.min(size(response_bytes))];
    let mut asked = 0;
    let ended = loop {
        let is_enough = match enough {
            Enough::Asked(most) => asked >= most,
            Enough::At(at) => Instant::now() >= at,
        };
        if is_enough {
            break finish(stream).await;
        }
        let at = Instant::now();
        if let Err(error) = write_size(stream, request_bytes).await {
            break Err(error);
        }
        if let Err(error) = read_size(stream, &mut chunk, response_bytes).await {
            break Err(error);
        }
        asked += 1;
        seen.bytes += u64::from(request_bytes) + u64::from(response_bytes);
        moved.fetch_add(u64::from(response_bytes), Ordering::Relaxed);
        if took.len() < took.capacity() {
            took.push(u32::try_from(at.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
    };
    close(seen, began, ended, stream)
}

fn size(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn close(mut seen: FlowSeen, began: Instant, ended: io::Result<()>, stream: &Stream) -> FlowSeen {
    seen.micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    seen.side = stream.report();
    seen.problem = ended.err().map(|error| error.to_string());
    seen
}

/// This side has sent all; the other closes when it has read all.
async fn finish(stream: &mut Stream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut nothing = [0; 1];
    match stream.read(&mut nothing).await? {
        0 => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the peer sent what nobody asked for")),
    }
}

fn count(bytes: usize, moved: &AtomicU64, seen: &mut FlowSeen) {
    let bytes = u64::try_from(bytes).unwrap_or(0);
    seen.bytes += bytes;
    moved.fetch_add(bytes, Ordering::Relaxed);
}

async fn send_until(
    stream: &mut Stream,
    until: Instant,
    moved: &AtomicU64,
    seen: &mut FlowSeen,
) -> io::Result<()> {
    while Instant::now() < until {
        // A write that is not done in time has written nothing.
        let Ok(written) = timeout_at(until, stream.write(&DATA)).await else { break };
        count(written?, moved, seen);
    }
    Ok(())
}

async fn send_bytes(
    stream: &mut Stream,
    bytes: u64,
    moved: &AtomicU64,
    seen: &mut FlowSeen,
) -> io::Result<()> {
    while seen.bytes < bytes {
        let left = usize::try_from(bytes - seen.bytes).unwrap_or(CHUNK).min(CHUNK);
        let written = stream.write(&DATA[..left]).await?;
        count(written, moved, seen);
    }
    Ok(())
}

async fn send_file(
    stream: &mut Stream,
    path: &Path,
    moved: &AtomicU64,
    seen: &mut FlowSeen,
) -> io::Result<()> {
    let mut file = File::open(path).await?;
    let (mut chunk, mut sha256) = (vec![0; CHUNK], Sha256::new());
    loop {
        let read = file.read(&mut chunk).await?;
        if read == 0 {
            break;
        }
        sha256.update(&chunk[..read]);
        stream.write_all(&chunk[..read]).await?;
        count(read, moved, seen);
    }
    seen.sha256 = Some(hex(&sha256.finalize()));
    Ok(())
}

async fn receive_all(
    stream: &mut (impl AsyncRead + Unpin),
    FlowUse { sha256: wants_sha256, copy, flows }: FlowUse,
    moved: &AtomicU64,
    seen: &mut FlowSeen,
) -> io::Result<()> {
    let (path, whole) = copy.unzip();
    let mut copy = if let Some(path) = path { Some(OutputFile::begin(&path).await?) } else { None };
    let (mut chunk, mut sha256) = (chunk(flows), Sha256::new());
    loop {
        let read = stream.read(&mut chunk).await?;
        if read == 0 {
            break;
        }
        count(read, moved, seen);
        if wants_sha256 {
            sha256.update(&chunk[..read]);
        }
        if let Some(copy) = &mut copy {
            copy.write(&chunk[..read]).await?;
        }
    }
    if let Some(wanted) = whole.flatten().filter(|wanted| *wanted != seen.bytes) {
        let problem = format!("{} of {wanted} bytes came, so they are not kept", seen.bytes);
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    if let Some(copy) = copy {
        copy.keep().await?;
    }
    seen.sha256 = wants_sha256.then(|| hex(&sha256.finalize()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_measurement_stands_still_after_300_s_without_a_byte() {
        let (moved, began) = (AtomicU64::new(0), Instant::now());
        let last_byte = async {
            sleep(Duration::from_secs(200)).await;
            moved.store(1, Ordering::Relaxed);
            pending::<()>().await;
        };
        tokio::select! {
            () = last_byte => {}
            _ = stands_still(|| moved.load(Ordering::Relaxed)) => {}
        }
        assert!((500..=502).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_measurement_for_a_time_ends_though_bytes_still_come() {
        let began = Instant::now();
        overtime(Some(Duration::from_secs(3))).await;
        assert!((303..=304).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn messages_of_any_size_go_through_a_small_chunk() {
        let (mut a, mut b) = tokio::io::duplex(1 << 16);
        let bytes = 1 << 20;
        let mut small = chunk(128);
        assert!(small.len() <= 8 << 10 && chunk(1).len() == CHUNK, "{}", small.len());
        let (written, read) = tokio::join!(write_size(&mut a, bytes), read_size(&mut b, &mut small, bytes));
        written.and(read).expect("all of it");
        drop(a);
        let ended = read_size(&mut b, &mut small, 1).await.expect_err("it is the end");
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }
}
