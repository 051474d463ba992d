//! Any bytes are a story about an endpoint: its settings, its program's calls, the time, and its packets. Honest
//! packets come from a second endpoint, and the rest are forged. In any story the endpoint answers with sound packets,
//! bounded work and memory, and the bytes that were sent.

#[path = "handle_packet/arrival.rs"]
mod arrival;
#[path = "handle_packet/calls.rs"]
mod calls;
#[path = "handle_packet/departure.rs"]
mod departure;
#[path = "handle_packet/flows.rs"]
mod flows;
#[path = "handle_packet/forge.rs"]
mod forge;
#[path = "handle_packet/packet.rs"]
mod packet;
#[path = "handle_packet/scene.rs"]
mod scene;
#[path = "handle_packet/setup.rs"]
mod setup;
#[path = "handle_packet/whims.rs"]
mod whims;

use scene::Scene;

use crate::input::Input;

/// Longer stories find nothing that shorter ones do not, and take long.
const MOST_STEPS: usize = 600;

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut scene = Scene::new(&mut input);
    for _ in 0..MOST_STEPS {
        if input.is_empty() || scene.is_tired() {
            return;
        }
        scene.step(&mut input);
    }
}
