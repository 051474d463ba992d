//! A digest of what a file says: two files have the same one if they differ in their writing alone.

use sha2::{Digest, Sha256};

use super::Document;
use crate::hex;

impl Document {
    /// A hash of its content with all assignments. Comments and the way in which it is written do not change it.
    pub fn digest(&self) -> String {
        let content = serde_yaml::to_string(&self.value).unwrap_or_else(|_| self.text.to_string());
        hex(&Sha256::digest(content.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_the_way_of_writing_leave_the_digest_and_content_does_not() {
        let digest = |text: &str| Document::parse("a.yaml", text).expect("it is YAML").digest();
        let first = digest("# One.\nname: a  # the name\nlist: [1, 2]\n");
        assert_eq!(first, digest("name: \"a\"\n# Another.\n\nlist:\n  - 1\n  - 2\n"));
        assert_eq!(first, digest("name: a\nlist: [&one 1, 2]\n"), "nor does a name for an alias");
        for other in ["name: b\nlist: [1, 2]\n", "name: a\nlist: [2, 1]\n", "list: [1, 2]\nname: a\n"] {
            assert_ne!(first, digest(other), "{other}");
        }
    }
}
