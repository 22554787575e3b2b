//! Vectors as they are stored: a signed byte for each number, and the signs alone, in blocks, for the coarse look.
//!
//! A block holds the bits of 128 chunks with neighbouring keys, so that looking at all of them reads few large rows. The
//! place of a chunk in its block follows from its key.

/// How far the key of a collection is shifted in the keys of its chunks.
pub(crate) const COLLECTION_SHIFT: u32 = 32;

/// How many chunks share a block.
pub(crate) const BLOCK_CHUNKS: usize = 128;

/// How far the key of a collection is shifted in the keys of its blocks: 2^32 chunks, 128 to a block.
const BLOCK_SHIFT: u32 = 25;

/// The keys of a collection's blocks: the first, and the one after the last.
pub(crate) fn blocks_of(collection: i64) -> (i64, i64) {
    (collection << BLOCK_SHIFT, (collection + 1) << BLOCK_SHIFT)
}

/// The block of a chunk.
pub(crate) fn block_of(chunk: i64) -> i64 {
    chunk / BLOCK_CHUNKS as i64
}

fn slot_of(chunk: i64) -> usize {
    (chunk % BLOCK_CHUNKS as i64) as usize
}

/// The signs of a vector, one bit each, filled up to whole words of eight bytes.
pub(crate) fn bits_of(vector: &[f32]) -> Vec<u8> {
    let mut bits = vec![0; width(vector.len())];
    for (at, number) in vector.iter().enumerate() {
        if *number > 0.0 {
            bits[at / 8] |= 1 << (at % 8);
        }
    }
    bits
}

/// A vector with a signed byte for each number, scaled so that the greatest is 127.
pub(crate) fn bytes_of(vector: &[f32]) -> Vec<u8> {
    let greatest = vector
        .iter()
        .filter(|number| number.is_finite())
        .fold(f32::MIN_POSITIVE, |most, number| most.max(number.abs()));
    let scale = 127.0 / greatest;
    // A number that is none becomes 0; the conversion is bounded.
    let byte = |number: &f32| (number * scale).round() as i8;
    vector
        .iter()
        .map(|number| byte(number).cast_unsigned())
        .collect()
}

/// The cosine of the angle between a vector and a stored one.
pub(crate) fn cosine(vector: &[f32], stored: &[u8]) -> f64 {
    let (mut dot, mut own, mut other) = (0.0_f32, 0.0_f32, 0.0_f32);
    for (number, byte) in vector.iter().zip(stored) {
        let byte = f32::from(byte.cast_signed());
        dot += number * byte;
        own += number * number;
        other += byte * byte;
    }
    let lengths = f64::from(own).sqrt() * f64::from(other).sqrt();
    if lengths > 0.0 {
        f64::from(dot) / lengths
    } else {
        0.0
    }
}

/// A vector does not have as many numbers as its maker says.
pub(crate) fn wrong_length(found: usize, dimensions: usize) -> String {
    format!("a vector has {found} numbers, its maker says {dimensions}")
}

/// The signs of chunks with neighbouring keys, and which of them have any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// A bit for each chunk.
    pub present: Vec<u8>,
    /// The signs of each, one after the other.
    pub bits: Vec<u8>,
}

impl Block {
    /// One for vectors of so many numbers, without any.
    pub(crate) fn empty(dimensions: usize) -> Self {
        Self {
            present: vec![0; BLOCK_CHUNKS / 8],
            bits: vec![0; width(dimensions) * BLOCK_CHUNKS],
        }
    }

    /// Whether no chunk has signs.
    pub(crate) fn is_empty(&self) -> bool {
        self.present.iter().all(|byte| *byte == 0)
    }

    /// Gives a chunk its signs. False if the others have another length.
    #[must_use]
    pub(crate) fn set(&mut self, chunk: i64, bits: &[u8]) -> bool {
        let (width, slot) = (bits.len(), slot_of(chunk));
        if self.bits.len() != width * BLOCK_CHUNKS {
            return false;
        }
        self.present[slot / 8] |= 1 << (slot % 8);
        self.bits[slot * width..(slot + 1) * width].copy_from_slice(bits);
        true
    }

    /// Takes the signs of a chunk away.
    pub(crate) fn clear(&mut self, chunk: i64) {
        let (width, slot) = (self.bits.len() / BLOCK_CHUNKS, slot_of(chunk));
        self.present[slot / 8] &= !(1 << (slot % 8));
        self.bits[slot * width..(slot + 1) * width].fill(0);
    }
}

/// How many bytes the signs of so many numbers take.
fn width(dimensions: usize) -> usize {
    dimensions.div_ceil(64) * 8
}
