//! Hopwise's sockets for C: `libhopwise.so`, whose header is `include/hopwise.h`.
//!
//! A handle is the number of a descriptor, as with the kernel's sockets, and a table finds what it stands for. A number
//! that stands for nothing is EBADF, never a wild pointer. `calls.rs` is what C sees, `memory.rs` alone touches C's
//! memory, and the rest is safe code.

pub mod calls;
mod errors;
mod memory;
mod table;
