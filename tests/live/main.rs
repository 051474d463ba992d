//! The stack against the kernel's own TCP, in network namespaces that each test makes for itself. A test that cannot
//! run here prints its reason and passes.

/// The name of the function that this stands in.
macro_rules! name_of_test {
    () => {{
        fn inside() {}
        // `live::bulk::the_test::inside`
        std::any::type_name_of_val(&inside).rsplit("::").nth(1).expect("a function's name")
    }};
}

/// Ends a test that cannot run without these commands, or here at all.
macro_rules! needs {
    ($($command:literal),*) => {
        needs!(&[$($command),*])
    };
    ($commands:expr) => {
        if !$crate::namespace::can_run(name_of_test!(), $commands) {
            return;
        }
    };
}

mod acks;
mod air;
#[path = "../../benches/host/setup.rs"]
mod bench_setup;
mod bounds;
mod bringup;
mod bulk;
mod captures;
mod confined;
mod control;
mod crowd;
mod defaults;
mod doctor;
mod endings;
mod field;
mod flood;
mod folder;
mod handshake;
mod hostile;
mod killed;
mod lent;
mod mesh;
mod namespace;
mod node;
mod own;
mod path;
#[cfg(feature = "pcap")]
mod pcap;
mod printing;
mod programs;
mod proxy;
mod queue;
mod raw;
mod readme;
mod relays;
mod routed;
mod runtime;
mod seats;
mod shards;
mod stopping;
mod stream;
mod streamed;
mod thin;
mod transparent;
mod trials;
mod unmet;
mod unread;
mod wifi;
mod window;
mod world;
