//! Reads safetensors files: the length of the header in eight bytes, the header as JSON, and the numbers that it
//! describes.
//!
//! Every length and offset is checked before it is used, and no allocation trusts the header.

use super::{Problem, not_json};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::ops::Range;

/// The tensors of a file.
pub(super) struct Tensors {
    bytes: Vec<u8>,
    /// The offset of the numbers.
    start: usize,
    header: Map<String, Value>,
}

/// Maximum length of the header. A header for three tensors has a few hundred bytes.
const MAX_HEADER: u64 = 1024 * 1024;

/// More columns than any model has.
const MAX_COLUMNS: usize = 65_536;

#[derive(Deserialize)]
struct TensorHeader {
    dtype: Dtype,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

type LocatedTensor = (Dtype, Vec<usize>, Range<usize>);

/// The supported number types.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
enum Dtype {
    F64,
    F32,
    F16,
    I8,
    I32,
    I64,
}

impl Dtype {
    fn bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 => 2,
            Self::I8 => 1,
        }
    }

    /// Converts the bytes of one number.
    fn number(self, bytes: &[u8]) -> f32 {
        match (self, bytes) {
            (Self::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
            (Self::F16, &[a, b]) => half(u16::from_le_bytes([a, b])),
            (Self::I8, &[a]) => f32::from(a as i8),
            (Self::F64, &[a, b, c, d, e, f, g, h]) => {
                f64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32
            }
            _ => f32::NAN,
        }
    }

    fn index(self, bytes: &[u8]) -> Option<u32> {
        match (self, bytes) {
            (Self::I32, &[a, b, c, d]) => i32::from_le_bytes([a, b, c, d]).try_into().ok(),
            (Self::I64, &[a, b, c, d, e, f, g, h]) => {
                i64::from_le_bytes([a, b, c, d, e, f, g, h]).try_into().ok()
            }
            _ => None,
        }
    }
}

/// Converts a 16-bit float: a sign, five bits of exponent, ten bits of fraction.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2_f32.powi(-24),
        0x1f if fraction == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        _ => (1024.0 + fraction) * 2_f32.powi(exponent - 25),
    }
}

impl Tensors {
    pub(super) fn read(bytes: Vec<u8>) -> Result<Self, Problem> {
        let broken = |detail: &str| Problem::Broken(detail.to_owned());
        let length = bytes
            .first_chunk()
            .ok_or_else(|| broken("it is too short"))?;
        let length = u64::from_le_bytes(*length);
        if length > MAX_HEADER {
            return Err(broken("its header is too long"));
        }
        let start = 8 + length as usize;
        let header = bytes.get(8..start);
        let header = header.ok_or_else(|| broken("it ends within its header"))?;
        let header = serde_json::from_slice(header).map_err(not_json)?;
        Ok(Self {
            bytes,
            start,
            header,
        })
    }

    /// Returns the numbers of the tensor with this name, if it exists.
    pub(super) fn numbers(&self, name: &str) -> Result<Option<Vec<f32>>, Problem> {
        let Some((dtype, _, range)) = self.find(name)? else {
            return Ok(None);
        };
        expect_numbers(name, dtype)?;
        let numbers = self.bytes[range].chunks_exact(dtype.bytes());
        Ok(Some(numbers.map(|bytes| dtype.number(bytes)).collect()))
    }

    /// Returns the indices in the tensor with this name, if it exists.
    pub(super) fn indices(&self, name: &str) -> Result<Option<Vec<u32>>, Problem> {
        let Some((dtype, _, range)) = self.find(name)? else {
            return Ok(None);
        };
        let numbers = self.bytes[range].chunks_exact(dtype.bytes());
        let indices: Option<Vec<u32>> = numbers.map(|bytes| dtype.index(bytes)).collect();
        let broken = || Problem::Broken(format!("`{name}` contains values that are not indices"));
        indices.map(Some).ok_or_else(broken)
    }

    /// Converts the tensor with this name to a matrix, which owns the bytes of the whole file.
    pub(super) fn into_matrix(self, name: &str) -> Result<Matrix, Problem> {
        let found = self.find(name)?;
        let missing = || Problem::Broken(format!("it has no tensor `{name}`"));
        let (dtype, shape, range) = found.ok_or_else(missing)?;
        expect_numbers(name, dtype)?;
        match shape[..] {
            [rows, columns] if (1..=MAX_COLUMNS).contains(&columns) => Ok(Matrix {
                bytes: self.bytes,
                range,
                dtype,
                rows,
                columns,
            }),
            _ => Err(Problem::Broken(format!(
                "`{name}` is not a matrix with at most {MAX_COLUMNS} columns"
            ))),
        }
    }

    /// Returns the type, the shape and the byte range of a tensor. Checks that the range is within the file and fits
    /// the shape.
    fn find(&self, name: &str) -> Result<Option<LocatedTensor>, Problem> {
        let Some(entry) = self.header.get(name) else {
            return Ok(None);
        };
        let TensorHeader {
            dtype,
            shape,
            data_offsets: (from, to),
        } = TensorHeader::deserialize(entry).map_err(not_json)?;
        let wrong = || Problem::Broken(format!("the header of `{name}` does not match the file"));
        let count = |count: usize, side: &usize| count.checked_mul(*side);
        let length = shape.iter().try_fold(dtype.bytes(), count);
        let range = self.start.checked_add(from).zip(self.start.checked_add(to));
        let (from, to) = range.ok_or_else(wrong)?;
        if to > self.bytes.len() || to.checked_sub(from) != length || length.is_none() {
            return Err(wrong());
        }
        Ok(Some((dtype, shape, from..to)))
    }
}

fn expect_numbers(name: &str, dtype: Dtype) -> Result<(), Problem> {
    match dtype {
        Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::I8 => Ok(()),
        Dtype::I32 | Dtype::I64 => Err(Problem::Unsupported(format!(
            "`{name}` has the number type {dtype:?}; use a model with f32, f16 or i8"
        ))),
    }
}

/// A matrix in the format of the file.
pub(super) struct Matrix {
    bytes: Vec<u8>,
    range: Range<usize>,
    dtype: Dtype,
    rows: usize,
    columns: usize,
}

impl Matrix {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> u32 {
        self.columns as u32
    }

    /// Adds a row, multiplied by a weight, to a sum.
    pub(super) fn add(&self, row: u32, weight: f32, sum: &mut [f32]) {
        let width = self.columns * self.dtype.bytes();
        let numbers = self.bytes[self.range.clone()]
            .chunks_exact(width)
            .nth(row as usize);
        let numbers = numbers.unwrap_or_default().chunks_exact(self.dtype.bytes());
        for (sum, bytes) in sum.iter_mut().zip(numbers) {
            *sum += weight * self.dtype.number(bytes);
        }
    }
}
