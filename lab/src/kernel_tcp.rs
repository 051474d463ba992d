//! Arms that run the kernel's TCP: `receiver: kernel`, `sender: kernel:bbr`.

/// The receiver of such an arm, and the beginning of its sender.
const KERNEL: &str = "kernel";

/// The algorithm of a sender such as `kernel:bbr`; none for a sender of ours.
pub fn algorithm(sender: &str) -> Option<&str> {
    sender.strip_prefix(KERNEL)?.strip_prefix(':')
}

/// True if a receiver is the kernel's.
pub(crate) fn is_receiver(receiver: &str) -> bool {
    receiver == KERNEL
}

/// True if the kernel may have an algorithm of that name: 1 to 15 letters, digits, `_` or `-`.
pub(crate) fn is_name(algorithm: &str) -> bool {
    let is_sound = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    (1..16).contains(&algorithm.len()) && algorithm.chars().all(is_sound)
}
