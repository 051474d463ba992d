//! The rules that stations follow: IEEE 802.11's, or the papers' simulator's.

/// The rules that a station follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MacRules {
    #[default]
    Standard,
    Ns2,
}
