//! `lango payments`: shows and manages the wallet and the ledger. No command makes a payment, and no key is ever
//! printed.

use super::secrets::{piped_value, refuse_value};
use crate::args::{PaymentsCommand, WalletCommand};
use crate::exit::Exit;
use crate::screen::{self, Layout};
use chrono::DateTime;
use lango::app::Failure;
use lango::app::payment::{PaymentSource, PaymentStatus, StoredWallet, rpc_url_step};
use lango::app::vault::{VaultContext, VaultOwner, read_typed};
use lango_core::{Payment, PaymentAccount, PaymentQuery, PaymentStore};
use lango_payment::{
    KeyBytes, Payments, address_of, amount_text, checksummed, key_text, parse_key, payment_json,
};
use lango_vault::{Key, NewSecret, SecretKind, SecretName, SecretValue};
use serde_json::json;

const MAX_SHOWN: usize = 10_000;

/// Runs the command.
pub(super) async fn payments(
    config: Vec<String>,
    command: PaymentsCommand,
) -> Result<Exit, Failure> {
    match command {
        PaymentsCommand::Wallet { command } => wallet(config, command).await?,
        PaymentsCommand::History { limit, json } => {
            let secrets = VaultContext::load(config, VaultOwner::User)?;
            history(&secrets.payment_source(), limit, json).await?;
        }
        PaymentsCommand::Balance { json } => balance(&open(config).await?, json).await?,
        PaymentsCommand::Reconcile { json } => reconcile(&open(config).await?, json).await?,
    }
    Ok(Exit::Ok)
}

/// Opens the payments. Fails if something is missing or the vault is locked.
async fn open(config: Vec<String>) -> Result<Payments, Failure> {
    let secrets = VaultContext::load(config, VaultOwner::User)?;
    let status = PaymentStatus::of(&secrets.payment_source()).await?;
    status.payments().cloned()
}

/// Prints the payments of the wallet from the ledger. Needs neither the chain nor the key.
async fn history(source: &PaymentSource<'_>, limit: usize, as_json: bool) -> Result<(), Failure> {
    let wallet = StoredWallet::read(source).await?;
    let account = PaymentAccount {
        network: source.loaded.settings.payment.network.name().into(),
        wallet: wallet.address.lower().into(),
    };
    let query = PaymentQuery::Newest(account);
    let ledger = &source.storage.database;
    let history = ledger.payments(query, limit.min(MAX_SHOWN)).await?;
    if as_json {
        let rows: Vec<_> = history.iter().map(payment_json).collect();
        screen::print(&screen::json(&rows, Layout::Indented)?)?;
        return Ok(());
    }
    if history.is_empty() {
        screen::print(&format!(
            "{} has made no payments on {}",
            wallet.address, source.loaded.settings.payment.network
        ))?;
    }
    for payment in &history {
        screen::print(&line(payment))?;
    }
    Ok(())
}

fn line(payment: &Payment) -> String {
    let time = i64::try_from(payment.created.0).unwrap_or_default();
    let time = DateTime::from_timestamp_millis(time).unwrap_or_default();
    let purpose = screen::one_line(&payment.purpose, 60);
    let detail = if payment.state.is_open() {
        format!("  ({})", screen::one_line(&payment.detail, 100))
    } else {
        String::new()
    };
    format!(
        "{}  {:<9}  {:>12} USDC  {}  {purpose}{detail}",
        time.format("%Y-%m-%d %H:%M UTC"),
        payment.state.name(),
        amount_text(payment.amount),
        checksummed(&payment.recipient),
    )
}

async fn balance(payments: &Payments, as_json: bool) -> Result<(), Failure> {
    let wallet = payments.wallet().await?;
    let (usdc, ether) = payments.balance().await?;
    let network = payments.network();
    let text = if as_json {
        let row = json!({
            "network": network.name(),
            "wallet": wallet.to_string(),
            "usdc": amount_text(usdc.0),
            "wei": ether.0.to_string(),
        });
        screen::json(&row, Layout::Indented)?
    } else {
        format!("{wallet} on {network}: {usdc}, {ether} for fees")
    };
    screen::print(&text)?;
    Ok(())
}

async fn reconcile(payments: &Payments, as_json: bool) -> Result<(), Failure> {
    let result = payments.reconcile().await?;
    let text = if as_json {
        let row =
            json!({ "settled": result.settled, "failed": result.failed, "open": result.open });
        screen::json(&row, Layout::Indented)?
    } else {
        format!(
            "{} settled, {} failed, {} still open",
            result.settled, result.failed, result.open
        )
    };
    screen::print(&text)?;
    Ok(())
}

async fn wallet(config: Vec<String>, command: WalletCommand) -> Result<(), Failure> {
    match command {
        WalletCommand::Create { name, json } => {
            refuse_value(&name, &[], "payments wallet import")?;
            let random = Key::random()?;
            let secrets = VaultContext::load(config, VaultOwner::User)?;
            store(&secrets, &name, &KeyBytes::new(*random.expose()), json).await
        }
        WalletCommand::Import { name, json, extra } => {
            refuse_value(&name, &extra, "payments wallet import")?;
            import(config, &name, json).await
        }
        WalletCommand::Address { json } => address(config, json).await,
    }
}

/// Prints the address. Needs neither the chain nor the key, but says so if the address could not be authenticated.
async fn address(config: Vec<String>, as_json: bool) -> Result<(), Failure> {
    let secrets = VaultContext::load(config, VaultOwner::User)?;
    let wallet = StoredWallet::read(&secrets.payment_source()).await?;
    let address = wallet.address.to_string();
    if as_json {
        let row = json!({ "address": address, "checked": wallet.locked.is_none() });
        return Ok(screen::print(&screen::json(&row, Layout::Indented)?)?);
    }
    screen::print(&address)?;
    if let Some(locked) = wallet.locked {
        let (name, next) = (locked.name(), locked.next_step());
        screen::say(&format!(
            "the {name} is locked, so this address was not checked; before you send anything to it: {next}"
        ));
    }
    Ok(())
}

async fn import(config: Vec<String>, name: &str, as_json: bool) -> Result<(), Failure> {
    let secret_name = SecretName::new(name)?;
    let secrets = VaultContext::load(config, VaultOwner::User)?;
    let value = match piped_value("payments wallet import", &secret_name)? {
        Some(value) => value,
        None => read_typed(&secrets.access.echo_guard(), "private key").await?,
    };
    let text = value.expose_text().unwrap_or_default();
    let key = parse_key(text).map_err(|_| {
        let message = if SecretName::looks_like_value(text) {
            "this is not the private key of a wallet: the number is 0, or too large for a key"
        } else {
            "this is not the private key of a wallet: one has 64 hexadecimal digits, with or without `0x`"
        };
        Failure::config(message).next(format!(
            "export the private key of the account from your wallet (neither its address nor the seed phrase), and run \
             `lango payments wallet import {name}` again"
        ))
    })?;
    store(&secrets, name, &key, as_json).await
}

/// Stores a key under an unused name: replacing a key would lose access to its wallet's funds.
async fn store(
    secrets: &VaultContext,
    name: &str,
    key: &KeyBytes,
    as_json: bool,
) -> Result<(), Failure> {
    let address = address_of(key)?.to_string();
    let name = SecretName::new(name)?;
    let open = secrets.open_or_create().await?;
    let entries = open.entries().await?;
    if entries.iter().any(|entry| entry.name == name) {
        let message = format!("a secret named `{name}` already exists and is not replaced");
        return Err(Failure::usage(message)
            .next("choose another name: `lango payments wallet create NAME` or `import NAME`"));
    }
    let secret = NewSecret {
        kind: Some(SecretKind::PaymentKey),
        public_id: Some(address.as_str().into()),
        ..NewSecret::new(SecretValue::new(key_text(key).as_bytes()))
    };
    open.set(&name, secret).await?;
    screen::print(&if as_json {
        let row = json!({ "address": address, "name": name.as_str() });
        screen::json(&row, Layout::Indented)?
    } else {
        format!("stored the key of wallet {address} as {name}")
    })?;
    print_next_steps(&secrets.payment_source(), &name);
    Ok(())
}

/// Prints the settings that are still missing for agents to pay with this wallet.
fn print_next_steps(source: &PaymentSource<'_>, name: &SecretName) {
    let settings = &source.loaded.settings.payment;
    let file = source.loaded.paths.user_file.display();
    let setting = format!("secret:{name}");
    let mut steps = Vec::new();
    if settings.rpc_url.0.is_none() {
        steps.push(rpc_url_step(settings.network));
    }
    if settings.wallet.as_ref() != Some(&setting) {
        steps.push(format!("set payment.wallet = \"{setting}\""));
    }
    if !steps.is_empty() {
        screen::say(&format!("next, in {file}: {}", steps.join("; and ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_core::{PaymentState, Timestamp};

    #[test]
    fn a_line_of_the_history_has_the_time_zone_and_the_checksum_of_the_address() {
        let address = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
        let payment = Payment {
            id: "1".into(),
            account: PaymentAccount {
                network: "base".into(),
                wallet: "0x1".into(),
            },
            user: "ann".into(),
            session: "s".into(),
            recipient: address.to_lowercase().into(),
            purpose: "a book".into(),
            host: None,
            budget: None,
            amount: 1_500_000,
            day: 0,
            state: PaymentState::Settled,
            valid_before: 0,
            authorization: None,
            transaction: None,
            detail: "".into(),
            revision: 0,
            created: Timestamp(1_794_787_200_000),
            updated: Timestamp(0),
        };
        assert_eq!(
            line(&payment),
            format!("2026-11-16 00:00 UTC  settled             1.5 USDC  {address}  a book")
        );
    }
}
