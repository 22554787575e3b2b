//! `lango secrets bind` and `unbind`: where the value of a secret may be used.

use super::{read_answer, refuse_value};
use crate::args::BindArguments;
use crate::screen;
use lango::app::App;
use lango::app::Failure;
use lango::app::vault::bindings::{
    build_bindings, expiry_warning, network_hint, place_hints, service_drafts,
};
use lango::app::vault::{PromptMode, VaultContext, existing_entry, program_warnings};
use lango_secrets::{Binding, SecretName};
use lango_vault::{BindingDraft, VaultError};

pub(super) async fn bind(secrets: &VaultContext, arguments: &BindArguments) -> Result<(), Failure> {
    refuse_value(&arguments.name, &[], "secrets set")?;
    let name = SecretName::new(&arguments.name)?;
    let (drafts, note) = drafts(arguments)?;
    let app = if drafts.iter().any(|draft| draft.field.is_some()) {
        Some(App::load(secrets.flags.clone()).await?)
    } else {
        None
    };
    let settings = &secrets.loaded.settings;
    let bindings = build_bindings(settings, app.as_ref(), &name, drafts)?;
    let open = secrets.access.open(PromptMode::Allowed).await?;
    let hints = place_hints(settings, app.as_ref(), &bindings)?;
    for binding in &bindings {
        match open.bind(&name, binding).await {
            Ok(_) => screen::print(&format!("bound {name}: {binding}"))?,
            Err(VaultError::AlreadyBound { .. }) => {
                screen::print(&format!("{name} already has this binding: {binding}"))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    note.iter().for_each(|note| screen::say(note));
    let mut notices = expiry_warning(&secrets.access, &open, &name).await?;
    for binding in &bindings {
        notices.extend(program_warnings(&secrets.process_env.env, binding));
    }
    notices.extend(network_hint(&secrets.loaded, &bindings));
    notices.extend(hints);
    notices.iter().for_each(|notice| screen::say(notice));
    Ok(())
}

/// Returns the requested bindings, and a note for the user.
fn drafts(arguments: &BindArguments) -> Result<(Vec<BindingDraft>, Option<String>), Failure> {
    if let Some(service) = &arguments.service {
        let (drafts, note) = service_drafts(service, arguments.tool.as_deref())?;
        return Ok((drafts, Some(note)));
    }
    let draft = BindingDraft {
        tool: arguments.tool.clone(),
        host: arguments.host.clone(),
        header: arguments.header.clone(),
        variable: arguments.env.clone(),
        program: arguments.program.clone(),
        field: arguments.field.clone(),
    };
    Ok((vec![draft], None))
}

/// Removes one binding or all of them; asks which if there are several.
pub(super) async fn unbind(
    secrets: &VaultContext,
    name: &str,
    number: Option<usize>,
    all: bool,
) -> Result<(), Failure> {
    let name = SecretName::new(name)?;
    let open = secrets.access.open(PromptMode::Allowed).await?;
    let bindings = existing_entry(&open, &name).await?.bindings;
    let number = match number {
        None if all || bindings.len() < 2 => None,
        None => match ask_which(secrets, &name, &bindings).await? {
            BindingSelection::All => None,
            BindingSelection::Number(number) => Some(number),
            BindingSelection::Nothing => {
                screen::say("nothing was changed");
                return Ok(());
            }
        },
        number => number,
    };
    let chosen = match number {
        None => bindings,
        Some(number) => {
            let chosen = number.checked_sub(1).and_then(|at| bindings.get(at));
            vec![
                chosen
                    .ok_or_else(|| no_binding(&name, &number.to_string()))?
                    .clone(),
            ]
        }
    };
    if chosen.is_empty() {
        screen::print(&format!("{name} has no bindings"))?;
    }
    for binding in chosen {
        open.unbind(&name, &binding).await?;
        screen::print(&format!("removed from {name}: {binding}"))?;
    }
    Ok(())
}

/// Which bindings to remove.
enum BindingSelection {
    Number(usize),
    All,
    Nothing,
}

fn no_binding(name: &SecretName, answer: &str) -> Failure {
    let message = format!("{name} has no binding {answer}; nothing was changed");
    Failure::usage(message).next(format!("lango secrets describe {name}"))
}

/// Asks which bindings to remove; without a terminal, fails and lists them with their numbers.
async fn ask_which(
    secrets: &VaultContext,
    name: &SecretName,
    bindings: &[Binding],
) -> Result<BindingSelection, Failure> {
    let numbered = bindings.iter().enumerate();
    let numbered = numbered.map(|(at, binding)| format!("\n  {}. {binding}", at + 1));
    let numbered: String = numbered.collect();
    let (count, command) = (bindings.len(), secrets.access.command());
    let message = format!("{name} has {count} bindings:{numbered}");
    let question = format!("{message}\nremove which one? [1-{count}, all, N] ");
    let refusal = Failure::usage(message).next(format!(
        "`{command} unbind {name} NUMBER` removes one, `{command} unbind {name} --all` all of them"
    ));
    let answer = read_answer(secrets, &question, refusal).await?;
    match answer.as_str() {
        "" | "n" | "no" => Ok(BindingSelection::Nothing),
        "all" => Ok(BindingSelection::All),
        number => match number.parse() {
            Ok(number) => Ok(BindingSelection::Number(number)),
            Err(_) => Err(no_binding(name, number)),
        },
    }
}
