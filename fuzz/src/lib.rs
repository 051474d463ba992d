//! The bodies of the fuzz targets, from `tests/replay`. They stand in one library, so that each is built once for all
//! targets, and what only some of them use counts as used.

#[path = "../../tests/replay/aodv.rs"]
mod aodv;
#[path = "../../tests/replay/control.rs"]
mod control;
#[path = "../../tests/replay/dymo.rs"]
mod dymo;
#[path = "../../tests/replay/files.rs"]
mod files;
#[path = "../../tests/replay/handle_packet.rs"]
mod handle_packet;
#[path = "../../tests/replay/host.rs"]
mod host;
#[path = "../../tests/replay/input.rs"]
mod input;
#[path = "../../tests/replay/keys.rs"]
mod keys;
#[path = "../../tests/replay/made_right.rs"]
mod made_right;
#[path = "../../tests/replay/measure.rs"]
mod measure;
#[path = "../../tests/replay/network.rs"]
mod network;
#[path = "../../tests/replay/proxy.rs"]
mod proxy;
#[path = "../../tests/replay/refusals.rs"]
mod refusals;
#[path = "../../tests/replay/rfc5444.rs"]
mod rfc5444;
#[path = "../../tests/replay/routers.rs"]
mod routers;
#[path = "../../tests/replay/signed.rs"]
mod signed;
#[path = "../../tests/replay/spec.rs"]
mod spec;
#[path = "../../tests/replay/trace.rs"]
mod trace;
#[path = "../../tests/replay/transparent.rs"]
mod transparent;
#[path = "../../tests/replay/wire.rs"]
mod wire;
#[path = "../../tests/replay/words.rs"]
mod words;
#[path = "../../tests/replay/wrapped.rs"]
mod wrapped;

macro_rules! targets {
    ($($target:ident),* $(,)?) => {
        $(
            /// Feeds the target of this name.
            pub fn $target(bytes: &[u8]) {
                $target::replay(bytes);
            }
        )*
    };
}

targets!(
    aodv,
    control,
    dymo,
    files,
    handle_packet,
    host,
    keys,
    measure,
    proxy,
    rfc5444,
    signed,
    spec,
    trace,
    transparent,
    wire,
    words,
    wrapped,
);
