//! The `hopwise` command.

fn main() {}
