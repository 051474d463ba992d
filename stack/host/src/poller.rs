//! Waits for descriptors, for an absolute deadline, or to be woken by another thread.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;

use hopwise_core::Instant;

use crate::clock::Clock;

/// What the eventfd that wakes is known by.
const WAKE: u64 = u64::MAX;

/// An epoll instance; any thread may [wake](Poller::wake) the one that waits.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    wake: OwnedFd,
}

/// What a descriptor is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    Nothing,
    Read,
    /// Also for room to write.
    ReadAndRoom,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        match self {
            Interest::Nothing => epoll::EventFlags::empty(),
            Interest::Read => epoll::EventFlags::IN,
            Interest::ReadAndRoom => epoll::EventFlags::IN | epoll::EventFlags::OUT,
        }
    }
}

impl Poller {
    pub fn new() -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        Ok(Poller { epoll, wake })
    }

    /// From now on `wait` tells by this index when there is something to read.
    pub fn add(&self, fd: BorrowedFd<'_>, index: usize) -> io::Result<()> {
        let data = epoll::EventData::new_u64(index as u64);
        Ok(epoll::add(&self.epoll, fd, data, Interest::Read.flags())?)
    }

    pub fn change(&self, fd: BorrowedFd<'_>, index: usize, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(index as u64);
        Ok(epoll::modify(&self.epoll, fd, data, interest.flags())?)
    }

    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Ends the wait that is under way, or the next one.
    pub fn wake(&self) {
        // It fails only when it is full of wakes that nobody has taken, which is as good.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Waits until something is ready, the deadline has come, or it is woken; marks in `ready` the links that may be
    /// read or have room, by index.
    pub fn wait(&self, clock: &Clock, until: Option<Instant>, ready: &mut Vec<usize>) -> io::Result<()> {
        ready.clear();
        let rest = until.map(|until| timespec(until.since(clock.now())));
        let mut events = [const { epoll::Event { flags: epoll::EventFlags::empty(), data: NO_DATA } }; 16];
        let count = match epoll::wait(&self.epoll, &mut events[..], rest.as_ref()) {
            Ok(count) => count,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in &events[..count] {
            let data = event.data;
            if data.u64() == WAKE {
                let mut taken = [0; 8];
                let _ = rustix::io::read(&self.wake, &mut taken[..]);
            } else {
                ready.push(data.u64() as usize);
            }
        }
        Ok(())
    }
}

const NO_DATA: epoll::EventData = epoll::EventData::new_u64(0);

fn timespec(rest: Duration) -> Timespec {
    let seconds = i64::try_from(rest.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds.min(1 << 30), tv_nsec: rest.subsec_nanos().into() }
}
