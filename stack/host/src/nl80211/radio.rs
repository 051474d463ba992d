//! Sets the radio of a Wi-Fi interface: its type, its network, its rates and powers (linux/nl80211.h).
//!
//! The messages are few, and no crate for nl80211 that is kept well joins an ad hoc network or an 802.11s mesh.

mod scan;
pub(super) mod wire;

use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::net::netlink::GENERIC;

use super::kernel::{INTERFACE, family_named};
use crate::netlink::ask::{Refused, ask, open_for_words, request};
use crate::netlink::message::{DUMP, GENERIC_HEADER, Heard, Message, attribute};

pub use scan::HeardNetwork;
pub use wire::{Abilities, Cell, Channel, Frequency, Kind, RadioState, Rates};

/// The kernel changes its regulatory domain some time after it was asked.
const DOMAIN_WITHIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A socket with which radios are set.
#[derive(Debug)]
pub struct Radio {
    socket: OwnedFd,
    family: u16,
}

impl Radio {
    /// Fails with `NotFound` if this kernel has no Wi-Fi.
    pub fn open() -> io::Result<Radio> {
        let socket = open_for_words(Some(GENERIC))?;
        let (family, _) = family_named(&socket, b"nl80211\0")?;
        Ok(Radio { socket, family })
    }

    /// The state of the interface with that number; `None` if it has no radio.
    pub fn state(&self, index: u32) -> io::Result<Option<RadioState>> {
        let mut found = None;
        let question = self.message(wire::GET_INTERFACE, index);
        let asked =
            ask(&self.socket, question, |heard| found = found.take().or_else(|| wire::state(heard.body)));
        match asked {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EOPNOTSUPP)) => Ok(None),
            done => done.map(|()| found),
        }
    }

    /// The abilities of the interface's radio.
    pub fn abilities(&self, index: u32) -> io::Result<Abilities> {
        let mut abilities = Abilities::default();
        // The kernel tells a radio in several parts.
        let question = Message::new(self.family, DUMP, 0).fixed(&[wire::GET_WIPHY, 0, 0, 0]);
        let question = question.attribute(INTERFACE, &index.to_ne_bytes());
        ask(&self.socket, question.attribute(wire::SPLIT_DUMP, &[]), |heard| abilities.add(heard.body))?;
        abilities.frequencies.sort_unstable_by_key(|frequency| frequency.mhz);
        Ok(abilities)
    }

    /// Gives the interface another type. It has to be down.
    pub fn set_kind(&self, index: u32, kind: Kind) -> Result<(), Refused> {
        self.tell(
            self.message(wire::SET_INTERFACE, index).attribute(wire::TYPE, &kind.number().to_ne_bytes()),
        )
    }

    /// Joins the network. The interface has to be up and of this type.
    pub fn join(&self, index: u32, kind: Kind, cell: &Cell) -> Result<(), Refused> {
        let command = if kind == Kind::MESH { wire::JOIN_MESH } else { wire::JOIN_IBSS };
        self.tell(cell.write(self.message(command, index), kind))
    }

    /// Leaves the network of an interface of this type; one that is in none has left.
    pub fn leave(&self, index: u32, kind: Kind) -> Result<(), Refused> {
        let command = if kind == Kind::MESH { wire::LEAVE_MESH } else { wire::LEAVE_IBSS };
        match self.tell(self.message(command, index)) {
            Err(refused)
                if refused.is_one_of(&[libc::ENOTCONN, libc::ENOLINK, libc::ENETDOWN, libc::EOPNOTSUPP]) =>
            {
                Ok(())
            }
            done => done,
        }
    }

    /// Sends at these rates alone, in the band of this frequency; without any rate, at all that the radio has.
    pub fn set_rates(&self, index: u32, mhz: u32, rates: &Rates) -> Result<(), Refused> {
        self.tell(rates.write(self.message(wire::SET_RATES, index), mhz))
    }

    /// The power in hundredths of dBm; `None` lets the driver choose it.
    pub fn set_power(&self, index: u32, hundredths: Option<u32>) -> Result<(), Refused> {
        self.tell(wire::power(self.message(wire::SET_WIPHY, index), hundredths))
    }

    /// Returns whether the radio sleeps between frames; `None` if the driver does not tell.
    pub fn power_save(&self, index: u32) -> io::Result<Option<bool>> {
        let mut found = None;
        let asked = ask(&self.socket, self.message(wire::GET_POWER_SAVE, index), |heard| {
            found = found.or_else(|| wire::power_save(heard.body));
        });
        match asked {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            done => done.map(|()| found),
        }
    }

    /// Lets the radio sleep between frames, or not.
    pub fn set_power_save(&self, index: u32, is_on: bool) -> Result<(), Refused> {
        let state = u32::from(is_on).to_ne_bytes();
        self.tell(self.message(wire::SET_POWER_SAVE, index).attribute(wire::POWER_SAVE, &state))
    }

    /// The networks that the interface has heard lately, its own included. No scan begins: a radio hears the beacons of
    /// its channel at any time.
    pub fn networks(&self, index: u32) -> io::Result<Vec<HeardNetwork>> {
        let mut found = Vec::new();
        let question = Message::new(self.family, DUMP, 0).fixed(&[scan::GET_SCAN, 0, 0, 0]);
        ask(&self.socket, question.attribute(INTERFACE, &index.to_ne_bytes()), |heard| {
            found.extend(scan::network(heard.body));
        })?;
        Ok(found)
    }

    /// The country of the regulatory domain, such as `DE`; `00` is the world.
    pub fn country(&self) -> io::Result<Option<String>> {
        let mut found = None;
        let question = Message::new(self.family, 0, 0).fixed(&[wire::GET_DOMAIN, 0, 0, 0]);
        ask(&self.socket, question, |heard| found = found.take().or_else(|| country(heard)))?;
        Ok(found)
    }

    /// Sets the country, and waits until the kernel has its domain.
    #[expect(clippy::disallowed_methods, reason = "nothing is driven while interfaces are brought up")]
    pub fn set_country(&self, code: &str) -> Result<(), Refused> {
        let question = Message::new(self.family, 0, 0).fixed(&[wire::SET_DOMAIN, 0, 0, 0]);
        self.tell(question.attribute(wire::COUNTRY, format!("{code}\0").as_bytes()))?;
        let mut waited = Duration::ZERO;
        while waited < DOMAIN_WITHIN {
            if self.country()?.as_deref() == Some(code) {
                return Ok(());
            }
            thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        let now = self.country()?.unwrap_or_else(|| "none".to_owned());
        Err(Refused {
            error: io::ErrorKind::TimedOut.into(),
            said: Some(format!(
                "the kernel stays at {now}: expected a code that its regulatory database has (Debian: \
                 wireless-regdb), and no driver that holds a domain of its own"
            )),
        })
    }

    fn message(&self, command: u8, index: u32) -> Message {
        Message::new(self.family, 0, 0).fixed(&[command, 0, 0, 0]).attribute(INTERFACE, &index.to_ne_bytes())
    }

    fn tell(&self, message: Message) -> Result<(), Refused> {
        request(&self.socket, message, |_| {})
    }
}

fn country(heard: &Heard<'_>) -> Option<String> {
    let all = heard.body.get(GENERIC_HEADER..)?;
    let code = String::from_utf8_lossy(attribute(all, wire::COUNTRY)?);
    Some(code.trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_wi_fi_says_so_and_a_loopback_has_no_radio() {
        match Radio::open() {
            Ok(radio) => assert_eq!(radio.state(1).expect("it answers"), None),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}"),
        }
    }

    #[test]
    fn a_country_is_read_without_its_zero() {
        let body =
            Message::new(0, 0, 0).fixed(&[wire::GET_DOMAIN, 0, 0, 0]).attribute(wire::COUNTRY, b"DE\0");
        let body = body.finish().split_off(crate::netlink::message::HEADER);
        let heard = Heard { kind: 30, number: 1, body: &body };
        assert_eq!(country(&heard).as_deref(), Some("DE"));
    }
}
