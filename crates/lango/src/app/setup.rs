//! The first configuration file: tests the chosen model, and writes a minimal file that selects it.

use crate::app::{App, Failure};
use futures_util::StreamExt;
use lango_config::Origin;
use lango_core::{Message, Model, ModelEvent, ModelRequest};
use std::io::Write;
use std::path::Path;

/// Makes one short call to the model.
pub async fn test_call(model: &dyn Model) -> Result<(), Failure> {
    let request = ModelRequest {
        instruction: "Answer with one word.".into(),
        messages: vec![Message::user("hello")],
        ..ModelRequest::default()
    };
    let mut stream = model.call(request);
    while let Some(event) = stream.next().await {
        match event {
            Ok(ModelEvent::Reply(_)) => return Ok(()),
            Ok(_) => {}
            Err(error) => {
                return Err(Failure::config(error.to_string())
                    .next("nothing was written; fix the problem and run `lango setup` again"));
            }
        }
    }
    Err(Failure::config("the model sent no reply").next("nothing was written"))
}

/// Returns the content of the file: the model, and the settings of its provider from the command line.
pub fn file_text(app: &App, model: &str) -> String {
    let provider = model.split('/').next().unwrap_or_default();
    let mut text = format!("agent.model = {}\n", toml::Value::from(model));
    for value in &app.loaded.values {
        let is_of_provider = value.name.starts_with(&format!("providers.{provider}."));
        if is_of_provider
            && value.origin == Origin::Flag
            && let Some(rendered) = value.render()
        {
            text.push_str(&format!("{} = {rendered}\n", value.name));
        }
    }
    text
}

/// Writes a temporary file and renames it, so that no reader sees a partial file.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let failed = |error: std::io::Error| {
        Failure::config(format!("cannot write `{}`: {error}", path.display()))
            .next("set LANGO_HOME to a writable folder")
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let temporary = path.with_extension("toml.new");
    let mut file = std::fs::File::create(&temporary).map_err(failed)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(failed)?;
    std::fs::rename(&temporary, path).map_err(failed)
}
