//! What each station sees of each frame, for logs and captures.

use std::fmt;

use crate::dcf::{EVERYONE, Frame, FrameKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    Sends,
    Decodes,
    /// Too weak, or sent into while it came.
    Noise,
    /// Lost to another frame.
    Collision,
}

/// One frame at one station.
#[derive(Clone, Copy, Debug)]
pub struct FrameEvent {
    /// When its first bit was there, and its last.
    pub from_ns: u64,
    pub until_ns: u64,
    pub station: u32,
    pub sender: u32,
    pub sees: Sees,
    pub power_w: f64,
    pub frame: Frame,
}

pub const CSV_HEADER: &str = "from_s,until_s,station,sees,kind,sender,to,bytes,duration_us,repeat";

/// A line of the frame log, under [`CSV_HEADER`].
impl fmt::Display for FrameEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let sees = match self.sees {
            Sees::Sends => "sends",
            Sees::Decodes => "decodes",
            Sees::Noise => "noise",
            Sees::Collision => "collision",
        };
        let kind = match self.frame.kind {
            FrameKind::Rts => "rts",
            FrameKind::Cts => "cts",
            FrameKind::Data => "data",
            FrameKind::Ack => "ack",
        };
        let to = if self.frame.to == EVERYONE { "all".to_owned() } else { self.frame.to.to_string() };
        write!(
            f,
            "{},{},{},{sees},{kind},{},{to},{},{},{}",
            seconds(self.from_ns),
            seconds(self.until_ns),
            self.station,
            self.sender,
            self.frame.bytes,
            self.frame.duration_ns / 1_000,
            u8::from(self.frame.is_repeat)
        )
    }
}
