//! Where write-ahead logs are cut.

use super::random::Random;
use super::world::Copy;

/// The head of a write-ahead log, and of each frame in it.
const HEAD: usize = 32;
const FRAME_HEAD: usize = 24;

/// One cut: of which copy, and how many bytes are kept.
#[derive(Debug, Clone)]
pub struct Cut {
    pub copy: usize,
    pub length: usize,
    pub is_boundary: bool,
}

/// As many cuts as wanted: the boundaries of all frames if they are at most half of it, else some of them; and random bytes.
pub fn cuts(copies: &[Copy], wanted: usize, random: &mut Random) -> Vec<Cut> {
    let boundaries = |(copy, of): (usize, &Copy)| {
        let lengths = (HEAD..=of.wal.len()).step_by(frame_bytes(&of.wal));
        let lengths = [0].into_iter().chain(lengths);
        let cut = lengths.map(move |length| Cut {
            copy,
            length,
            is_boundary: true,
        });
        cut.collect::<Vec<_>>()
    };
    // The last copy has the frames of all others too.
    let last = copies.len() - 1;
    let mut cuts: Vec<Cut> = boundaries((last, &copies[last]));
    while cuts.len() > wanted / 2 {
        let at = random.below(cuts.len() as u64);
        cuts.swap_remove(usize::try_from(at).unwrap());
    }
    while cuts.len() < wanted {
        let copy = usize::try_from(random.below(copies.len() as u64)).unwrap();
        let length = copies[copy].wal.len() as u64 + 1;
        cuts.push(Cut {
            copy,
            length: usize::try_from(random.below(length)).unwrap(),
            is_boundary: false,
        });
    }
    cuts
}

/// Everything of the last copy.
pub fn whole(copies: &[Copy]) -> Cut {
    Cut {
        copy: copies.len() - 1,
        length: copies.last().unwrap().wal.len(),
        is_boundary: true,
    }
}

fn frame_bytes(wal: &[u8]) -> usize {
    let page: [u8; 4] = wal[8..12].try_into().unwrap();
    FRAME_HEAD + usize::try_from(u32::from_be_bytes(page)).unwrap()
}
