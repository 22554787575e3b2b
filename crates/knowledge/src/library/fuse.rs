//! Joining two rankings into one by the ranks alone: scores of words and of vectors cannot be compared.

use std::collections::HashMap;

/// How little the difference between two early ranks counts. The usual value.
const K: f64 = 60.0;

/// A ranking and how much it counts.
pub(super) struct Voice<'a> {
    /// The best first.
    pub ranking: &'a [(i64, f64)],
    /// How much it counts.
    pub weight: f64,
}

/// Reciprocal rank fusion: the best first, each with its score. Of two that are equal, the one with the lower key.
pub(super) fn fuse(voices: &[Voice<'_>], most: usize) -> Vec<(i64, f64)> {
    let mut scores: HashMap<i64, f64> = HashMap::new();
    for voice in voices {
        for (rank, (key, _)) in (1_u32..).zip(voice.ranking) {
            *scores.entry(*key).or_default() += voice.weight / (K + f64::from(rank));
        }
    }
    let mut fused: Vec<(i64, f64)> = scores.into_iter().collect();
    fused.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    fused.truncate(most);
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_rank_high_comes_first_and_weights_count() {
        let (a, b) = ([(1, 9.0), (2, 8.0), (3, 7.0)], [(3, 0.9), (2, 0.8)]);
        let fused = |weight| {
            let voices = [
                Voice {
                    ranking: &a,
                    weight: 1.0,
                },
                Voice {
                    ranking: &b,
                    weight,
                },
            ];
            fuse(&voices, 10)
                .into_iter()
                .map(|(key, _)| key)
                .collect::<Vec<_>>()
        };
        assert_eq!(fused(1.0), [3, 2, 1]);
        assert_eq!(fused(0.01), [1, 2, 3]);
    }
}
