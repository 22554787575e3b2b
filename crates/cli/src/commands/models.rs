//! `lango models`: lists the available models with their prices, and the one in use.

use crate::app::App;
use crate::exit::{Exit, Failure};
use crate::markdown::sanitize;
use crate::model_lists::ListSource;
use crate::model_offers::{ModelOffer, ProviderOffers, list_offers};
use crate::screen;
use lango_models::OfflineModel;
use serde_json::{Value, json};

struct Line {
    model: String,
    note: String,
    /// Additional fields in the output of `--json`.
    facts: Value,
}

/// Runs the command.
pub async fn models(config: Vec<String>, as_json: bool) -> Result<Exit, Failure> {
    let app = App::load(config).await?;
    let providers = list_offers(&app.model_selector()).await;
    // Chosen from the lists that were just read, so that the choice agrees with the output.
    let choice = app.model_selector().choose().await;
    let chosen = choice.as_ref().ok().map(|choice| choice.model.name());
    let lines = lines(&providers, chosen);
    if as_json {
        screen::print(&screen::json(
            &rows(lines, chosen),
            screen::Layout::Indented,
        )?)?;
    } else {
        for Line { model, note, .. } in &lines {
            let mark = if Some(model.as_str()) == chosen {
                "●"
            } else {
                " "
            };
            screen::print(&format!("{mark} {model}  {note}"))?;
        }
    }
    for origin in providers.iter().filter_map(ProviderOffers::origin) {
        screen::say(&origin);
    }
    let choice = choice?;
    screen::say(&format!(
        "in use: {} ({})",
        choice.model.name(),
        choice.reason
    ));
    Ok(Exit::Ok)
}

/// Returns the available models as JSON.
pub async fn list(config: Vec<String>) -> Result<Value, Failure> {
    let app = App::load(config).await?;
    let providers = list_offers(&app.model_selector()).await;
    let choice = app.model_selector().choose().await?;
    let chosen = Some(choice.model.name());
    Ok(rows(lines(&providers, chosen), chosen))
}

fn lines(providers: &[ProviderOffers], chosen: Option<&str>) -> Vec<Line> {
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

fn rows(lines: Vec<Line>, chosen: Option<&str>) -> Value {
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
