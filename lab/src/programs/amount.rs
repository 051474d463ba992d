//! Random amounts. The draws for one purpose come in order from a stream of their own: the nth think time is the same
//! whatever went before it.

use hopwise_air::random::Stream;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Fixed(u64),
    /// Exponential, with this mean.
    Mean(u64),
    /// Evenly from the first to the second.
    Between(u64, u64),
}

impl Amount {
    pub const NONE: Amount = Amount::Fixed(0);

    pub fn draw(self, stream: &mut Stream) -> u64 {
        match self {
            Amount::Fixed(amount) => amount,
            Amount::Mean(mean) => (mean as f64 * -libm::log(1.0 - stream.unit())) as u64,
            Amount::Between(least, most) => least + (stream.unit() * (most - least) as f64) as u64,
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
