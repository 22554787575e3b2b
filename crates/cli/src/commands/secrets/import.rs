//! `lango secrets import-env`: moves keys into the vault, from environment variables and from plain files that lango
//! wrote itself.

use crate::screen;
use lango::app::Failure;
use lango::app::vault::import::{
    ImportResult, Replace, delete_token_file, import_token, import_variable, variables,
};
use lango::app::vault::{self, SERVER_TOKEN, VaultContext};
use lango_mcp::is_sealed;
use lango_vault::SecretName;

/// Runs the command.
pub(super) async fn import(secrets: &VaultContext, names: &[String]) -> Result<(), Failure> {
    let variables = variables(&secrets.loaded.settings, &secrets.process_env.env, names)?;
    let token_file = secrets.loaded.paths.server_token();
    let takes_token = names.is_empty() && token_file.exists();
    let grants = secrets.loaded.paths.mcp_grants();
    let takes_grants = names.is_empty() && grants.exists() && !is_sealed(&grants);
    if variables.is_empty() && !takes_token && !takes_grants {
        let message = "none of the variables named in the configuration is set, and there is no plain key file";
        return Err(Failure::usage(message).next("lango secrets import-env NAME"));
    }
    let open = secrets.open_or_create().await?;
    let has_variables = !variables.is_empty();
    let replace = if names.is_empty() {
        Replace::Never
    } else {
        Replace::Allowed
    };
    for (name, value) in variables {
        let result = import_variable(&open, &name, value, replace).await?;
        print_result(secrets, &name, result)?;
    }
    if takes_grants {
        vault::encrypt_grants(&open, &grants).await?;
        screen::print(&format!("encrypted {}", grants.display()))?;
    }
    if takes_token {
        let name = SecretName::new(SERVER_TOKEN)?;
        print_result(secrets, &name, import_token(&open, &token_file).await?)?;
        // The stored record was read back, so the file is the only plain copy left.
        delete_token_file(&token_file)?;
        screen::print(&format!("deleted {}", token_file.display()))?;
        screen::say(&format!(
            "existing callers can keep using their token. No command prints it; for other callers, set a token of your choice: \
             `openssl rand -hex 32 | {} rotate {SERVER_TOKEN}`",
            secrets.access.command()
        ));
    }
    if has_variables {
        screen::say(
            "now name the secrets in the configuration, such as providers.openai.apiKeyEnv = \"secret:OPENAI_API_KEY\", \
             and remove the variables from your shell's start-up files",
        );
    }
    Ok(())
}

fn print_result(
    secrets: &VaultContext,
    name: &SecretName,
    result: ImportResult,
) -> Result<(), Failure> {
    let access = &secrets.access;
    screen::print(&match &result {
        ImportResult::Stored { new, .. } => vault::describe_stored(new),
        ImportResult::AlreadyStored => format!("{name} is already in the vault"),
        ImportResult::Different => format!(
            "skipped {name}: the vault has a different value; `{} import-env {name}` replaces it",
            access.command()
        ),
    })?;
    if let ImportResult::Stored { new, old } = &result {
        let warning = vault::lost_expiry_warning(access, old.as_deref(), new);
        warning.iter().for_each(|warning| screen::say(warning));
    }
    Ok(())
}
