//! The parameters of EDCA's access categories (IEEE 802.11-2016 table 9-137, for a PHY of OFDM).

use hopwise_core::queue::Category;

use crate::phy::Phy;

/// The numbers by which a category contends for the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contention {
    /// The slots of its AIFS.
    pub(crate) aifsn: u8,
    /// The least contention window and the largest one.
    pub(crate) cw: (u16, u16),
    /// The time for which it may go on after a success; 0 for one frame.
    pub(crate) txop_ns: u64,
}

impl Phy {
    /// The parameters of a category. Those of best effort are the profile's own.
    pub(crate) fn contention(&self, category: Category) -> Contention {
        let (least, _) = self.cw;
        // (aCWmin + 1) / 2 − 1 and (aCWmin + 1) / 4 − 1.
        let (half, quarter) = (least.div_ceil(2) - 1, least.div_ceil(4) - 1);
        match category {
            Category::Background => Contention { aifsn: 7, cw: self.cw, txop_ns: 0 },
            Category::BestEffort => Contention { aifsn: self.aifsn, cw: self.cw, txop_ns: 0 },
            Category::Video => Contention { aifsn: 2, cw: (half, least), txop_ns: 3_008_000 },
            Category::Voice => Contention { aifsn: 2, cw: (quarter, half), txop_ns: 1_504_000 },
        }
    }

    /// AIFS of a category, in nanoseconds.
    pub(crate) fn aifs_ns(&self, category: Category) -> u64 {
        self.sifs_ns + u64::from(self.contention(category).aifsn) * self.slot_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_have_the_standards_windows_gaps_and_times() {
        let phy = Phy::named("ht20-mcs7").expect("a profile");
        let of = |category| {
            let Contention { aifsn, cw, txop_ns } = phy.contention(category);
            (aifsn, cw, txop_ns / 1_000)
        };
        assert_eq!(
            Category::ALL.map(of),
            [(2, (3, 7), 1_504), (2, (7, 15), 3_008), (3, (15, 1_023), 0), (7, (15, 1_023), 0),]
        );
        assert_eq!(phy.aifs_ns(Category::BestEffort), phy.difs_ns());
    }
}
