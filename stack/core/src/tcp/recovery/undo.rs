//! What is remembered of a loss so that it can be taken back: Eifel detection by timestamps (RFC 3522), D-SACK
//! (RFC 3708) and F-RTO (RFC 5682).

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// Our timestamp on the first segment sent again since the loss was found.
    first_resend: Option<u32>,
    /// Segments sent again that no D-SACK has named yet.
    unexplained: u32,
    is_open: bool,
}

impl Undo {
    /// A loss was found: from now on it may turn out to be none.
    pub(crate) fn begin() -> Undo {
        Undo { first_resend: None, unexplained: 0, is_open: true }
    }

    pub(crate) fn on_resent(&mut self, ts_value: u32) {
        if self.is_open {
            self.first_resend.get_or_insert(ts_value);
            self.unexplained += 1;
        }
    }

    /// An ACK of new data echoes a timestamp older than the first resend: the first copy had arrived.
    pub(crate) fn is_denied_by_echo(&self, echo: u32) -> bool {
        self.is_open && self.first_resend.is_some_and(|first| (echo.wrapping_sub(first) as i32) < 0)
    }

    /// A D-SACK names something sent again. Answers whether all that was sent again has now been named.
    pub(crate) fn is_denied_by_dsack(&mut self) -> bool {
        if !self.is_open || self.unexplained == 0 {
            return false;
        }
        self.unexplained -= 1;
        self.unexplained == 0
    }

    pub(crate) fn close(&mut self) {
        self.is_open = false;
    }
}

/// F-RTO: after a timeout, two new segments ask whether the ACKs were only late (RFC 5682 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frto {
    Off,
    /// The first unacknowledged segment was sent again; the next ACK decides.
    FirstAck,
    /// That ACK brought news: up to this many new segments go instead of old ones, and the next ACK decides.
    SecondAck {
        new_left: u8,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_echo_denies_the_loss() {
        let mut undo = Undo::begin();
        undo.on_resent(1000);
        undo.on_resent(1010);
        assert!(undo.is_denied_by_echo(999));
        assert!(!undo.is_denied_by_echo(1000));
        undo.close();
        assert!(!undo.is_denied_by_echo(999));
    }

    #[test]
    fn the_loss_is_denied_when_every_resend_was_a_duplicate() {
        let mut undo = Undo::begin();
        undo.on_resent(1);
        undo.on_resent(2);
        assert!(!undo.is_denied_by_dsack());
        assert!(undo.is_denied_by_dsack());
        assert!(!undo.is_denied_by_dsack());
    }
}
