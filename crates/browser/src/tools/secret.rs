//! Types secrets into pages: `secret:NAME` as the text of a `type` step, if the secret is bound to this tool and to the
//! origin of the field's document. Only password fields take one, because everything else can be read back from the page.

use crate::act::origin_of;
use crate::{Action, BrowserError, Page, Sessions, Step};
use lango_core::Caller;
use lango_secrets::{Origin, SecretName, SecretUser, SecretValue, field_binding, secret_handle};
use std::sync::Arc;

/// The tool that types.
pub const TYPING_TOOL: &str = "browser_act";

/// The argument that may be a secret.
pub const TYPING_FIELD: &str = "text";

/// What a step types.
pub(super) enum Typing {
    /// Its own text.
    Text,
    /// Its own text, although it looks like a secret, for this reason.
    Literal(String),
    /// The value of a secret.
    Secret(Arc<SecretValue>),
}

/// Finds out what a step types. Fails if it names a bound secret that cannot be typed there.
pub(super) async fn resolve(
    sessions: &Sessions,
    caller: &Caller,
    page: &Page,
    step: &Step,
) -> Result<Typing, BrowserError> {
    let text = step.text.as_deref().filter(|_| step.action == Action::Type);
    let Some(name) = text.and_then(secret_handle) else {
        return Ok(Typing::Text);
    };
    let Some(source) = sessions.secrets() else {
        return Ok(Typing::Text);
    };
    let refused = |message: String| BrowserError::Argument { message };
    let bound = source.bound(&caller.user, TYPING_TOOL).await;
    let bound = bound.map_err(|error| refused(error.to_string()))?;
    let origin = origin_of(page, step).await;
    let origin = origin.and_then(|origin| Origin::parse(&origin).ok());
    let Some(origin) = origin else {
        return Ok(Typing::Literal(literal(&name, "this page")));
    };
    let Some(secret) = field_binding(&bound, &name, TYPING_FIELD, &origin) else {
        return Ok(Typing::Literal(literal(&name, &origin.to_string())));
    };
    let element = page.element(step.handle.as_deref().unwrap_or_default())?;
    if step.append || !page.is_password_field(&element).await? {
        return Err(refused(format!(
            "secret:{name} can be typed into a password field only, and not be appended"
        )));
    }
    let value = source.resolve(&SecretUser::agent(caller), secret).await;
    Ok(Typing::Secret(
        value.map_err(|error| refused(error.to_string()))?,
    ))
}

fn literal(name: &SecretName, place: &str) -> String {
    format!(
        "secret:{name} is not bound to {place}, so this literal text was typed; \
         `lango secrets bind {name} --tool {TYPING_TOOL} --field {TYPING_FIELD} --host HOST` binds it"
    )
}

/// Types a value as the step would its text, and describes the step without the value.
pub(super) async fn type_secret(
    page: &Page,
    step: &Step,
    value: &SecretValue,
    host: Option<&str>,
) -> Result<String, BrowserError> {
    let text = value.expose_text().ok_or_else(|| BrowserError::Argument {
        message: "the secret is no text, so it cannot be typed".to_owned(),
    })?;
    let typed = Step {
        text: Some(text.to_owned()),
        ..step.clone()
    };
    let element = page.element(step.handle.as_deref().unwrap_or_default())?;
    let line = page.summary(step, Some(&element));
    page.act(&typed, &[], host).await?;
    Ok(line)
}
