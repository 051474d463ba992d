//! The stack against the kernel's own TCP, in network namespaces that each test makes for itself. What cannot run
//! here says so with its reason and passes.

#[path = "live/bulk.rs"]
mod bulk;
#[path = "live/namespace.rs"]
mod namespace;
#[path = "live/stream.rs"]
mod stream;
#[path = "live/world.rs"]
mod world;
