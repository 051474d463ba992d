//! The stack against the kernel's own TCP, in network namespaces that each test makes for itself. A test that cannot
//! run here prints its reason and passes.

#[path = "live/acks.rs"]
mod acks;
#[path = "live/air.rs"]
mod air;
#[path = "../benches/host/setup.rs"]
mod bench_setup;
#[path = "live/bounds.rs"]
mod bounds;
#[path = "live/bringup.rs"]
mod bringup;
#[path = "live/bulk.rs"]
mod bulk;
#[path = "live/captures.rs"]
mod captures;
#[path = "live/confined.rs"]
mod confined;
#[path = "live/control.rs"]
mod control;
#[path = "live/crowd.rs"]
mod crowd;
#[path = "live/defaults.rs"]
mod defaults;
#[path = "live/doctor.rs"]
mod doctor;
#[path = "live/endings.rs"]
mod endings;
#[path = "live/field.rs"]
mod field;
#[path = "live/flood.rs"]
mod flood;
#[path = "live/handshake.rs"]
mod handshake;
#[path = "live/hostile.rs"]
mod hostile;
#[path = "live/killed.rs"]
mod killed;
#[path = "live/lent.rs"]
mod lent;
#[path = "live/mesh.rs"]
mod mesh;
#[path = "live/namespace.rs"]
mod namespace;
#[path = "live/node.rs"]
mod node;
#[path = "live/own.rs"]
mod own;
#[path = "live/path.rs"]
mod path;
#[cfg(feature = "pcap")]
#[path = "live/pcap.rs"]
mod pcap;
#[path = "live/printing.rs"]
mod printing;
#[path = "live/programs.rs"]
mod programs;
#[path = "live/proxy.rs"]
mod proxy;
#[path = "live/queue.rs"]
mod queue;
#[path = "live/raw.rs"]
mod raw;
#[path = "live/readme.rs"]
mod readme;
#[path = "live/relays.rs"]
mod relays;
#[path = "live/routed.rs"]
mod routed;
#[path = "live/runtime.rs"]
mod runtime;
#[path = "live/seats.rs"]
mod seats;
#[path = "live/shards.rs"]
mod shards;
#[path = "live/stopping.rs"]
mod stopping;
#[path = "live/stream.rs"]
mod stream;
#[path = "live/streamed.rs"]
mod streamed;
#[path = "live/transparent.rs"]
mod transparent;
#[path = "live/trials.rs"]
mod trials;
#[path = "live/unmet.rs"]
mod unmet;
#[path = "live/unread.rs"]
mod unread;
#[path = "live/wifi.rs"]
mod wifi;
#[path = "live/window.rs"]
mod window;
#[path = "live/world.rs"]
mod world;
