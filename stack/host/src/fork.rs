//! Copies of this process by fork(2). A child has the memory and the descriptors of its parent, and none of the
//! parent's threads. Its copy of a stack has no driver, and the parent's threads may have held the locks. A packet that
//! the child sends there, or a drop, would end connections of the parent.

/// The number of this process, which is another one in a child than in its parent, however the child was made. A value
/// that keeps the number of the process that made it belongs to a parent where they differ.
pub fn process() -> u32 {
    std::process::id()
}
