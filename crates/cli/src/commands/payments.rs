//! `lango payments`: the wallet and the ledger on the command line. Nothing here pays, and no key is ever printed.

use super::secrets::{Secrets, VaultOwner, piped_value, refuse_value};
use crate::args::{PaymentsCommand, WalletCommand};
use crate::exit::{Exit, Failure};
use crate::payment::PaymentStatus;
use crate::screen::{self, Layout};
use crate::vault::typed_value;
use chrono::DateTime;
use lango_core::Payment;
use lango_payment::{
    KeyBytes, PaymentError, Payments, address_of, amount_text, key_text, parse_key, payment_json,
};
use lango_vault::{Key, NewSecret, SecretKind, SecretName, SecretValue};
use serde_json::json;

/// The most payments that are shown.
const MOST_SHOWN: usize = 10_000;

/// Runs the command.
pub async fn payments(config: Vec<String>, command: PaymentsCommand) -> Result<Exit, Failure> {
    let command = match command {
        PaymentsCommand::Wallet {
            command: WalletCommand::Create { name },
        } => {
            create(config, &name).await?;
            return Ok(Exit::Ok);
        }
        PaymentsCommand::Wallet {
            command: WalletCommand::Import { name, extra },
        } => {
            refuse_value(&name, &extra, "payments wallet import")?;
            import(config, &name).await?;
            return Ok(Exit::Ok);
        }
        other => other,
    };
    let secrets = Secrets::load(config, VaultOwner::User)?;
    let status = PaymentStatus::of(&secrets.payment_source()).await?;
    let payments = status.payments()?;
    match command {
        PaymentsCommand::History { limit, json } => history(payments, limit, json).await?,
        PaymentsCommand::Balance { json } => balance(payments, json).await?,
        PaymentsCommand::Reconcile { json } => reconcile(payments, json).await?,
        PaymentsCommand::Wallet { command } => address(payments, &command).await?,
    }
    Ok(Exit::Ok)
}

async fn history(payments: &Payments, limit: usize, as_json: bool) -> Result<(), Failure> {
    let history = payments.history(limit.min(MOST_SHOWN)).await?;
    if as_json {
        let rows: Vec<_> = history.iter().map(payment_json).collect();
        screen::print(&screen::json(&rows, Layout::Indented)?)?;
        return Ok(());
    }
    if history.is_empty() {
        screen::print("nothing was paid")?;
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
    let detail = match payment.state.is_open() {
        true => format!("  ({})", screen::one_line(&payment.detail, 100)),
        false => String::new(),
    };
    format!(
        "{}  {:<9}  {:>12} USDC  {}  {purpose}{detail}",
        time.format("%Y-%m-%d %H:%M"),
        payment.state.name(),
        amount_text(payment.amount),
        payment.recipient,
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

async fn address(payments: &Payments, command: &WalletCommand) -> Result<(), Failure> {
    let wallet = payments.wallet().await?.to_string();
    let text = match command {
        WalletCommand::Address { json: true } => {
            screen::json(&json!({ "address": wallet }), Layout::Indented)?
        }
        _ => wallet,
    };
    screen::print(&text)?;
    Ok(())
}

async fn create(config: Vec<String>, name: &str) -> Result<(), Failure> {
    let random = Key::random()?;
    store(config, name, &KeyBytes::new(*random.expose())).await
}

async fn import(config: Vec<String>, name: &str) -> Result<(), Failure> {
    let name_of_secret = SecretName::new(name)?;
    let value = match piped_value("payments wallet import")? {
        Some(value) => value,
        None => typed_value(&name_of_secret)?,
    };
    let key = parse_key(value.expose_text().unwrap_or_default())?;
    store(config, name, &key).await
}

/// Stores a key under a name that is free: a key that is replaced takes what its wallet has along.
async fn store(config: Vec<String>, name: &str, key: &KeyBytes) -> Result<(), Failure> {
    let address = address_of(key)?;
    let name = SecretName::new(name)?;
    let secrets = Secrets::load(config, VaultOwner::User)?;
    let open = secrets.open_or_create().await?;
    let entries = open.entries().await?;
    if entries.iter().any(|entry| entry.name == name) {
        let message = format!("there is a secret `{name}` already, and it is not replaced");
        return Err(Failure::new(Exit::Usage, message).next(
            "give the new one another name: `lango payments wallet create NAME` or `import NAME`",
        ));
    }
    let secret = NewSecret {
        kind: Some(SecretKind::PaymentKey),
        ..NewSecret::new(SecretValue::new(key_text(key).as_bytes()))
    };
    open.set(&name, secret).await?;
    screen::print(&format!("stored the key of wallet {address} as {name}"))?;
    screen::say(&format!("next: set payment.wallet = \"secret:{name}\""));
    Ok(())
}

impl From<PaymentError> for Failure {
    fn from(error: PaymentError) -> Self {
        let exit = match error {
            PaymentError::Key { .. } | PaymentError::WrongChain { .. } => Exit::Config,
            _ => Exit::Failed,
        };
        Self::new(exit, error.to_string())
            .next("`lango doctor` looks at the endpoint, the wallet and the limits")
    }
}
