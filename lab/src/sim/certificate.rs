//! Which radio world made a result: the hash of what its probes come to.

use sha2::{Digest, Sha256};

use crate::hex;

/// Output of `hopwise certify`. A test holds the two together, so that whoever changes the radio changes this.
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
