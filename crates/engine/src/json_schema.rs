//! Compiling JSON schemas and describing what does not satisfy them, for the arguments of tools and for answers. A `$ref`
//! fetches nothing.

use serde_json::Value;

/// How many problems of one value are told.
const MOST_PROBLEMS: usize = 5;

/// Compiles a schema. The error says where in the schema it is wrong.
pub(crate) fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::validator_for(schema).map_err(|error| describe(&error))
}

/// Checks a value. The error names every place that is missing or wrong, up to five.
pub(crate) fn check(validator: &jsonschema::Validator, value: &Value) -> Result<(), String> {
    if validator.is_valid(value) {
        return Ok(());
    }
    let problems: Vec<String> = validator
        .iter_errors(value)
        .take(MOST_PROBLEMS)
        .map(|error| describe(&error))
        .collect();
    Err(problems.join("; "))
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    // A wrong value may be as long as a file; its beginning tells enough.
    let text: String = error.to_string().chars().take(200).collect();
    if place.is_empty() {
        text
    } else {
        format!("at `{place}`: {text}")
    }
}
