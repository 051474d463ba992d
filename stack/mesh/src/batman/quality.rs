//! The quality of links and paths, in parts of 255: counts of messages over the last ones sent, and their mean.

/// The messages over which a link is judged.
pub(super) const WINDOW: u16 = 64;
/// The values over which the quality of a path is averaged.
const VALUES: usize = 5;
/// The quality of a link without a loss.
pub(super) const FULL: u8 = 255;

/// Which of the last messages have come. Bit 0 is the newest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window(u64);

impl Window {
    pub(super) fn slide(&mut self, by: u16) {
        self.0 = self.0.checked_shl(by.into()).unwrap_or(0);
    }

    /// Notes the message that was sent so many messages before the newest one.
    pub(super) fn mark(&mut self, age: u16) {
        if age < WINDOW {
            self.0 |= 1 << age;
        }
    }

    pub(super) fn has(self, age: u16) -> bool {
        age < WINDOW && self.0 >> age & 1 == 1
    }

    pub(super) fn count(self) -> u8 {
        part_of_255(self.0.count_ones())
    }
}

/// The last values of a path's quality.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recent {
    values: [u8; VALUES],
    next: usize,
}

impl Recent {
    pub(super) fn push(&mut self, quality: u8) {
        self.values[self.next] = quality;
        self.next = (self.next + 1) % VALUES;
    }

    /// The mean of those that are not 0.
    pub(super) fn mean(&self) -> u8 {
        let (sum, count) = self
            .values
            .iter()
            .filter(|value| **value > 0)
            .fold((0_u32, 0_u32), |(sum, count), value| (sum + u32::from(*value), count + 1));
        part_of_255(sum.checked_div(count).unwrap_or(0))
    }
}

fn part_of_255(value: u32) -> u8 {
    u8::try_from(value).unwrap_or(FULL)
}

/// The quality of a path over a link to a neighbour that says `told`. The neighbour repeats `echoes` of the last 64
/// messages of ours, and `received` of its own came here. Their ratio is the link's quality towards the neighbour. A
/// link on which little comes here is worth less, since its acknowledgements do not arrive.
pub(super) fn over_link(told: u8, echoes: u8, received: u8) -> u8 {
    let [told, echoes, received, window, full]: [u32; 5] =
        [told.into(), echoes.into(), received.into(), WINDOW.into(), FULL.into()];
    let there = (full * echoes.min(received)).checked_div(received).unwrap_or(0);
    let missed = window.saturating_sub(received);
    let back = full - full * missed.pow(3) / window.pow(3);
    part_of_255(told * there * back / full.pow(2))
}

/// The quality after one more hop.
pub(super) fn after_hop(quality: u8, hop_penalty: u8) -> u8 {
    part_of_255(u32::from(quality) * u32::from(FULL - hop_penalty) / u32::from(FULL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_what_came_of_the_last_64() {
        let mut window = Window::default();
        for age in [0, 1, 63, 64, 1_000] {
            window.mark(age);
        }
        assert_eq!((window.count(), window.has(63), window.has(2), window.has(64)), (3, true, false, false));
        window.slide(1);
        assert_eq!((window.count(), window.has(0), window.has(2)), (2, false, true));
        window.slide(64);
        assert_eq!(window, Window::default());
    }

    #[test]
    fn the_mean_leaves_out_what_did_not_come() {
        let mut recent = Recent::default();
        assert_eq!(recent.mean(), 0);
        for quality in [200, 0, 100] {
            recent.push(quality);
        }
        assert_eq!(recent.mean(), 150);
        for _ in 0..5 {
            recent.push(0);
        }
        assert_eq!(recent.mean(), 0);
        for _ in 0..7 {
            recent.push(255);
        }
        assert_eq!(recent.mean(), 255);
    }

    #[test]
    fn a_links_quality_is_that_of_both_directions() {
        for (told, echoes, received, expected) in [
            (255, 64, 64, 255),
            (255, 32, 64, 127),
            (255, 64, 32, 224), // 255 - 255 / 8 for what is missed
            (255, 16, 32, 111), // half of that
            (255, 8, 8, 85),    // nearly nothing comes back
            (100, 64, 64, 100),
            (255, 0, 64, 0),
            (255, 64, 0, 0),
            (0, 64, 64, 0),
        ] {
            assert_eq!(over_link(told, echoes, received), expected, "{told} {echoes} {received}");
        }
    }

    #[test]
    fn each_hop_takes_its_part() {
        assert_eq!(after_hop(255, 30), 225);
        assert_eq!(after_hop(225, 30), 198);
        assert_eq!(after_hop(255, 0), 255);
        assert_eq!(after_hop(255, 255), 0);
    }
}
