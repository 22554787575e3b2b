//! A local model2vec model: a table with one vector for each token. The vector of a text is the mean of its tokens'
//! vectors. Computing it takes microseconds and needs no network, no key and no GPU.
//!
//! A model is a folder that the Python library `model2vec` saves, with the files `config.json`, `model.safetensors` and
//! `tokenizer.json`. lango parses all three itself, with limits, because they are downloaded from third parties. It
//! supports only BERT's WordPiece tokenizer and refuses folders with any other, because their vectors would be wrong. A
//! text without known tokens gets zeros, and tokens beyond the model's limit are ignored, as in the Python library.

mod normalizer;
mod tensors;
mod tokenizer;

use lango_core::{BoxFuture, EmbedError, Embedder, EmbeddingModel, EmbeddingPurpose};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tensors::{Matrix, Tensors};
use tokenizer::Tokenizer;

/// A model2vec model in memory.
pub struct Model2Vec {
    model: EmbeddingModel,
    tokenizer: Tokenizer,
    matrix: Matrix,
    /// The row of each token, if tokens share rows.
    rows: Option<Vec<u32>>,
    /// The weight of each token.
    weights: Option<Vec<f32>>,
    config: Config,
}

/// Why a folder cannot be used as a model.
#[derive(Debug, thiserror::Error)]
pub enum Model2VecError {
    /// A file is missing or cannot be read.
    #[error(
        "`{path}` cannot be read; a model2vec folder has `config.json`, `model.safetensors` and `tokenizer.json`"
    )]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The content of a file is invalid.
    #[error("`{path}` is broken: {detail}")]
    Broken { path: PathBuf, detail: String },
    /// lango does not support this kind of model.
    #[error("`{path}` cannot be used: {detail}")]
    Unsupported { path: PathBuf, detail: String },
}

/// What is wrong with a file.
#[derive(Debug, PartialEq)]
enum Problem {
    Broken(String),
    Unsupported(String),
}

impl Problem {
    fn of(self, path: PathBuf) -> Model2VecError {
        match self {
            Self::Broken(detail) => Model2VecError::Broken { path, detail },
            Self::Unsupported(detail) => Model2VecError::Unsupported { path, detail },
        }
    }
}

/// Maximum size of the configuration file in bytes.
const MAX_CONFIG: u64 = 1024 * 1024;
/// Maximum size of the tokenizer file in bytes.
const MAX_TOKENIZER: u64 = 64 * 1024 * 1024;
/// Maximum size of the tensor file in bytes.
const MAX_MATRIX: u64 = 2 * 1024 * 1024 * 1024;

/// Incremented when the same files give different vectors.
const READER_VERSION: u64 = 1;

impl Model2Vec {
    /// Reads the model in a folder. Needs as much memory as its files, and blocks the thread.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Model2VecError> {
        let folder = folder.as_ref();
        let at = |name: &str| folder.join(name);
        let config = read(at("config.json"), MAX_CONFIG)?;
        let text = read(at("tokenizer.json"), MAX_TOKENIZER)?;
        let table = read(at("model.safetensors"), MAX_MATRIX)?;
        let fingerprint = fingerprint([&config, &text, &table]);
        let config = Config::read(&config).map_err(|problem| problem.of(at("config.json")))?;
        let tokenizer = Tokenizer::read(&text);
        let tokenizer = tokenizer.map_err(|problem| problem.of(at("tokenizer.json")))?;
        let (matrix, rows, weights) = read_tensors(table, tokenizer.ids())
            .map_err(|problem| problem.of(at("model.safetensors")))?;
        let name = folder.file_name().unwrap_or(folder.as_os_str());
        let model = EmbeddingModel {
            provider: "model2vec".into(),
            model: name.to_string_lossy().as_ref().into(),
            dimensions: matrix.columns(),
            version: fingerprint,
        };
        Ok(Self {
            model,
            tokenizer,
            matrix,
            rows,
            weights,
            config,
        })
    }

    /// Computes the vector of a text.
    fn vector(&self, text: &str) -> Vec<f32> {
        let limit = self.config.max_tokens;
        let ids = self.tokenizer.tokenize(text, limit);
        let mut vector = vec![0.0; self.matrix.columns() as usize];
        for &id in &ids {
            let row = self.rows.as_ref().map_or(Some(id), |rows| at(rows, id));
            let weight = self.weights.as_ref().map_or(Some(1.0), |all| at(all, id));
            if let (Some(row), Some(weight)) = (row, weight) {
                self.matrix.add(row, weight, &mut vector);
            }
        }
        let count = ids.len().max(1) as f32;
        vector.iter_mut().for_each(|number| *number /= count);
        if self.config.is_normalized {
            let squares = vector.iter().map(|number| f64::from(*number).powi(2));
            let length = squares.sum::<f64>().sqrt() + 1e-32;
            let normalized = |number: &mut f32| *number = (f64::from(*number) / length) as f32;
            vector.iter_mut().for_each(normalized);
        }
        vector
    }
}

fn at<T: Copy>(list: &[T], id: u32) -> Option<T> {
    list.get(id as usize).copied()
}

impl Embedder for Model2Vec {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    fn embed(
        &self,
        texts: Vec<String>,
        _purpose: EmbeddingPurpose,
    ) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move {
            let vectors: Vec<_> = texts.iter().map(|text| self.vector(text)).collect();
            if vectors.iter().flatten().all(|number| number.is_finite()) {
                return Ok(vectors);
            }
            let model = &self.model.model;
            Err(EmbedError {
                provider: self.model.provider.clone(),
                detail: format!(
                    "the table of `{model}` contains values that are not numbers; download it again"
                ),
                is_transient: false,
            })
        })
    }
}

struct Config {
    is_normalized: bool,
    /// Maximum number of tokens per text; further ones are ignored.
    max_tokens: usize,
}

impl Config {
    const DEFAULT_TOKENS: usize = 512;
    /// The limit if `max_length` is `null`, which means no limit in the file.
    const MAX_TOKENS: usize = 1_000_000;

    fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let config: Value = serde_json::from_slice(bytes).map_err(not_json)?;
        let max_tokens = match config.get("max_length") {
            None => Self::DEFAULT_TOKENS,
            Some(Value::Null) => Self::MAX_TOKENS,
            Some(number) => number
                .as_u64()
                .and_then(|number| usize::try_from(number).ok())
                .ok_or_else(|| Problem::Broken("`max_length` is not a number".to_owned()))?,
        };
        let normalize = config.get("normalize");
        Ok(Self {
            is_normalized: normalize.and_then(Value::as_bool).unwrap_or(false),
            max_tokens: max_tokens.min(Self::MAX_TOKENS),
        })
    }
}

type Table = (Matrix, Option<Vec<u32>>, Option<Vec<f32>>);

/// Reads the matrix, and the row and the weight of each of the `ids` tokens.
fn read_tensors(bytes: Vec<u8>, ids: usize) -> Result<Table, Problem> {
    let tensors = Tensors::read(bytes)?;
    let rows = tensors.indices("mapping")?;
    let weights = tensors.numbers("weights")?;
    let matrix = tensors.into_matrix("embeddings")?;
    let broken = |detail: String| Err(Problem::Broken(detail));
    if let Some(few) = weights.as_ref().filter(|weights| weights.len() < ids) {
        return broken(format!("{} weights for {ids} tokens", few.len()));
    }
    match &rows {
        None if matrix.rows() < ids => {
            broken(format!("{} vectors for {ids} tokens", matrix.rows()))
        }
        Some(rows) if rows.len() < ids => {
            broken(format!("{} row numbers for {ids} tokens", rows.len()))
        }
        Some(rows) if rows.iter().any(|row| *row as usize >= matrix.rows()) => {
            broken("it refers to rows that do not exist".to_owned())
        }
        _ => Ok((matrix, rows, weights)),
    }
}

fn read(path: PathBuf, largest: u64) -> Result<Vec<u8>, Model2VecError> {
    let read = || -> io::Result<Vec<u8>> {
        // Opening a pipe would block.
        if !std::fs::metadata(&path)?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let mut bytes = Vec::new();
        File::open(&path)?
            .take(largest + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = match read() {
        Ok(bytes) => bytes,
        Err(source) => return Err(Model2VecError::Unreadable { path, source }),
    };
    if bytes.len() as u64 > largest {
        let detail = format!("it is larger than {} MiB", largest / 1024 / 1024);
        return Err(Model2VecError::Unsupported { path, detail });
    }
    Ok(bytes)
}

fn not_json(error: serde_json::Error) -> Problem {
    let text: String = error.to_string().chars().take(200).collect();
    Problem::Broken(text)
}

/// Hashes the files (FNV-1a, eight bytes at a time), so that different files give different numbers.
fn fingerprint(files: [&[u8]; 3]) -> u32 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |word: u64| hash = (hash ^ word).wrapping_mul(PRIME);
    add(READER_VERSION);
    for file in files {
        add(file.len() as u64);
        for chunk in file.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            add(u64::from_le_bytes(word));
        }
    }
    // The upper half depends on every bit.
    (hash >> 32) as u32 ^ hash as u32
}
