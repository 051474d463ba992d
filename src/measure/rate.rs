//! Rates of data.

use std::time::Duration;

#[expect(clippy::cast_precision_loss, reason = "figures that are shown with a few digits")]
pub(crate) fn to_f64(value: u64) -> f64 {
    value as f64
}

pub(crate) fn kbps(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { to_f64(bytes) * 8.0 / time.as_secs_f64() / 1000.0 }
}

pub(crate) fn rate(kbps: f64) -> String {
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
