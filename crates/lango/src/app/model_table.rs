//! The available models as `lango models` and the page list them.

use crate::app::App;
use crate::app::failure::Failure;
use crate::app::model_lists::ListSource;
use crate::app::model_offers::{ModelOffer, ProviderOffers, list_offers};
use lango_core::text::sanitize;
use lango_models::OfflineModel;
use serde_json::{Value, json};

/// A row of the table.
pub struct Line {
    pub model: String,
    pub note: String,
    /// Additional fields in the output of `--json`.
    facts: Value,
}

/// Returns the available models as JSON.
pub async fn list(config: Vec<String>) -> Result<Value, Failure> {
    let app = App::load(config).await?;
    let providers = list_offers(&app.model_selector()).await;
    let choice = app.model_selector().choose().await?;
    let chosen = Some(choice.model.name());
    Ok(rows(lines(&providers, chosen), chosen))
}

/// Returns the rows: the built-in rules, then the models of each provider.
pub fn lines(providers: &[ProviderOffers], chosen: Option<&str>) -> Vec<Line> {
    let mut lines = vec![Line::plain(
        OfflineModel::NAME,
        "built-in rules, not an AI model",
    )];
    lines.extend(providers.iter().flat_map(lines_of));
    if let Some(chosen) = chosen
        && !lines.iter().any(|line| line.model == chosen)
    {
        lines.push(Line::plain(chosen, "not in its provider's list"));
    }
    lines
}

/// Returns the rows as JSON.
pub fn rows(lines: Vec<Line>, chosen: Option<&str>) -> Value {
    let rows = lines.into_iter().map(|line| {
        let is_chosen = Some(line.model.as_str()) == chosen;
        let mut row = json!({ "model": line.model, "note": line.note, "chosen": is_chosen });
        if let (Value::Object(row), Value::Object(facts)) = (&mut row, line.facts) {
            row.extend(facts);
        }
        row
    });
    rows.collect()
}

/// Returns the lines for a provider: the reason if its live list is not available, then its models.
fn lines_of(provider: &ProviderOffers) -> Vec<Line> {
    let failure = provider.error.iter().map(|error| {
        let model = format!("{}/…", provider.provider);
        Line::plain(&model, &format!("cannot be listed: {error}"))
    });
    let offers = provider.offers.iter();
    let offers = offers.map(|offer| Line::of(offer, provider.source));
    failure.chain(offers).collect()
}

impl Line {
    fn plain(model: &str, note: &str) -> Self {
        Self {
            model: model.to_owned(),
            note: note.to_owned(),
            facts: Value::Null,
        }
    }

    fn of(offer: &ModelOffer, source: Option<ListSource>) -> Self {
        let facts = &offer.facts;
        let listed_at = match source {
            Some(ListSource::Cache(listed_at)) => Some(listed_at),
            _ => None,
        };
        let source = source.map(|source| match source {
            ListSource::Live => "live",
            ListSource::Cache(_) => "cache",
            ListSource::Table => "table",
        });
        Self {
            model: sanitize(&offer.name).into_owned(),
            note: offer.note(),
            facts: json!({
                "default": offer.is_default,
                "context_tokens": facts.context_tokens,
                "max_output_tokens": facts.max_output_tokens,
                "price": facts.price,
                "price_date": facts.date,
                "retires": facts.retires,
                "source": source,
                "listed_at": listed_at,
            }),
        }
    }
}
