//! Compares a model in a folder with the results of the Python library for the same files. `fixtures/model2vec/make.py`
//! creates both.

use lango_core::{EmbedError, Embedder, EmbeddingPurpose};
use lango_knowledge::{Model2Vec, Model2VecError};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

const CONFIG: &[u8] = include_bytes!("../fixtures/model2vec/config.json");
const TOKENIZER: &[u8] = include_bytes!("../fixtures/model2vec/tokenizer.json");
const MODEL: &[u8] = include_bytes!("../fixtures/model2vec/model.safetensors");
const HALF: &[u8] = include_bytes!("../fixtures/model2vec/half.safetensors");
const SHARED: &[u8] = include_bytes!("../fixtures/model2vec/shared.safetensors");
const EXPECTED: &str = include_str!("../fixtures/model2vec/expected.json");

struct Folder(TempDir);

impl Folder {
    fn new(config: &[u8], tokenizer: &[u8], model: &[u8]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("config.json", config);
        folder.write("tokenizer.json", tokenizer);
        folder.write("model.safetensors", model);
        folder
    }

    fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.0.path().join(name), content).unwrap();
    }

    fn open(&self) -> Result<Model2Vec, Model2VecError> {
        Model2Vec::open(self.0.path())
    }

    fn problem(&self) -> String {
        let error = self.open().map(|_| ()).unwrap_err();
        error.to_string()
    }
}

fn embed(model: &Model2Vec, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(model.embed(texts, EmbeddingPurpose::Document))
}

fn assert_as_expected(folder: &Folder, name: &str, tolerance: f64) {
    let model = folder.open().unwrap();
    let expected: Vec<Value> = serde_json::from_str(EXPECTED).unwrap();
    assert!(expected.len() > 40);
    for case in expected {
        let text = case["text"].as_str().unwrap();
        let vector = embed(&model, &[text]).unwrap().remove(0);
        let wanted: Vec<f64> = serde_json::from_value(case[name].clone()).unwrap();
        assert_eq!(vector.len(), wanted.len());
        let near = vector.iter().zip(&wanted);
        let near = near.map(|(own, wanted)| (f64::from(*own) - wanted).abs());
        let farthest = near.fold(0.0, f64::max);
        assert!(
            farthest < tolerance,
            "{name} {text:?}: {vector:?} {wanted:?}"
        );
    }
}

#[test]
fn vectors_equal_those_of_the_python_library() {
    assert_as_expected(&Folder::new(CONFIG, TOKENIZER, MODEL), "model", 1e-5);
}

#[test]
fn vectors_of_half_floats_shared_rows_and_another_configuration_are_equal_too() {
    assert_as_expected(&Folder::new(CONFIG, TOKENIZER, HALF), "half", 3e-3);
    assert_as_expected(&Folder::new(CONFIG, TOKENIZER, SHARED), "shared", 1e-5);
    assert_as_expected(&Folder::new(b"{}", TOKENIZER, MODEL), "plain", 1e-5);
}

#[test]
fn the_embedding_model_changes_with_the_files() {
    let folder = Folder::new(CONFIG, TOKENIZER, MODEL);
    let maker = folder.open().unwrap().model().clone();
    assert_eq!(&*maker.provider, "model2vec");
    assert_eq!(
        &*maker.model,
        folder.0.path().file_name().unwrap().to_str().unwrap()
    );
    assert_eq!(maker.dimensions, 4);
    assert_eq!(folder.open().unwrap().model(), &maker);
    let mut other = MODEL.to_vec();
    *other.last_mut().unwrap() ^= 1;
    folder.write("model.safetensors", &other);
    assert_ne!(folder.open().unwrap().model().version, maker.version);
}

#[test]
fn missing_files_are_reported() {
    let folder = Folder::new(CONFIG, TOKENIZER, MODEL);
    std::fs::remove_file(folder.0.path().join("tokenizer.json")).unwrap();
    assert!(folder.problem().contains("tokenizer.json` cannot be read"));
    std::fs::create_dir(folder.0.path().join("tokenizer.json")).unwrap();
    assert!(folder.problem().contains("tokenizer.json` cannot be read"));
    assert!(Model2Vec::open(Path::new("/nowhere/at/all")).is_err());
}

#[test]
fn another_tokenizer_is_refused_with_the_reason() {
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut tokenizer: Value = serde_json::from_slice(TOKENIZER).unwrap();
        change(&mut tokenizer);
        Folder::new(CONFIG, tokenizer.to_string().as_bytes(), MODEL).problem()
    };
    let unigram =
        changed(&|all| all["model"] = json!({ "type": "Unigram", "vocab": [["a", -1.0]] }));
    assert!(
        unigram.contains("cannot be used: it has a tokenizer of kind \"Unigram\""),
        "{unigram}"
    );
    let byte_level = changed(&|all| all["pre_tokenizer"] = json!({ "type": "ByteLevel" }));
    assert!(
        byte_level.contains("a pre-tokenizer other than BERT's"),
        "{byte_level}"
    );
    let none = changed(&|all| all["pre_tokenizer"] = json!(null));
    assert!(none.contains("a pre-tokenizer other than BERT's"), "{none}");
    let sequence =
        changed(&|all| all["normalizer"] = json!({ "type": "Sequence", "normalizers": [] }));
    assert!(
        sequence.contains("a normalizer other than BERT's"),
        "{sequence}"
    );
    let single = changed(&|all| all["added_tokens"][0]["single_word"] = json!(true));
    assert!(single.contains("a single word"), "{single}");
    let empty = changed(&|all| {
        all["model"]["vocab"] = json!({});
        all["added_tokens"] = json!([]);
    });
    assert!(empty.contains("it has no vocabulary"), "{empty}");
    let many = changed(&|all| all["model"]["vocab"]["more"] = json!(4_294_967_295_u32));
    assert!(many.contains("vectors for 4294967296 tokens"), "{many}");
}

/// Builds a safetensors file with this header.
fn tensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

#[test]
fn a_table_that_does_not_match_its_header_is_refused() {
    let problem = |model: &[u8]| Folder::new(CONFIG, TOKENIZER, model).problem();
    assert!(problem(b"").contains("it is too short"));
    assert!(problem(&u64::MAX.to_le_bytes()).contains("its header is too long"));
    assert!(problem(&1000_u64.to_le_bytes()).contains("ends within its header"));
    for end in [9, 60, 100, MODEL.len() - 1] {
        assert!(problem(&MODEL[..end]).contains("is broken"), "{end}");
    }
    let one = |entry: &str| problem(&tensors(&format!("{{\"embeddings\":{entry}}}"), &[0; 64]));
    for entry in [
        r#"{"dtype":"F32","shape":[4,4],"data_offsets":[0,60]}"#,
        r#"{"dtype":"F32","shape":[4,4],"data_offsets":[1,65]}"#,
        r#"{"dtype":"F32","shape":[4,4],"data_offsets":[64,0]}"#,
        r#"{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,64]}"#,
        r#"{"dtype":"F32","shape":[4,4],"data_offsets":[18446744073709551615,18446744073709551615]}"#,
        r#"{"dtype":"F32","shape":[16],"data_offsets":[0,64]}"#,
        r#"{"dtype":"F32","shape":[2,2,4],"data_offsets":[0,64]}"#,
        r#"{"dtype":"F32","shape":[16,0],"data_offsets":[0,0]}"#,
        r#"{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]}"#,
        r#"{"dtype":"F32","shape":[-1,4],"data_offsets":[0,64]}"#,
        r#"{"dtype":"F8","shape":[16,4],"data_offsets":[0,64]}"#,
        r#"{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]}"#,
        r#"[]"#,
        r#"null"#,
    ] {
        let problem = one(entry);
        assert!(problem.contains("is broken"), "{entry}: {problem}");
    }
    let integers = one(r#"{"dtype":"I32","shape":[4,4],"data_offsets":[0,64]}"#);
    assert!(integers.contains("cannot be used"), "{integers}");
    assert!(problem(&tensors("{}", &[])).contains("no tensor `embeddings`"));
}

#[test]
fn rows_that_do_not_exist_are_refused() {
    // The mapping is the last tensor of the file.
    let mut far = SHARED.to_vec();
    let end = far.len();
    far[end - 4..].copy_from_slice(&16_i32.to_le_bytes());
    let problem = |model: &[u8]| Folder::new(CONFIG, TOKENIZER, model).problem();
    assert!(problem(&far).contains("it refers to rows that do not exist"));
    far[end - 4..].copy_from_slice(&(-1_i32).to_le_bytes());
    assert!(problem(&far).contains("contains values that are not indices"));
}

#[test]
fn values_that_are_not_numbers_are_reported_when_used() {
    let mut model = MODEL.to_vec();
    let start = model.len() - 16;
    for number in model[start..].chunks_exact_mut(4) {
        number.copy_from_slice(&f32::NAN.to_le_bytes());
    }
    let model = Folder::new(CONFIG, TOKENIZER, &model).open().unwrap();
    // The last row belongs to the last added token.
    let error = embed(&model, &["New York"]).unwrap_err();
    assert!(
        error
            .detail
            .contains("contains values that are not numbers"),
        "{error}"
    );
    assert!(embed(&model, &["cat"]).is_ok());
}

/// Generates one of the files with some bytes changed, or truncated.
fn corrupted() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let files = [CONFIG, TOKENIZER, MODEL, SHARED];
    (0..files.len()).prop_flat_map(move |which| {
        let file = files[which];
        // The start of a file matters most.
        let place = prop_oneof![0..file.len().min(400), 0..file.len()];
        let changes = prop::collection::vec((place, any::<u8>()), 0..8);
        (changes, 0..=file.len(), any::<bool>()).prop_map(move |(changes, end, is_cut)| {
            let mut bytes = file.to_vec();
            for (place, byte) in changes {
                bytes[place] = byte;
            }
            if is_cut {
                bytes.truncate(end);
            }
            (which, bytes)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn corrupted_files_are_refused_or_give_numbers((which, bytes) in corrupted(), text in ".{0,40}") {
        let folder = match which {
            0 => Folder::new(&bytes, TOKENIZER, MODEL),
            1 => Folder::new(CONFIG, &bytes, MODEL),
            _ => Folder::new(CONFIG, TOKENIZER, &bytes),
        };
        if let Ok(model) = folder.open()
            && let Ok(vectors) = embed(&model, &[&text, "the cats, New York"])
        {
            let dimensions = model.model().dimensions as usize;
            prop_assert!(vectors.iter().all(|vector| vector.len() == dimensions));
            prop_assert!(vectors.iter().flatten().all(|number| number.is_finite()));
        }
    }

    #[test]
    fn any_text_has_a_vector_of_length_one_or_zero(text in "(?s).{0,200}") {
        let model = Folder::new(CONFIG, TOKENIZER, MODEL).open().unwrap();
        let vector = embed(&model, &[&text]).unwrap().remove(0);
        let length: f32 = vector.iter().map(|number| number * number).sum();
        prop_assert!(length == 0.0 || (length - 1.0).abs() < 1e-4);
    }
}
