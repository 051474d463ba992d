//! The stations of a Wi-Fi interface: what the kernel reports of them (nl80211), as far as it is believed.

mod counter;
mod kernel;
mod offer;
mod peers;
pub mod radio;
mod sanity;
mod sanity_check;
mod source;
mod station;
mod survey;

pub use kernel::{Nl80211, StationNews, StationWatch};
pub(crate) use kernel::{family, family_named, news};
pub use offer::StationOffer;
pub use sanity_check::SanityCheck;
pub use source::{Board, EVERY, Polled, Report, StationSource};
pub(crate) use station::station;
pub use survey::ChannelUse;
