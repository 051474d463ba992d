//! What a sender asks of its peer's ACKs.

/// What a data segment asks of the peer's ACKs, in our own TCP options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRequest {
    /// One ACK for each so many segments from now on (an ACK-rate request, TARR). 0 asks for one ACK at once.
    Rate(u8),
    /// One ACK when so many segments have arrived, this one counted. 1 asks for one ACK at once.
    After(u8),
}

/// A form of ACK requests, as the handshake agrees on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRequestForm {
    Rate,
    After,
}

impl AckRequest {
    /// The request as one segment of a read makes it, with so many segments of the read behind it. The read's last
    /// segment made it. A count holds for each segment.
    pub(crate) fn with_behind(self, behind: u32) -> Option<AckRequest> {
        match self {
            AckRequest::After(segments) => {
                Some(AckRequest::After(segments.saturating_add(u8::try_from(behind).unwrap_or(u8::MAX))))
            }
            AckRequest::Rate(_) => (behind == 0).then_some(self),
        }
    }
}
