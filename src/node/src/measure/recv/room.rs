//! Room for measurements: their number is bounded, and the file of --output is one's at a time.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::future::pending;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::measure::carrier::Stream;
use crate::measure::protocol::{FlowWork, LARGEST_MESSAGE, MOST_FLOWS, MeasurementPlan, VERSION};
use crate::seats::{Seat, Seats};

/// The largest number of simultaneous measurements.
pub(super) const MOST_MEASUREMENTS: usize = 64;
/// While another wants its place, a measurement may be silent so long before its first byte.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);
/// The same after its last byte: links fade.
const FADES_FOR: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Room {
    places: Seats,
    is_for_one: bool,
    /// The right to write the file of --output.
    file: Option<Seats>,
    /// The receivers of the flows of each measurement, by its id.
    flows: Mutex<BTreeMap<u64, mpsc::Sender<(u32, Stream)>>>,
}

/// The flows of one measurement, as they come.
pub(super) type Flows = mpsc::Receiver<(u32, Stream)>;

/// A measurement that has its place, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    room: Arc<Room>,
    id: u64,
    place: Seat,
    file: Option<Seat>,
}

impl Room {
    pub(super) fn new(is_for_one: bool, has_output: bool) -> Arc<Room> {
        let seats = |count| Seats::new(count, BEGINS_WITHIN, None);
        Arc::new(Room {
            places: seats(if is_for_one { 1 } else { MOST_MEASUREMENTS }),
            is_for_one,
            file: has_output.then(|| seats(1)),
            flows: Mutex::default(),
        })
    }

    /// Gives a measurement from there its place. A refusal is in words for the other end.
    pub(super) async fn admit(
        self: &Arc<Room>,
        plan: &MeasurementPlan,
        from: IpAddr,
    ) -> Result<(Admitted, Flows), String> {
        check(plan)?;
        let file = match &self.file {
            Some(file) if writes(plan) => Some(
                file.take(from)
                    .ok_or("another measurement is being written to the file of --output: try again later")?,
            ),
            _ => None,
        };
        let is_full = match self.is_for_one {
            true => "another measurement is under way, and this end takes one alone: try again later",
            false => "too many measurements are under way: try again later",
        };
        let place = self.places.take(from).ok_or(is_full)?;
        let (to, coming) = mpsc::channel(1);
        match self.flows.lock().entry(plan.id) {
            Entry::Vacant(free) => free.insert(to),
            Entry::Occupied(_) => return Err("a measurement of that number is under way".to_owned()),
        };
        Ok((Admitted { room: Arc::clone(self), id: plan.id, place, file }, coming))
    }

    /// The receiver of the flows of the measurement with that id.
    pub(super) fn flows_of(&self, id: u64) -> Option<mpsc::Sender<(u32, Stream)>> {
        self.flows.lock().get(&id).cloned()
    }
}

fn check(plan: &MeasurementPlan) -> Result<(), String> {
    if plan.version != VERSION {
        return Err(format!("it speaks version {}, and this end version {VERSION}", plan.version));
    }
    if plan.flows == 0 || plan.flows > MOST_FLOWS {
        return Err(format!("{} flows, expected 1 to {MOST_FLOWS}", plan.flows));
    }
    if !plan.work.is_sound() {
        return Err(format!("questions and answers have 1 to {LARGEST_MESSAGE} bytes"));
    }
    Ok(())
}

/// Returns whether data of it comes to this end, for the file of --output.
fn writes(plan: &MeasurementPlan) -> bool {
    !plan.reverse && !matches!(plan.work, FlowWork::Requests { .. })
}

impl Admitted {
    pub(super) fn may_write(&self) -> bool {
        self.file.is_some()
    }

    /// Returns whether it was asked to make room.
    pub(super) fn is_told(&self) -> bool {
        self.place.sitter().is_told() || self.file.as_ref().is_some_and(|file| file.sitter().is_told())
    }

    /// Ends when another measurement needs its place or its file, once.
    pub(super) async fn told_to_go(&self) {
        let file_is_needed = async {
            match &self.file {
                Some(file) => file.sitter().told_to_go().await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = self.place.sitter().told_to_go() => {}
            () = file_is_needed => {}
        }
    }

    /// Keeps the place while bytes move, and for as long as a link may fade. It never ends.
    pub(super) async fn stays_while(&self, moved: impl Fn() -> u64) -> &'static str {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            sleep(Duration::from_secs(1)).await;
            let now = moved();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            if now > 0 && since.elapsed() < FADES_FOR {
                let seats = [Some(&self.place), self.file.as_ref()];
                seats.into_iter().flatten().for_each(|seat| seat.sitter().moves());
            }
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.room.flows.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::task::JoinSet;

    use super::*;

    const BYTES: FlowWork = FlowWork::Bytes { bytes: 1 };

    /// Measurements that end when they are told to go.
    struct Crowd {
        room: Arc<Room>,
        next: u64,
        under_way: JoinSet<u64>,
        moved: Arc<AtomicU64>,
    }

    impl Crowd {
        fn in_room(is_for_one: bool, has_output: bool) -> Crowd {
            let (room, moved) = (Room::new(is_for_one, has_output), Arc::default());
            Crowd { room, next: 0, under_way: JoinSet::new(), moved }
        }

        /// Returns whether a measurement from there has got a place.
        async fn begins(&mut self, work: FlowWork, from: &str) -> Result<(), String> {
            let (id, moved) = (self.next, Arc::clone(&self.moved));
            self.next += 1;
            let plan = MeasurementPlan { version: VERSION, id, flows: 1, reverse: false, work };
            let (held, _) = self.room.admit(&plan, from.parse().expect("an address")).await?;
            self.under_way.spawn(async move {
                tokio::select! {
                    () = held.told_to_go() => id,
                    _ = held.stays_while(|| moved.load(Ordering::Relaxed)) => unreachable!("it never ends"),
                }
            });
            Ok(())
        }

        async fn takes_all(from: &[&str]) -> Crowd {
            let mut crowd = Crowd::in_room(false, false);
            for nth in 0..MOST_MEASUREMENTS {
                let begun = crowd.begins(BYTES, from[nth % from.len()]).await;
                assert_eq!(begun, Ok(()), "{nth}");
                sleep(Duration::from_millis(1)).await;
            }
            crowd
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_with_more_than_one_measurement_keeps_no_other_out() {
        let many: Vec<_> = (1..=7).map(|nth| format!("10.9.64.{nth}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        for from in [&["fd09::1:0:0:1"][..], &many] {
            let mut crowd = Crowd::takes_all(from).await;
            for newcomer in ["fd09::2:0:0:1", "fd08::2", "10.7.0.9"] {
                assert_eq!(crowd.begins(BYTES, newcomer).await, Ok(()), "{newcomer} after {from:?}");
            }
            assert!(crowd.begins(BYTES, from[0]).await.is_err(), "{from:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_measurement_makes_room_and_one_over_a_link_that_fades_does_not() {
        let many: Vec<_> = (1..=64).map(|nth| format!("10.9.64.{nth}")).collect();
        let mut crowd = Crowd::takes_all(&many.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert!(crowd.begins(BYTES, "10.7.0.9").await.is_err(), "they may still begin");
        sleep(BEGINS_WITHIN).await;
        assert_eq!(crowd.begins(BYTES, "10.7.0.9").await, Ok(()));
        crowd.moved.store(1, Ordering::Relaxed);
        sleep(FADES_FOR).await;
        assert!(crowd.begins(BYTES, "10.7.0.10").await.is_err(), "links fade");
        sleep(2 * BEGINS_WITHIN).await;
        assert_eq!(crowd.begins(BYTES, "10.7.0.10").await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_file_is_of_one_measurement_at_a_time() {
        let mut crowd = Crowd::in_room(false, true);
        assert_eq!(crowd.begins(BYTES, "10.7.0.2").await, Ok(()));
        let problem = crowd.begins(BYTES, "10.7.0.3").await.expect_err("the file is taken");
        assert!(problem.contains("--output: try again later"), "{problem}");
        let requests = FlowWork::Requests { request_bytes: 1, response_bytes: 1 };
        assert_eq!(crowd.begins(requests, "10.7.0.3").await, Ok(()), "it writes no file");
        // It has not begun, and its file goes to another.
        sleep(BEGINS_WITHIN).await;
        assert_eq!(crowd.begins(BYTES, "10.7.0.3").await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_for_one_measurement_refuses_others_until_that_is_silent() {
        let mut crowd = Crowd::in_room(true, false);
        assert_eq!(crowd.begins(BYTES, "10.7.0.2").await, Ok(()));
        crowd.moved.store(1, Ordering::Relaxed);
        sleep(FADES_FOR).await;
        let problem = crowd.begins(BYTES, "10.7.0.3").await.expect_err("it takes one alone");
        assert!(problem.contains("takes one alone"), "{problem}");
        sleep(2 * BEGINS_WITHIN).await;
        assert_eq!(crowd.begins(BYTES, "10.7.0.3").await, Ok(()));
    }

    #[tokio::test]
    async fn an_id_is_of_one_measurement_for_as_long_as_that_is_under_way() {
        let room = Room::new(false, false);
        let plan = |id, flows| MeasurementPlan { version: VERSION, id, flows, reverse: false, work: BYTES };
        let from = IpAddr::from([10, 7, 0, 2]);
        let first = room.admit(&plan(7, 1), from).await.expect("there is room");
        assert!(room.flows_of(7).is_some() && room.flows_of(8).is_none());
        let again = room.admit(&plan(7, 1), from).await.expect_err("it is taken");
        assert!(again.contains("of that number"), "{again}");
        assert!(room.flows_of(7).is_some(), "the first one goes on");
        drop(first);
        assert!(room.flows_of(7).is_none());
        room.admit(&plan(7, MOST_FLOWS + 1), from).await.expect_err("too many flows");
    }
}
