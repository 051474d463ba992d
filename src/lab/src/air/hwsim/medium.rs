//! The main loop: due events on the air, frames of the kernel's radios, and their fates.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use hopwise_air::dcf::PacketOutcome;
use hopwise_air::frames::Mac;
use hopwise_air::radiotap::dbm;
use hopwise_air::{FrameRefusal, Live, LiveProgress, RadioNews, WholeRadio};
use hopwise_core::narrow::as_u32;
use hopwise_host::netlink::hwsim::{Frame, KernelRadios, ReceivedFrame, SenderFate, Status, legacy_rate};
use hopwise_host::{Clock, Interest, Poller};

use super::field::MHZ;
use crate::serving::Lag;

/// The signal of an ACK, which this driver does not report on.
const ACK_DBM: i8 = -50;
/// The indexes of what is waited for.
const KERNEL: usize = 0;
const END: usize = 1;

/// Frames that the medium did not carry, by node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UncarriedFrames {
    /// The queue was full.
    pub(crate) by_queue: Vec<u64>,
    /// Too short or too long for a frame.
    pub(crate) odd: Vec<u64>,
}

/// A frame between the kernel's question and our answer.
#[derive(Clone, Copy, Debug)]
struct OpenFrame {
    node: u32,
    flags: u32,
    cookie: u64,
}

/// The part that the world's events reach.
#[derive(Debug)]
struct Radios {
    kernel: Rc<dyn KernelRadios>,
    macs: Vec<Mac>,
    open: RefCell<BTreeMap<u64, OpenFrame>>,
}

#[derive(Debug)]
pub(crate) struct HwsimMedium {
    radios: Rc<Radios>,
    dropped: UncarriedFrames,
    next_id: u64,
}

impl HwsimMedium {
    /// Connects a world with the kernel's radios of these addresses, one for each station.
    pub(crate) fn new(
        live: &mut Live<WholeRadio>,
        kernel: Rc<dyn KernelRadios>,
        macs: Vec<Mac>,
    ) -> HwsimMedium {
        let nothing = vec![0; macs.len()];
        let radios = Rc::new(Radios { kernel, macs, open: RefCell::default() });
        let told = Rc::clone(&radios);
        live.world().radio = Some(Box::new(move |news| told.tell(news)));
        HwsimMedium {
            radios,
            dropped: UncarriedFrames { by_queue: nothing.clone(), odd: nothing },
            next_id: 0,
        }
    }

    /// Runs by that clock until `end` is readable.
    pub(crate) fn serve(
        mut self,
        live: &mut Live<WholeRadio>,
        clock: Clock,
        end: &OwnedFd,
    ) -> io::Result<UncarriedFrames> {
        let (mut lag, poller, mut ready) = (Lag::begin(), Poller::new()?, Vec::new());
        poller.add(self.radios.kernel.as_fd(), KERNEL, Interest::Read)?;
        poller.add(end.as_fd(), END, Interest::Read)?;
        loop {
            let now = clock.now();
            let progress = live.advance(now);
            self.answer_not_sent(live);
            lag.look(live, now);
            let wake_at = match progress {
                LiveProgress::MoreIsDue => Some(now),
                LiveProgress::UpToDate => live.poll_timeout(),
            };
            poller.wait(&clock, wake_at, &mut ready)?;
            if ready.contains(&END) {
                self.radios.answer_all();
                return Ok(self.dropped);
            }
            if ready.contains(&KERNEL) {
                // A frame that arrives now belongs to the world's present.
                live.advance(clock.now());
                self.read(live)?;
            }
        }
    }

    fn read(&mut self, live: &mut Live<WholeRadio>) -> io::Result<()> {
        let radios = Rc::clone(&self.radios);
        radios.kernel.read(&mut |frame| self.send(live, frame))
    }

    /// The kernel learns no more of a beacon that gave way to another station's than of one that was sent.
    fn answer_not_sent(&self, live: &mut Live<WholeRadio>) {
        for node in 0..as_u32(self.radios.macs.len()) {
            if live.machines()[node as usize].has_not_sent() {
                let answer = |id| self.radios.answer(id, SenderFate::Unanswered, 0, 0);
                live.world().with(node, |_, whole| whole.take_not_sent().for_each(answer));
            }
        }
    }

    /// Puts a frame of the kernel on the air.
    fn send(&mut self, live: &mut Live<WholeRadio>, frame: &Frame<'_>) {
        let Some(node) = self.radios.macs.iter().position(|mac| *mac == frame.radio) else { return };
        self.next_id += 1;
        let id = self.next_id;
        let Frame { flags, cookie, .. } = *frame;
        let open = OpenFrame { node: as_u32(node), flags, cookie };
        self.radios.open.borrow_mut().insert(id, open);
        if frame.mhz != MHZ {
            // Nobody hears a frame on another channel, as of a scan.
            self.radios.answer(id, SenderFate::Unanswered, 0, 1);
            return;
        }
        let put = live.world().with(as_u32(node), |now, whole| whole.put(now, id, frame.content));
        if let Err(refused) = put {
            let UncarriedFrames { by_queue, odd } = &mut self.dropped;
            let counts = if refused == FrameRefusal::NoRoom { by_queue } else { odd };
            counts[node] += 1;
            self.radios.answer(id, SenderFate::Unanswered, 0, 0);
        }
    }
}

impl Radios {
    fn tell(&self, news: &RadioNews<'_>) {
        match *news {
            // A frame of an aggregate may be handed up after its status: it waited for an earlier one.
            RadioNews::Arrived { to, rate, power_w, packet, .. } => {
                let (_, rate) = legacy_rate(rate.bits_per_second);
                let radio = self.macs[to as usize];
                let received =
                    ReceivedFrame { radio, content: packet, signal_dbm: dbm(power_w), rate, mhz: MHZ };
                note(self.kernel.receive(&received));
            }
            RadioNews::Done { id, outcome, rate, tries, .. } => {
                let fate = match outcome {
                    PacketOutcome::Acknowledged => SenderFate::Acknowledged,
                    PacketOutcome::Sent => SenderFate::Unanswered,
                    PacketOutcome::GivenUp => SenderFate::Lost,
                };
                let (_, rate) = legacy_rate(rate.bits_per_second);
                self.answer(id, fate, rate, u8::try_from(tries).unwrap_or(u8::MAX));
            }
        }
    }

    /// The kernel would wait for the fates of frames that nobody carries any more.
    fn answer_all(&self) {
        let ids: Vec<u64> = self.open.borrow().keys().copied().collect();
        ids.into_iter().for_each(|id| self.answer(id, SenderFate::Unanswered, 0, 0));
    }

    /// Tells the kernel what became of a frame.
    fn answer(&self, id: u64, fate: SenderFate, rate: u8, tries: u8) {
        let Some(OpenFrame { node, flags, cookie, .. }) = self.open.borrow_mut().remove(&id) else { return };
        let radio = self.macs[node as usize];
        note(self.kernel.report(&Status { radio, flags, cookie, fate, signal_dbm: ACK_DBM, rate, tries }));
    }
}

/// The kernel takes messages as long as the socket is open; what it refuses, it says later.
fn note(told: io::Result<()>) {
    if let Err(error) = told {
        tracing::warn!(%error, "the kernel did not take a frame");
    }
}
