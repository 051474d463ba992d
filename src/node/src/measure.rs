//! `hopwise send` and `hopwise recv`, and their common parts: carriers, protocol, and what an end tells of its side.

use std::time::Duration;

pub(crate) mod carrier;
pub(crate) mod flow;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub(crate) mod output;
pub(crate) mod protocol;
pub mod recv;
pub mod send;
pub(crate) mod side;

// Rates of data.

#[expect(clippy::cast_precision_loss, reason = "figures that are shown with a few digits")]
pub fn to_f64(value: u64) -> f64 {
    value as f64
}

pub fn kbps(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { to_f64(bytes) * 8.0 / time.as_secs_f64() / 1000.0 }
}

pub fn rate(kbps: f64) -> String {
    match kbps {
        _ if kbps >= 1e6 => format!("{:.2} Gbit/s", kbps / 1e6),
        _ if kbps >= 1e3 => format!("{:.1} Mbit/s", kbps / 1e3),
        _ => format!("{kbps:.0} kbit/s"),
    }
}

/// The rate of bytes that moved in a time.
pub(crate) fn rate_of(bytes: u64, time: Duration) -> String {
    rate(kbps(bytes, time))
}
