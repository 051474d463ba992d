//! Bytes as people compare them: two hexadecimal digits each.

/// The bytes in lower-case digits, without separators.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
