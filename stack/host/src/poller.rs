//! Waits for descriptors, an absolute deadline, or a wake by another thread.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollEvent, EpollTimeout};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use hopwise_core::Instant;

use crate::clock::Clock;

/// Attempts to take what another process has, a second in all.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);
/// The indexes of the eventfd that wakes, and of the timer. No link has these indexes.
const WAKE: u64 = u64::MAX;
const ALARM: u64 = u64::MAX - 1;

/// An epoll instance. Any thread may [wake](Poller::wake) the waiting thread, or set the alarm for it.
#[derive(Debug)]
pub struct Poller {
    epoll: Epoll,
    wake: OwnedFd,
    alarm: OwnedFd,
}

/// Waits until one of these descriptors is ready, for `most` at the longest, and returns how many are. A signal that
/// the program catches ends the wait with an error of the kind `Interrupted`.
pub fn wait_for(fds: &mut [PollFd<'_>], most: Duration) -> io::Result<usize> {
    Ok(poll(fds, Some(&timespec(most)))?)
}

/// Takes something, and tries again for a second while another process has it (`ResourceBusy`): that process may be
/// about to end, or only look.
pub(crate) fn once_free<T>(take: impl Fn() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..TRIES {
        match take() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                drop(wait_for(&mut [], BETWEEN_TRIES));
            }
            done => return done,
        }
    }
    take()
}

/// Waits until there is something to read. A signal begins the wait anew.
pub fn wait_to_read(fd: BorrowedFd<'_>, most: Duration) -> io::Result<()> {
    loop {
        match wait_until(fd, Interest::Read, Some(most)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Waits for any interest; without end if there is no longest time. A signal that the program catches ends the wait
/// with an error of the kind `Interrupted`.
pub fn wait_until(fd: BorrowedFd<'_>, interest: Interest, most: Option<Duration>) -> io::Result<()> {
    let flags = match interest {
        Interest::Nothing => PollFlags::empty(),
        Interest::Read => PollFlags::IN,
        Interest::Room => PollFlags::OUT,
        Interest::ReadAndRoom => PollFlags::IN | PollFlags::OUT,
    };
    let most = most.map(timespec);
    match poll(&mut [PollFd::from_borrowed_fd(fd, flags)], most.as_ref())? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

/// The events that a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// For none; errors are still reported.
    Nothing,
    /// For data to read.
    Read,
    /// For room to write.
    Room,
    /// Also for room to write.
    ReadAndRoom,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        match self {
            Interest::Nothing => epoll::EventFlags::empty(),
            Interest::Read => epoll::EventFlags::IN,
            Interest::Room => epoll::EventFlags::OUT,
            Interest::ReadAndRoom => epoll::EventFlags::IN | epoll::EventFlags::OUT,
        }
    }
}

impl Poller {
    /// A poller that watches no descriptor yet.
    pub fn new() -> io::Result<Poller> {
        let epoll = Epoll(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll.0, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        let alarm =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&epoll.0, &alarm, epoll::EventData::new_u64(ALARM), epoll::EventFlags::IN)?;
        Ok(Poller { epoll, wake, alarm })
    }

    /// A descriptor that is readable while [`wait`](Poller::wait) would return an event.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.epoll.0.try_clone()
    }

    /// From now on, `wait` reports this index when the descriptor is ready.
    pub fn add(&self, fd: BorrowedFd<'_>, index: usize, interest: Interest) -> io::Result<()> {
        assert!((index as u64) < ALARM, "the last two indexes are the poller's own");
        let data = epoll::EventData::new_u64(index as u64);
        Ok(epoll::add(&self.epoll.0, fd, data, interest.flags())?)
    }

    /// Watches a descriptor that was added for other events. `index` is the one that [`wait`](Poller::wait) then
    /// reports.
    pub fn change(&self, fd: BorrowedFd<'_>, index: usize, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(index as u64);
        Ok(epoll::modify(&self.epoll.0, fd, data, interest.flags())?)
    }

    /// Stops watching a descriptor.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll.0, fd)?)
    }

    /// Ends the current wait, or the next one.
    pub fn wake(&self) {
        // It fails only when the counter is full of unread wakes, which is as good.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Ends the current or a later wait once `rest` is over. It replaces an earlier alarm.
    pub(crate) fn set_alarm(&self, rest: Duration) {
        // Zero would disarm the timer.
        let it_value = timespec(rest.max(Duration::from_nanos(1)));
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        if let Err(error) = timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &once) {
            tracing::error!(%error, "no alarm");
        }
    }

    /// Waits until a link is ready, the deadline has come, or a wake. Puts the indexes of links that can be read or
    /// have room into `ready`.
    pub fn wait(&self, clock: &Clock, until: Option<Instant>, ready: &mut Vec<usize>) -> io::Result<()> {
        ready.clear();
        let rest = until.map(|until| timespec(until.since(clock.now())));
        let mut found = [0; MOST_EVENTS];
        let count = match self.events(&mut found, rest.as_ref()) {
            Ok(count) => count,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for data in &found[..count] {
            let signal = match *data {
                WAKE => &self.wake,
                ALARM => &self.alarm,
                link => {
                    ready.push(usize::try_from(link).unwrap_or(usize::MAX));
                    continue;
                }
            };
            let mut taken = [0; 8];
            let _ = rustix::io::read(signal, &mut taken[..]);
        }
        Ok(())
    }

    /// Waits, and puts the indexes of what is ready into `found`. Returns how many are.
    fn events(&self, found: &mut [u64; MOST_EVENTS], rest: Option<&Timespec>) -> Result<usize, Errno> {
        let mut events =
            [const { epoll::Event { flags: epoll::EventFlags::empty(), data: NO_DATA } }; MOST_EVENTS];
        match epoll::wait(&self.epoll.0, &mut events[..], rest) {
            Ok(count) => {
                for (place, event) in found.iter_mut().zip(&events[..count]) {
                    let data = event.data;
                    *place = data.u64();
                }
                Ok(count)
            }
            Err(Errno::NOSYS) => self.events_of_old(found, rest),
            Err(error) => Err(error),
        }
    }

    /// The same where there is no epoll_pwait2(2): in kernels before 5.11, and where qemu runs the program. There only
    /// ppoll(2) waits more exactly than by milliseconds.
    fn events_of_old(&self, found: &mut [u64; MOST_EVENTS], rest: Option<&Timespec>) -> Result<usize, Errno> {
        poll(&mut [PollFd::new(&self.epoll.0, PollFlags::IN)], rest)?;
        let mut events = [EpollEvent::empty(); MOST_EVENTS];
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO);
        let count = count.map_err(|error| Errno::from_raw_os_error(error as i32))?;
        found.iter_mut().zip(&events[..count]).for_each(|(place, event)| *place = event.data());
        Ok(count)
    }
}

/// More than are ready together in a usual wait. The next wait has the rest.
const MOST_EVENTS: usize = 16;

const NO_DATA: epoll::EventData = epoll::EventData::new_u64(0);

pub(crate) fn timespec(rest: Duration) -> Timespec {
    let seconds = i64::try_from(rest.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds.min(1 << 30), tv_nsec: rest.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::thread;

    use super::*;
    use crate::testing::refuse;

    fn finds_what_is_ready() {
        let (clock, poller) = (Clock::start(), Poller::new().expect("a descriptor is left"));
        let (reads, mut writes) = io::pipe().expect("a descriptor is left");
        poller.add(reads.as_fd(), 7, Interest::Read).expect("it is watched");
        let (mut ready, began) = (vec![1], clock.now());
        let until = began + Duration::from_micros(300);
        poller.wait(&clock, Some(until), &mut ready).expect("it waits");
        assert!(ready.is_empty() && clock.now() >= until, "the deadline has come, and not before");
        io::Write::write_all(&mut writes, b"x").expect("there is room");
        poller.wait(&clock, None, &mut ready).expect("it waits");
        assert_eq!(ready, [7]);
        poller.remove(reads.as_fd()).expect("it was watched");
        poller.wake();
        poller.wait(&clock, None, &mut ready).expect("it waits");
        assert!(ready.is_empty(), "a wake ends a wait without a deadline");
        let zero = Some(clock.now());
        poller.wait(&clock, zero, &mut ready).expect("it waits");
        assert!(ready.is_empty(), "the wake is over");
    }

    #[test]
    fn a_poller_finds_what_is_ready_by_old_kernels_too() {
        finds_what_is_ready();
        let old = thread::spawn(|| {
            // As a kernel of before 5.11 does.
            refuse(libc::SYS_epoll_pwait2, Vec::new(), libc::ENOSYS);
            let poller = Poller::new().expect("a descriptor is left");
            let mut events = [const { epoll::Event { flags: epoll::EventFlags::empty(), data: NO_DATA } }; 1];
            let now = Some(&timespec(Duration::ZERO));
            assert_eq!(epoll::wait(&poller.epoll.0, &mut events[..], now).err(), Some(Errno::NOSYS));
            finds_what_is_ready();
        });
        old.join().expect("no panic");
    }
}
