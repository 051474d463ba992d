//! Copies of this process by fork(2). A child has the memory and the descriptors of its parent, and none of the
//! parent's threads. Its copy of a stack has no driver, and the parent's threads may have held the locks. A packet that
//! the child sends there, or a drop, would end connections of the parent.

/// The number of this process in its PID namespace. A value that keeps the number of the process that made it belongs
/// to a parent where the numbers differ. The number cannot tell a parent that is process 1 of its namespace from a
/// child that is process 1 of a new namespace.
pub fn process() -> u32 {
    std::process::id()
}
