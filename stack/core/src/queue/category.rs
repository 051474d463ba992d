//! The access categories of 802.11, and the packets that go in each.

/// An access category of EDCA (IEEE 802.11-2016 §10.2.4.2). Greater ones go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// AC_BK, which waits longest.
    Background,
    /// AC_BE.
    #[default]
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO, whose packets leave one by one.
    Voice,
}

impl Category {
    /// All of them, in the order in which they go.
    pub const ALL: [Category; 4] =
        [Category::Voice, Category::Video, Category::BestEffort, Category::Background];

    /// The category of a user priority of 802.1D, which is also the TID of a frame (IEEE 802.11-2016 table 10-1).
    pub const fn of_priority(priority: u8) -> Category {
        match priority {
            1 | 2 => Category::Background,
            4 | 5 => Category::Video,
            6 | 7 => Category::Voice,
            _ => Category::BestEffort,
        }
    }

    /// The category of an IP packet by the three highest bits of its DSCP, as in Linux; best effort of all others.
    pub fn of_packet(packet: &[u8]) -> Category {
        let priority = match *packet {
            [first, second, ..] if first >> 4 == 4 => second >> 5,
            [first, ..] if first >> 4 == 6 => first >> 1 & 0b111,
            _ => 0,
        };
        Category::of_priority(priority)
    }

    /// The number of the category in 802.11 (ACI), below 4.
    pub const fn index(self) -> usize {
        match self {
            Category::BestEffort => 0,
            Category::Background => 1,
            Category::Video => 2,
            Category::Voice => 3,
        }
    }

    /// The category of that number; best effort of all others.
    pub const fn of_index(index: usize) -> Category {
        match index {
            1 => Category::Background,
            2 => Category::Video,
            3 => Category::Voice,
            _ => Category::BestEffort,
        }
    }

    /// The user priority that stands for the category where a frame tells its TID.
    pub const fn priority(self) -> u8 {
        match self {
            Category::BestEffort => 0,
            Category::Background => 1,
            Category::Video => 5,
            Category::Voice => 6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code points of RFC 4594 as Linux maps them: CS1, AF41, CS5, EF, CS6.
    #[test]
    fn packets_go_by_the_three_highest_bits_of_their_code_point() {
        for (dscp, wanted) in [
            (0, Category::BestEffort),
            (8, Category::Background),
            (16, Category::Background),
            (24, Category::BestEffort),
            (34, Category::Video),
            (40, Category::Video),
            (46, Category::Video),
            (48, Category::Voice),
            (63, Category::Voice),
        ] {
            let traffic_class: u8 = dscp << 2 | 1;
            let v6 = [0x60 | traffic_class >> 4, traffic_class << 4];
            for packet in [[0x45, traffic_class], v6] {
                assert_eq!(Category::of_packet(&packet), wanted, "{dscp} {packet:?}");
            }
        }
        assert_eq!(Category::of_packet(&[]), Category::BestEffort);
        assert_eq!(Category::of_packet(&[0xff, 0xff]), Category::BestEffort);
    }

    #[test]
    fn a_category_is_found_by_its_number_and_by_its_own_priority() {
        for category in Category::ALL {
            assert_eq!(Category::of_index(category.index()), category);
            assert_eq!(Category::of_priority(category.priority()), category);
        }
        assert!(Category::ALL.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
