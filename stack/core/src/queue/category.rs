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

    /// The user priority of a DSCP as in Linux (`cfg80211_classify8021d`). It is the three highest bits, but for the
    /// code points for which RFC 8325 §4 wants another one. Linux follows it since 6.4, for AF31 to AF33 since 6.12.
    pub const fn priority_of(dscp: u8) -> u8 {
        match dscp {
            // AF11 to AF13, CS2.
            10 | 12 | 14 | 16 => 0,
            // AF21 to AF23.
            18 | 20 | 22 => 3,
            // CS3, AF31 to AF33.
            24 | 26 | 28 | 30 => 4,
            // VOICE-ADMIT, EF.
            44 | 46 => 6,
            // CS6.
            48 => 7,
            _ => dscp >> 3,
        }
    }

    /// The category of an IP packet by its DSCP; best effort of all others.
    pub fn of_packet(packet: &[u8]) -> Category {
        let dscp = match *packet {
            [first, second, ..] if first >> 4 == 4 => second >> 2,
            [first, second, ..] if first >> 4 == 6 => (first & 0b1111) << 2 | second >> 6,
            _ => 0,
        };
        Category::of_priority(Category::priority_of(dscp))
    }

    /// The number of the category in 802.11 (ACI), below 4.
    pub const fn index(self) -> usize {
        [1, 0, 2, 3][self as usize]
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
        [1, 0, 5, 6][self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8325, figure 1: CS1, AF1x, CS2, AF2x, CS3, AF3x, CS4, AF4x, CS5, VOICE-ADMIT, EF, CS6, CS7. The others go by
    /// their three highest bits.
    #[test]
    fn packets_go_by_their_code_point_as_in_linux() {
        for (dscp, wanted) in [
            (0, Category::BestEffort),
            (8, Category::Background),
            (10, Category::BestEffort),
            (14, Category::BestEffort),
            (16, Category::BestEffort),
            (18, Category::BestEffort),
            (22, Category::BestEffort),
            (24, Category::Video),
            (26, Category::Video),
            (30, Category::Video),
            (32, Category::Video),
            (34, Category::Video),
            (40, Category::Video),
            (44, Category::Voice),
            (46, Category::Voice),
            (48, Category::Voice),
            (56, Category::Voice),
            (1, Category::BestEffort),
            (9, Category::Background),
            (17, Category::Background),
            (25, Category::BestEffort),
            (45, Category::Video),
            (63, Category::Voice),
        ] {
            let traffic_class: u8 = dscp << 2 | 1;
            // The next bits are those of the flow label.
            let v6 = [0x60 | traffic_class >> 4, traffic_class << 4 | 0xf];
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
