//! The rules that stations follow: IEEE 802.11's, or the papers' simulator's.

/// The rules that a station follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MacRules {
    /// The rules of IEEE 802.11.
    #[default]
    Standard,
    /// The rules of ns-2, which differ in timeouts, captures and sizes of frames.
    Ns2,
}
