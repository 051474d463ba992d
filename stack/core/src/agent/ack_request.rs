//! A sender's requests for ACKs of its peer.

/// The request for ACKs in a data segment, in our own TCP options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRequest {
    /// One ACK for each so many segments from now on (an ACK-rate request, TARR). 0 requests one ACK at once.
    Rate(u8),
    /// One ACK after so many segments, this one included. 1 requests one ACK at once.
    After(u8),
}

/// A form of ACK requests; the handshake agrees on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRequestForm {
    /// [`AckRequest::Rate`], in the option of draft-ietf-tcpm-ack-rate-request.
    Rate,
    /// [`AckRequest::After`], in our own option.
    After,
}

impl AckRequest {
    /// The request of one segment of a read, with `behind` segments of the read behind it. The read's last segment
    /// carries the request. A count holds for each segment.
    pub(crate) fn with_behind(self, behind: u32) -> Option<AckRequest> {
        match self {
            AckRequest::After(segments) => {
                Some(AckRequest::After(segments.saturating_add(u8::try_from(behind).unwrap_or(u8::MAX))))
            }
            AckRequest::Rate(_) => (behind == 0).then_some(self),
        }
    }
}
