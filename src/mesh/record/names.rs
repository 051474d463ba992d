//! Names of nodes, as `--name` and `--node ADDRESS=NAME` give them.

use std::str::FromStr;

use hopwise_core::StationAddress;

/// The name of the radio with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::mesh) struct Named(pub(in crate::mesh) StationAddress, pub(in crate::mesh) String);

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Named, String> {
        let wrong = || format!("`{text}`, expected ADDRESS=NAME, such as 02:00:00:00:00:01=roof");
        let (address, called) = text.split_once('=').ok_or_else(wrong)?;
        Ok(Named(address.parse().map_err(|_| wrong())?, name(called)?))
    }
}

/// A name that stands in a cell, and that is no address.
pub(super) fn name(text: &str) -> Result<String, String> {
    let parts = |letter: char| letter.is_whitespace() || letter.is_control() || ",\"#".contains(letter);
    if text.is_empty() || text.contains(parts) || text.parse::<StationAddress>().is_ok() {
        return Err(format!("`{text}`, expected a name such as roof, without space, comma, quote or #"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_an_address_and_fits_into_a_cell() {
        let roof = Named(StationAddress([2, 0, 0, 0, 0, 10]), "roof".to_owned());
        assert_eq!("02:00:00:00:00:0A=roof".parse(), Ok(roof));
        for wrong in
            ["roof", "02:00=roof", "02:00:00:00:00:01=", "02:00:00:00:00:01=a b", "02:00:00:00:00:01=a,b"]
        {
            let error = wrong.parse::<Named>().expect_err(wrong);
            assert!(error.contains("expected"), "{wrong}: {error}");
        }
        assert!(name("02:00:00:00:00:01").is_err(), "it would be taken for an address");
    }
}
