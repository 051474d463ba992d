//! A scenario's nodes on the kernel's Wi-Fi stack: their namespaces and radios, and the medium that carries frames.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use hopwise_air::frames::Framing;
use hopwise_air::{Live, WholeRadio};
use hopwise_core::Instant;
use hopwise_core::narrow::as_u32;
use hopwise_host::netlink::hwsim::{Hwsim, Refusals};
use hopwise_host::{Clock, Namespace};
use hopwise_lab::live::air as live;
use hopwise_lab::scenario::Prepared;
use hopwise_mesh::LiveRouter;

use super::field::{HwsimField, RadioSetup};
use super::medium::{HwsimMedium, UncarriedFrames};
use crate::run::watch::{Epoch, RunWatch, WantedFiles};
use crate::serving::{serve_beside, waited};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::signals::ring;

/// The kernel forgets the oldest frames of a radio that has more than 200 without a status.
pub(crate) const MOST_WAITING: usize = 150;
/// Nodes whose first frames are lost, or that a scenario's outage parts, hear each other late or never. With each hop
/// B.A.T.M.A.N. IV takes longer.
const HEARD_WITHIN: Duration = Duration::from_secs(10);
const KNOWN_WITHIN: Duration = Duration::from_secs(180);
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct HwsimNetwork<'a> {
    prepared: &'a Prepared,
    // Dropped before the socket, with which the radios go.
    field: HwsimField,
    hwsim: Rc<Hwsim>,
    setup: RadioSetup,
}

/// The radios after they have carried frames.
#[derive(Debug)]
pub(crate) struct CarriedRadios {
    pub(crate) live: Live<WholeRadio>,
    pub(crate) dropped: UncarriedFrames,
    pub(crate) refusals: Refusals,
    /// Nodes that did not hear all of their neighbours before. A scenario's outage may part them.
    pub(crate) deaf: Vec<String>,
}

impl<'a> HwsimNetwork<'a> {
    /// Makes the nodes. They have addresses and routes, but have not joined each other.
    pub(crate) fn open(prepared: &'a Prepared, setup: RadioSetup) -> Result<HwsimNetwork<'a>, Failure> {
        let hwsim = Hwsim::open().map_err(|error| Failure::failed("open the medium", error))?;
        let field = HwsimField::open(prepared, &hwsim, setup)?;
        Ok(HwsimNetwork { prepared, field, hwsim: Rc::new(hwsim), setup })
    }

    pub(crate) fn namespace(&self, node: u32) -> &Namespace {
        self.field.namespace(node)
    }

    /// Joins the nodes, prepares, and does `work` with the radios on the air, on a thread of its own. The radios' clock
    /// begins with the work. All of it ends soon after `ends` is readable.
    pub(crate) fn on_the_air<P: Send, T: Send>(
        &self,
        (capture, ends): (Option<&Path>, &OwnedFd),
        prepare: impl FnOnce() -> Result<P, Failure> + Send,
        work: impl FnOnce(P) -> Result<T, Failure> + Send,
    ) -> Result<(T, CarriedRadios), Failure> {
        let (mut before, field) = (self.world(), &self.field);
        // A mesh of 802.11s has no settings before it is joined.
        let joins = !self.setup.is_bare;
        let gathered = || Ok((if joins { gather(field, ends)? } else { Vec::new() }, prepare()?));
        let ((deaf, prepared), _) = self.carry((&mut before, Clock::start()), ends, gathered)?;
        let deaf = if self.prepared.plan.channel.outages.is_empty() { deaf } else { Vec::new() };
        let joined = self.hwsim.refusals();
        let mut live = self.world();
        let (clock, watch) = begin(self.prepared, &mut live, capture)?;
        let (done, dropped) = self.carry((&mut live, clock), ends, || work(prepared))?;
        watch.end()?;
        Ok((done, CarriedRadios { live, dropped, refusals: self.hwsim.refusals().since(joined), deaf }))
    }

    fn world(&self) -> Live<WholeRadio> {
        live::world_of_frames(&self.prepared.plan, MOST_WAITING, self.setup.has_monitors)
    }

    /// Carries the nodes' frames while `work` is done.
    fn carry<T: Send>(
        &self,
        (live, clock): (&mut Live<WholeRadio>, Clock),
        ends: &OwnedFd,
        work: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<(T, UncarriedFrames), Failure> {
        let macs = (0..as_u32(self.prepared.names.len())).map(|node| self.prepared.plan.mac(node)).collect();
        let medium = HwsimMedium::new(live, Rc::<Hwsim>::clone(&self.hwsim), macs);
        let (served, worked) = serve_beside(work, |done| {
            let served = medium.serve(live, clock, done);
            if served.is_err() {
                ring(ends);
            }
            served
        })?;
        let dropped = served.map_err(|error| Failure::failed("wait for frames", error))?;
        Ok((worked?, dropped))
    }
}

/// Begins the radios' clock, and captures of what they send and decode in that folder.
pub(crate) fn begin(
    prepared: &Prepared,
    live: &mut Live<WholeRadio>,
    capture: Option<&Path>,
) -> Result<(Clock, RunWatch), Failure> {
    let wanted = WantedFiles { capture: capture.is_some(), frames: false, trace: false };
    let clock = Clock::start();
    let epoch = Epoch { begins: clock.wall_offset(), left_out: live.left_out() };
    let out = capture.unwrap_or(Path::new("."));
    let watch = RunWatch::begin(wanted, (live.world(), Framing::Whole), (prepared, epoch), out)?;
    Ok((clock, watch))
}

/// Joins the nodes and waits until they hear each other. Returns the nodes that do not hear all of their neighbours.
fn gather(field: &HwsimField, ends: &OwnedFd) -> Result<Vec<String>, Failure> {
    field.join()?;
    let clock = Clock::start();
    let is_batman = field.router == LiveRouter::BatmanAdv;
    let within = if is_batman { KNOWN_WITHIN } else { HEARD_WITHIN };
    let mut deaf = field.deaf()?;
    while !deaf.is_empty() && clock.now().since(Instant::ZERO) < within {
        if waited(&[ends], LOOK_EVERY).is_some() {
            return Err(Failure::failed("join the network", "a signal came first"));
        }
        deaf = field.deaf()?;
    }
    match (deaf.is_empty(), is_batman) {
        (true, true) => tracing::info!("all nodes know each other"),
        (true, false) => tracing::info!("all nodes hear their neighbours"),
        (false, true) => tracing::warn!(nodes = deaf.join(", "), "these do not know all other nodes"),
        (false, false) => {
            tracing::warn!(nodes = deaf.join(", "), "these do not hear all of their neighbours");
        }
    }
    Ok(deaf.into_iter().map(str::to_owned).collect())
}
