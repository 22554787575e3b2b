//! Chooses where write-ahead logs are truncated.

use super::random::Random;
use super::recording::Snapshot;

/// Bytes of the header of a write-ahead log.
const HEADER: usize = 32;
/// Bytes of the header of a frame.
const FRAME_HEADER: usize = 24;

/// A truncation of the write-ahead log of one snapshot.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    pub snapshot: usize,
    /// How many bytes are kept.
    pub length: usize,
    pub is_boundary: bool,
}

/// Returns `count` cuts. Up to half of them are at frame boundaries, the others at random bytes.
pub(crate) fn cuts(snapshots: &[Snapshot], count: usize, random: &mut Random) -> Vec<Cut> {
    let boundaries = |snapshot: usize| {
        let wal = &snapshots[snapshot].wal;
        let lengths = (HEADER..=wal.len()).step_by(frame_bytes(wal));
        let lengths = [0].into_iter().chain(lengths);
        let cut = lengths.map(move |length| Cut {
            snapshot,
            length,
            is_boundary: true,
        });
        cut.collect::<Vec<_>>()
    };
    // The last snapshot contains the frames of all others.
    let mut cuts: Vec<Cut> = boundaries(snapshots.len() - 1);
    while cuts.len() > count / 2 {
        let at = random.below(cuts.len() as u64);
        cuts.swap_remove(usize::try_from(at).unwrap());
    }
    while cuts.len() < count {
        let snapshot = usize::try_from(random.below(snapshots.len() as u64)).unwrap();
        let length = snapshots[snapshot].wal.len() as u64 + 1;
        cuts.push(Cut {
            snapshot,
            length: usize::try_from(random.below(length)).unwrap(),
            is_boundary: false,
        });
    }
    cuts
}

/// Returns a cut that keeps the whole log of the last snapshot.
pub(crate) fn whole(snapshots: &[Snapshot]) -> Cut {
    Cut {
        snapshot: snapshots.len() - 1,
        length: snapshots.last().unwrap().wal.len(),
        is_boundary: true,
    }
}

fn frame_bytes(wal: &[u8]) -> usize {
    let page: [u8; 4] = wal[8..12].try_into().unwrap();
    FRAME_HEADER + usize::try_from(u32::from_be_bytes(page)).unwrap()
}
