//! Random amounts. The draws for one purpose come in order from a stream of their own: the nth think time is the same
//! whatever went before it.

use hopwise_air::random::Stream;
use hopwise_air::truncate;

/// An amount that is fixed or drawn: bytes, or nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Always this amount.
    Fixed(u64),
    /// Exponential, with this mean.
    Mean(u64),
    /// Evenly from the first to the second.
    Between(u64, u64),
}

impl Amount {
    /// No bytes, or no time.
    pub const NONE: Amount = Amount::Fixed(0);

    /// Draws the next amount. A fixed one takes nothing from the stream.
    pub fn draw(self, stream: &mut Stream) -> u64 {
        match self {
            Amount::Fixed(amount) => amount,
            Amount::Mean(mean) => truncate::to_u64(mean as f64 * -libm::log(1.0 - stream.unit())),
            Amount::Between(least, most) => least + truncate::to_u64(stream.unit() * (most - least) as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopwise_air::random::Purpose;

    #[test]
    fn drawn_amounts_have_their_mean_and_keep_to_their_bounds() {
        let mut stream = Stream::new(1, 0, Purpose::Traffic);
        let mut mean = |amount: Amount| {
            let drawn: Vec<u64> = (0..100_000).map(|_| amount.draw(&mut stream)).collect();
            let [least, most] = [drawn.iter().min(), drawn.iter().max()].map(|bound| *bound.expect("some"));
            (drawn.iter().sum::<u64>() as f64 / drawn.len() as f64, least, most)
        };
        assert_eq!(mean(Amount::Fixed(7)), (7.0, 7, 7));
        let (of_mean, ..) = mean(Amount::Mean(1_000_000));
        assert!((990_000.0..1_010_000.0).contains(&of_mean), "{of_mean}");
        let (between, least, most) = mean(Amount::Between(100, 300));
        assert!((199.0..201.0).contains(&between) && least >= 100 && most <= 300, "{between} {least} {most}");
    }
}
