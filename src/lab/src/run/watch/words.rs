//! The comment of a frame describes what the MAC did: the number of the try, the backoff, and the outcome.

use std::fmt::Write as _;

use hopwise_air::dcf::{EVERYONE, Frame, FrameKind};
use hopwise_air::frames::{DrawnBackoff, FrameEnding, FrameFate, FrameLoss, MediumAccess};

fn name(names: &[String], station: u32) -> &str {
    names.get(station as usize).map_or("a station", String::as_str)
}

pub(super) fn of_frame(names: &[String], frame: &Frame) -> String {
    let Some(MediumAccess { attempt, most, backoff }) = frame.access else {
        let what = if frame.kind == FrameKind::Cts { "an RTS" } else { "a frame" };
        return format!("in answer to {what} of {}", name(names, frame.to));
    };
    let mut text = match frame.to {
        EVERYONE => "for everyone, sent once".to_owned(),
        _ if frame.kind == FrameKind::Cts => format!("before its own frame, try {attempt} of at most {most}"),
        to => format!("for {}, try {attempt} of at most {most}", name(names, to)),
    };
    // Writing to a String cannot fail.
    let _ = match backoff {
        Some(DrawnBackoff { slots, cw }) => write!(text, ", contention window {cw}, backoff {slots} slots"),
        None if frame.is_announced => write!(text, ", SIFS after the CTS"),
        None => write!(text, ", without backoff on an idle medium"),
    };
    text
}

pub(super) fn add_ending(names: &[String], to: u32, ending: &FrameEnding, text: &mut String) {
    let receiver = name(names, to);
    match ending.fate {
        FrameFate::Answered => return,
        FrameFate::Lost(loss) => text.push_str(&format!("; no answer: {}", lost(names, receiver, loss))),
        FrameFate::AnswerLost(loss) => {
            text.push_str(&format!("; {receiver} answered, but that was {}", answer_lost(names, loss)));
        }
    }
    if ending.is_given_up {
        text.push_str("; the packet is given up");
    }
}

fn lost(names: &[String], receiver: &str, loss: FrameLoss) -> String {
    match loss {
        FrameLoss::Channel => format!("the channel did not carry it to {receiver}"),
        FrameLoss::Frame { sender, kind } => {
            format!("lost at {receiver} to {} of {}", kind_name(kind), name(names, sender))
        }
        FrameLoss::Interference => format!("lost at {receiver} to several frames together"),
        FrameLoss::Sending(kind) => format!("{receiver} sent {} meanwhile", kind_name(kind)),
        FrameLoss::HeldUp => format!("the NAV or the carrier of {receiver} forbade one"),
        FrameLoss::Engaged => format!("{receiver} was in another exchange"),
    }
}

fn answer_lost(names: &[String], loss: FrameLoss) -> String {
    match loss {
        FrameLoss::Frame { sender, kind } => {
            format!("lost here to {} of {}", kind_name(kind), name(names, sender))
        }
        FrameLoss::Interference => "lost here to several frames together".to_owned(),
        FrameLoss::Channel | FrameLoss::Sending(_) | FrameLoss::HeldUp | FrameLoss::Engaged => {
            "lost on the channel".to_owned()
        }
    }
}

fn kind_name(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Rts => "an RTS",
        FrameKind::Cts => "a CTS",
        FrameKind::Data => "a data frame",
        FrameKind::Ack => "an ACK",
        FrameKind::BlockAck => "a block ACK",
        FrameKind::BlockAckReq => "a request for a block ACK",
    }
}

#[cfg(test)]
mod tests {
    use hopwise_air::airtime::AirLoad;
    use hopwise_air::phy::Phy;

    use super::*;

    fn frame(kind: FrameKind, to: u32, access: Option<MediumAccess>) -> Frame {
        let rate = Phy::named("dsss-2mbps").expect("a profile").data;
        let load = AirLoad::Other;
        let (duration_ns, airtime_ns, bytes, number) = (0, 0, 0, 1);
        let (is_announced, is_repeat) = (kind == FrameKind::Data, false);
        Frame {
            kind,
            to,
            duration_ns,
            airtime_ns,
            rate,
            bytes,
            number,
            load,
            is_announced,
            is_repeat,
            access,
            mpdus: 0,
            bitmap: 0,
        }
    }

    #[test]
    fn a_frame_says_which_try_it_is_and_after_which_backoff() {
        let names = ["n0", "n1"].map(str::to_owned);
        let drawn = Some(DrawnBackoff { slots: 54, cw: 127 });
        let access = |attempt, most, backoff| Some(MediumAccess { attempt, most, backoff });
        for (kind, to, access, words) in [
            (
                FrameKind::Rts,
                1,
                access(3, 7, drawn),
                "for n1, try 3 of at most 7, contention window 127, backoff 54 slots",
            ),
            (
                FrameKind::Rts,
                1,
                access(1, 7, None),
                "for n1, try 1 of at most 7, without backoff on an idle medium",
            ),
            (FrameKind::Data, 1, access(1, 4, None), "for n1, try 1 of at most 4, SIFS after the CTS"),
            (
                FrameKind::Data,
                EVERYONE,
                access(1, 1, drawn),
                "for everyone, sent once, contention window 127, backoff 54 slots",
            ),
            (FrameKind::Cts, 0, None, "in answer to an RTS of n0"),
            (
                FrameKind::Cts,
                0,
                access(2, 7, drawn),
                "before its own frame, try 2 of at most 7, contention window 127, backoff 54 slots",
            ),
            (FrameKind::Ack, 0, None, "in answer to a frame of n0"),
        ] {
            assert_eq!(of_frame(&names, &frame(kind, to, access)), words);
        }
    }

    #[test]
    fn an_ending_says_what_the_frame_was_lost_to_and_whether_the_packet_is_given_up() {
        let names = ["n0", "n1", "n2"].map(str::to_owned);
        let by = FrameLoss::Frame { sender: 2, kind: FrameKind::Rts };
        for (fate, is_given_up, words) in [
            (FrameFate::Answered, false, ""),
            (FrameFate::Lost(by), false, "; no answer: lost at n1 to an RTS of n2"),
            (
                FrameFate::Lost(FrameLoss::Sending(FrameKind::Ack)),
                false,
                "; no answer: n1 sent an ACK meanwhile",
            ),
            (
                FrameFate::AnswerLost(by),
                true,
                "; n1 answered, but that was lost here to an RTS of n2; the packet is given up",
            ),
        ] {
            let mut text = String::new();
            add_ending(&names, 1, &FrameEnding { station: 0, fate, is_given_up }, &mut text);
            assert_eq!(text, words);
        }
    }
}
