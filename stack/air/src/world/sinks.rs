//! The sinks that watch a world: its trace, its frames, and what became of them.

use hopwise_core::Machine;
use hopwise_core::trace::TraceEvent;

use super::World;
use crate::airtime::Load;
use crate::dcf::FrameKind;
use crate::frames::{Ending, FrameEvent};

/// Sees every trace event, with its machine.
pub type TraceSink = Box<dyn FnMut(u32, &TraceEvent)>;

/// Receives each station's view of every frame, with the packet of a data frame.
pub type FrameSink = Box<dyn FnMut(&FrameEvent, &[u8])>;

/// Receives the fates of frames, each after its frame.
pub type EndingSink = Box<dyn FnMut(&Ending)>;

impl<M: Machine> World<M> {
    pub fn set_trace(&mut self, sink: TraceSink) {
        self.trace = Some(sink);
    }

    /// Sets the function that classifies packets; airtime is booked by its result. It changes nothing in the world.
    pub fn set_loads(&mut self, load_of: fn(&[u8]) -> Load) {
        self.loads = load_of;
    }

    pub fn set_frames(&mut self, sink: FrameSink) {
        self.dcf.watch_frames();
        self.frames = Some(sink);
    }

    /// Reports the fates of frames too, while frames are watched.
    pub fn set_endings(&mut self, sink: EndingSink) {
        self.endings = Some(sink);
    }

    /// Stops watching frames, and spends no more work on it.
    pub fn leave_frames(&mut self) {
        self.dcf.leave_frames();
        (self.frames, self.endings) = (None, None);
    }

    pub(super) fn show_frames(&mut self) {
        let Some(sink) = &mut self.frames else { return };
        let held = &self.held;
        self.dcf.take_seen(&mut |event| match held.get(event.sender as usize) {
            Some(held) if event.frame.kind == FrameKind::Data => {
                sink(&FrameEvent { packet_id: held.id, ..*event }, &held.packet);
            }
            _ => sink(event, &[]),
        });
        for ending in self.dcf.take_endings() {
            if let Some(sink) = &mut self.endings {
                sink(&ending);
            }
        }
    }
}
