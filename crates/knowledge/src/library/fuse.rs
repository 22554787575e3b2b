//! Fuses a ranking by words and a ranking by vectors.
//!
//! Their scores have different scales, so both are first mapped to a common one; see [`Scale`].

use std::collections::HashMap;

/// The constant of reciprocal rank fusion; the usual value.
const K: f64 = 60.0;

/// How the value of a hit within its ranking is computed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scale {
    /// The reciprocal of its rank (reciprocal rank fusion), for vectors whose similarity is meaningful only as an
    /// order.
    Rank,
    /// Its score divided by the best score. Preserves distances: a hit with a large lead stays first even if the other
    /// ranking has it a few ranks lower.
    ShareOfBest,
}

/// A ranking with its weight.
pub(super) struct WeightedRanking<'a> {
    /// The best first, with greater scores for better hits.
    pub hits: &'a [(i64, f64)],
    pub weight: f64,
}

/// Sums the weighted values of each hit over all rankings. Returns the best first; ties go to the lower key.
pub(super) fn fuse(
    rankings: &[WeightedRanking<'_>],
    scale: Scale,
    limit: usize,
) -> Vec<(i64, f64)> {
    let mut scores: HashMap<i64, f64> = HashMap::new();
    for ranking in rankings {
        let best = ranking.hits.first().map_or(0.0, |(_, score)| *score);
        for (rank, (key, score)) in (1_u32..).zip(ranking.hits) {
            let value = match scale {
                Scale::Rank => 1.0 / (K + f64::from(rank)),
                Scale::ShareOfBest if best > 0.0 => score.max(0.0) / best,
                Scale::ShareOfBest => 0.0,
            };
            *scores.entry(*key).or_default() += ranking.weight * value;
        }
    }
    let mut fused: Vec<(i64, f64)> = scores.into_iter().collect();
    fused.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    fused.truncate(limit);
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fused(words: &[(i64, f64)], vectors: &[(i64, f64)], weight: f64, scale: Scale) -> Vec<i64> {
        let rankings = [
            WeightedRanking {
                hits: words,
                weight: 1.0,
            },
            WeightedRanking {
                hits: vectors,
                weight,
            },
        ];
        let fused = fuse(&rankings, scale, 10);
        fused.into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn a_hit_that_both_rank_high_comes_first_and_weights_count() {
        let words = [(1, 9.0), (2, 8.0), (3, 7.0)];
        let vectors = [(3, 0.9), (2, 0.7)];
        assert_eq!(fused(&words, &vectors, 1.0, Scale::Rank), [3, 2, 1]);
        assert_eq!(fused(&words, &vectors, 0.01, Scale::Rank), [1, 2, 3]);
        assert_eq!(fused(&words, &vectors, 1.0, Scale::ShareOfBest), [3, 2, 1]);
        assert_eq!(fused(&words, &vectors, 0.01, Scale::ShareOfBest), [1, 2, 3]);
    }

    #[test]
    fn with_share_of_best_a_hit_with_a_large_lead_stays_first() {
        let vectors = [(2, 0.9), (3, 0.8), (1, 0.3)];
        let ahead = [(1, 9.0), (2, 2.0)];
        let close = [(1, 9.0), (2, 8.0)];
        assert_eq!(fused(&ahead, &vectors, 0.3, Scale::ShareOfBest)[0], 1);
        assert_eq!(fused(&close, &vectors, 0.3, Scale::ShareOfBest)[0], 2);
    }

    #[test]
    fn hits_of_one_ranking_alone_keep_their_order() {
        let by_share = |words: &[_], vectors: &[_]| fused(words, vectors, 0.3, Scale::ShareOfBest);
        assert_eq!(by_share(&[], &[(3, 0.5), (2, 0.4)]), [3, 2]);
        assert_eq!(by_share(&[(5, 1.0), (4, 0.5)], &[]), [5, 4]);
        assert_eq!(by_share(&[(5, 0.1)], &[(4, -0.5)]), [5, 4]);
        assert!(by_share(&[], &[]).is_empty());
    }
}
