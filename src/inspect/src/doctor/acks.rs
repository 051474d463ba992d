//! Compares the ACKs that one machine sends with the ACKs that a second machine hears: some drivers drop or merge
//! waiting ACKs.
//!
//! The kernels' TCP on both sides counts them (TCP_INFO), so that neither root nor a rule of a firewall is needed.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::{Clock, KernelInfo, wait_for, wait_to_read};
use serde::{Deserialize, Serialize};

use super::faults;
use super::finding::Finding;

/// Data is sent until there is so much of it, or for so long.
const BYTES: usize = 1 << 20;
const LONGEST: Duration = Duration::from_secs(10);
const BLOCK: usize = 8 << 10;
/// The time between two attempts to connect.
const RETRY: Duration = Duration::from_millis(200);
/// Fewer ACKs say nothing.
const LEAST: u32 = 20;
/// The fewest missing ACKs that are a fault where data was lost too: as a number, and in thousandths.
const MISSING: u32 = 10;
const MISSING_PERMILLE: u32 = 50;

/// The answer of the machine that sent the ACKs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SentAcks {
    acks: u32,
}

/// The counts of both machines, of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionAcks {
    pub(super) sent: u32,
    pub(super) heard: u32,
    /// Segments with data, and how often one was sent again.
    pub(super) data: u32,
    pub(super) resent: u32,
}

/// Acknowledges the data of one client, and tells it the number of ACKs.
pub(super) fn answer(at: SocketAddr, within: Duration) -> io::Result<()> {
    let listener = TcpListener::bind(at)?;
    wait_to_read(listener.as_fd(), within)?;
    let (mut client, _) = listener.accept()?;
    client.set_read_timeout(Some(within))?;
    client.set_write_timeout(Some(within))?;
    io::copy(&mut client, &mut io::sink())?;
    let info = KernelInfo::of(client.as_fd())?;
    let acks = pure(info.segments, info.data_segments)?;
    client.write_all(&serde_json::to_vec(&SentAcks { acks })?)
}

/// Sends data to a machine that answers, and counts the ACKs that come back.
pub(super) fn ask(to: SocketAddr, within: Duration) -> io::Result<ConnectionAcks> {
    let mut connection = connect(to, within)?;
    connection.set_read_timeout(Some(within))?;
    connection.set_write_timeout(Some(within))?;
    let (clock, block, mut left) = (Clock::start(), vec![b'a'; BLOCK], BYTES);
    while left > 0 && clock.now().since(Instant::ZERO) < LONGEST {
        connection.write_all(&block)?;
        left = left.saturating_sub(BLOCK);
    }
    connection.shutdown(Shutdown::Write)?;
    let mut said = Vec::new();
    connection.read_to_end(&mut said)?;
    let SentAcks { acks } = serde_json::from_slice(&said)?;
    let info = KernelInfo::of(connection.as_fd())?;
    Ok(ConnectionAcks {
        sent: acks,
        heard: pure(info.segments_received, info.data_segments_received)?,
        data: info.data_segments.ok_or(io::ErrorKind::Unsupported)?,
        resent: info.retransmissions,
    })
}

/// The segments without data.
fn pure(all: Option<u32>, with_data: Option<u32>) -> io::Result<u32> {
    let too_old =
        || io::Error::new(io::ErrorKind::Unsupported, "this kernel does not count segments (Linux 4.6)");
    all.zip(with_data).map(|(all, data)| all.saturating_sub(data)).ok_or_else(too_old)
}

/// The other machine may begin to listen later.
fn connect(to: SocketAddr, within: Duration) -> io::Result<TcpStream> {
    let clock = Clock::start();
    loop {
        let left = within.saturating_sub(clock.now().since(Instant::ZERO)).max(RETRY);
        match TcpStream::connect_timeout(&to, left) {
            Err(error) if clock.now().since(Instant::ZERO) + RETRY > within => return Err(error),
            Err(_) => drop(wait_for(&mut [], RETRY)?),
            done => return done,
        }
    }
}

/// The counts of data towards that machine.
pub(super) fn finding(way: &str, counted: io::Result<ConnectionAcks>) -> Finding {
    let ConnectionAcks { sent, heard, data, resent } = match counted {
        Ok(counts) => counts,
        Err(error) => return faults::ACKS_MISSING.skipped(format!("{way}: {error}")),
    };
    let said = format!("{way}: {sent} ACKs sent, {heard} heard; {resent} of {data} data segments resent");
    if sent < LEAST {
        return faults::ACKS_MISSING.skipped(format!("{said}: too few"));
    }
    let missing = sent.saturating_sub(heard);
    let permille = |part: u32, of: u32| part.saturating_mul(1_000).checked_div(of).unwrap_or(0);
    // A lossy path takes ACKs too, and more of them than data after which a retransmission was not needed.
    let expected = MISSING_PERMILLE.saturating_add(permille(resent, data).saturating_mul(2));
    if missing >= MISSING && permille(missing, sent) > expected {
        return faults::ACKS_MISSING.found(said);
    }
    faults::ACKS_MISSING.ok(said)
}
