//! Types secrets into pages. If the text of a `type` step is `secret:NAME`, and that secret is bound to this tool and
//! to the origin of the field's document, its value is typed. Secrets are typed only into password fields, because the
//! content of other fields can be read back from the page.

use crate::act::origin_of;
use crate::{ActionKind, ActionStep, BrowserError, BrowserSessions, Page};
use lango_core::Caller;
use lango_secrets::{Origin, SecretName, SecretUser, SecretValue, field_binding, secret_handle};
use std::sync::Arc;

/// The tool to which secrets for typing are bound.
pub const TYPING_TOOL: &str = "browser_act";

/// The argument of [`TYPING_TOOL`] that may name a secret.
pub const TYPING_FIELD: &str = "text";

/// The text that a step types.
pub(super) enum TypedText {
    /// The step's text.
    Text,
    /// The step's text, which looks like the name of a secret but is typed as it is. Contains the reason for the model.
    Literal(String),
    /// The value of a secret.
    Secret(Arc<SecretValue>),
}

/// Determines the text that a step types. Fails if it names a bound secret that cannot be typed there.
pub(super) async fn resolve(
    sessions: &BrowserSessions,
    caller: &Caller,
    page: &Page,
    step: &ActionStep,
) -> Result<TypedText, BrowserError> {
    let text = step
        .text
        .as_deref()
        .filter(|_| step.action == ActionKind::Type);
    let Some(name) = text.and_then(secret_handle) else {
        return Ok(TypedText::Text);
    };
    let Some(source) = sessions.secrets() else {
        return Ok(TypedText::Text);
    };
    let refused = |message: String| BrowserError::Argument { message };
    let bound = source.bound_secrets(&caller.user, TYPING_TOOL).await;
    let bound = bound.map_err(|error| refused(error.to_string()))?;
    let origin = origin_of(page, step).await;
    let origin = origin.and_then(|origin| Origin::parse(&origin).ok());
    let Some(origin) = origin else {
        return Ok(TypedText::Literal(literal_remark(&name, "this page")));
    };
    let Some(secret) = field_binding(&bound, &name, TYPING_FIELD, &origin) else {
        return Ok(TypedText::Literal(literal_remark(
            &name,
            &origin.to_string(),
        )));
    };
    let element = page.element(step.handle.as_deref().unwrap_or_default())?;
    if step.append || !page.is_password_field(&element).await? {
        return Err(refused(format!(
            "secret:{name} can only be typed into a password field, and cannot be appended"
        )));
    }
    let value = source.resolve(&SecretUser::agent(caller), secret).await;
    Ok(TypedText::Secret(
        value.map_err(|error| refused(error.to_string()))?,
    ))
}

fn literal_remark(name: &SecretName, place: &str) -> String {
    format!(
        "secret:{name} is not bound to {place}, so this literal text was typed; \
         `lango secrets bind {name} --tool {TYPING_TOOL} --field {TYPING_FIELD} --host HOST` binds it"
    )
}

/// Types a secret's value in place of the step's text, and describes the step without revealing the value.
pub(super) async fn type_secret(
    page: &Page,
    step: &ActionStep,
    value: &SecretValue,
    host: Option<&str>,
) -> Result<String, BrowserError> {
    let text = value.expose_text().ok_or_else(|| BrowserError::Argument {
        message: "the secret is binary, so it cannot be typed".to_owned(),
    })?;
    let typed = ActionStep {
        text: Some(text.to_owned()),
        ..step.clone()
    };
    let element = page.element(step.handle.as_deref().unwrap_or_default())?;
    let line = page.summary(step, Some(&element));
    page.act(&typed, &[], host).await?;
    Ok(line)
}
