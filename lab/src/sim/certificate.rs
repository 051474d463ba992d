//! The radio world behind a result: the hash of the results of its probes.

use sha2::{Digest, Sha256};

use crate::hex;

/// Output of `hopwise certify`. A test compares the two: a change of the radio must change this file.
pub const CERTIFICATE: &str = include_str!("../../../configs/calibration/certificate.txt");

/// SHA-256 of the certificate, in hexadecimal digits.
pub fn certificate_hash() -> String {
    hex(&Sha256::digest(CERTIFICATE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_of_the_certificate_has_passed() {
        let probes: Vec<_> = CERTIFICATE.lines().filter(|line| line.starts_with("  ")).collect();
        assert!(probes.len() > 100, "{}", probes.len());
        assert!(probes.iter().all(|probe| probe.ends_with("passed")), "{probes:#?}");
        assert_eq!(certificate_hash().len(), 64);
    }
}
