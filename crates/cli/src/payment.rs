//! Payments from the configuration: there when `payment.rpcUrl` and `payment.wallet` are set and the wallet's key is in the vault.
//! The key is read from the vault for each signature, and never leaves this process.

use crate::app::Keeping;
use crate::config::{Loaded, PaymentSettings, Surroundings};
use crate::exit::{Exit, Failure};
use crate::screen;
use crate::sessions::Kept;
use crate::vault::{Asking, Opening, VaultAccess, secret_of};
use lango_core::{BoxFuture, PaymentLimits, PaymentStore, RecordSelection, Tool};
use lango_engine::SystemClock;
use lango_net::Egress;
use lango_payment::{
    KeyBytes, PaymentError, PaymentParts, Payments, Rpc, WalletKey, parse_key, payment_tools,
};
use lango_vault::{OpenVault, SecretName};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;

/// The time between two reconciliations of a server.
const RECONCILE_EVERY: Duration = Duration::from_secs(60);

/// How to get payments.
const NOT_SET_UP: &str =
    "`payment.rpcUrl` and `payment.wallet` are not both set (docs/payments.md)";

/// Whether agents can pay.
pub enum PaymentStatus {
    /// They can.
    Ready(Payments),
    /// They cannot, and why not.
    Absent(String),
    /// They cannot, although the configuration wants it.
    Broken(String),
}

/// What payments are made of.
pub struct Source<'a> {
    /// The configuration.
    pub loaded: &'a Loaded,
    /// The environment.
    pub surroundings: &'a Surroundings,
    /// The database.
    pub kept: &'a Kept,
    /// Whether lango may prompt for the passphrase of the vault.
    pub asking: Asking,
}

/// Returns the tools, if payments are set up, and how it stands with them.
pub async fn open(
    source: Source<'_>,
    keeping: Keeping,
    egress: &Egress,
) -> Result<(Vec<Arc<dyn Tool>>, PaymentStatus), Failure> {
    // A payment that nothing is stored about could be made twice.
    if keeping == Keeping::Nothing {
        let why = "nothing is stored in this run, and payments need the ledger".to_owned();
        return Ok((Vec::new(), PaymentStatus::Absent(why)));
    }
    let status = PaymentStatus::of(&source).await?;
    let tools = match &status {
        PaymentStatus::Ready(payments) => payment_tools(payments, egress),
        PaymentStatus::Absent(_) => Vec::new(),
        PaymentStatus::Broken(why) => {
            screen::say(&format!("agents cannot pay: {why}"));
            Vec::new()
        }
    };
    Ok((tools, status))
}

fn limits(settings: &PaymentSettings) -> PaymentLimits {
    PaymentLimits {
        payment: settings.max_per_payment.0,
        day: settings.max_per_day.0,
        recipient: settings.max_per_recipient.0,
        purpose: settings.max_per_purpose.0,
    }
}

fn wrong(message: String) -> Failure {
    Failure::new(Exit::Config, message).next("docs/payments.md shows a configuration")
}

/// The wallet's key in the vault.
struct VaultWallet {
    access: VaultAccess,
    name: SecretName,
    open: OnceCell<OpenVault>,
}

impl VaultWallet {
    async fn opened(&self, asking: Asking) -> Result<&OpenVault, PaymentError> {
        let open = self.open.get_or_try_init(|| async {
            match self.access.try_open(asking).await {
                Ok(Opening::Open(open)) => Ok(open),
                Ok(Opening::Locked(_)) => Err(PaymentError::Key {
                    detail: "the vault is locked; `lango secrets unlock`".to_owned(),
                }),
                Err(failure) => Err(PaymentError::Key {
                    detail: failure.to_string(),
                }),
            }
        });
        open.await
    }
}

impl WalletKey for VaultWallet {
    fn key(&self) -> BoxFuture<'_, Result<KeyBytes, PaymentError>> {
        Box::pin(async {
            let open = self.opened(Asking::Never).await?;
            let value = open.use_value(&self.name).await;
            let value = value.map_err(|error| PaymentError::Key {
                detail: error.to_string(),
            })?;
            let text = value.expose_text().ok_or_else(|| PaymentError::Key {
                detail: "it is not text".to_owned(),
            })?;
            parse_key(text)
        })
    }
}

impl PaymentStatus {
    /// Looks whether payments are set up. Contacts nothing, and opens the vault only if it may ask.
    pub async fn of(source: &Source<'_>) -> Result<Self, Failure> {
        let settings = &source.loaded.settings.payment;
        let (Some(url), Some(wallet)) = (&settings.rpc_url.0, &settings.wallet) else {
            return Ok(Self::Absent(NOT_SET_UP.to_owned()));
        };
        let rpc = Rpc::new(url).map_err(|problem| wrong(format!("`payment.rpcUrl`: {problem}")))?;
        let name = secret_of(wallet).ok_or_else(|| {
            wrong(
                "`payment.wallet` names a secret of the vault, such as `secret:WALLET_KEY`"
                    .to_owned(),
            )
        })?;
        let access = VaultAccess::new(source.loaded, source.surroundings, source.kept);
        let name = SecretName::new(name)?;
        let sealed = access.read(RecordSelection::None).await?;
        let mut entries = sealed.iter().flat_map(|sealed| sealed.entries());
        if !entries.any(|entry| entry.name == name) {
            return Ok(Self::Broken(format!(
                "there is no secret `{name}`; `lango payments wallet create` makes a wallet"
            )));
        }
        let key = VaultWallet {
            access,
            name,
            open: OnceCell::new(),
        };
        if source.asking == Asking::Allowed
            && let Err(error) = key.opened(Asking::Allowed).await
        {
            return Ok(Self::Broken(error.to_string()));
        }
        // A call that the turn cuts off would say less than one that ends by itself.
        let most = source.loaded.settings.agent.tool_timeout.mul_f64(0.7);
        Ok(Self::Ready(Payments::new(PaymentParts {
            network: settings.network,
            rpc,
            store: Arc::clone(&source.kept.database) as Arc<dyn PaymentStore>,
            key: Arc::new(key),
            clock: Arc::new(SystemClock),
            limits: limits(settings),
            max_fee: settings.max_gas,
            confirmation_timeout: settings.confirmation_timeout.min(most),
        })))
    }

    /// Returns the payments, or why there are none.
    pub fn payments(&self) -> Result<&Payments, Failure> {
        match self {
            Self::Ready(payments) => Ok(payments),
            Self::Absent(why) | Self::Broken(why) => {
                Err(wrong(format!("payments are not set up: {why}")))
            }
        }
    }

    /// Looks at open payments now and every minute, until the result is dropped.
    pub fn keep_reconciled(&self) -> Option<Reconciling> {
        let Self::Ready(payments) = self else {
            return None;
        };
        let payments = payments.clone();
        let task = tokio::spawn(async move {
            loop {
                // What cannot be found out now is tried again; the payments stay open meanwhile.
                let _ = payments.reconcile().await;
                tokio::time::sleep(RECONCILE_EVERY).await;
            }
        });
        Some(Reconciling(task.abort_handle()))
    }

    /// Describes it for `lango doctor`, after asking the chain; whether it is well comes first.
    pub async fn describe(&self) -> (Option<bool>, String) {
        let payments = match self {
            Self::Ready(payments) => payments,
            Self::Absent(why) => return (None, format!("none; {why}")),
            Self::Broken(why) => return (Some(false), why.clone()),
        };
        let limits = payments.limits();
        let usdc = lango_payment::Usdc;
        let bounds = format!(
            "at most {} a payment, {} a day, {} a recipient, {} a purpose; fee at most {}",
            usdc(limits.payment),
            usdc(limits.day),
            usdc(limits.recipient),
            usdc(limits.purpose),
            payments.fee_ceiling()
        );
        let network = payments.network();
        let checked = match payments.wallet().await {
            Ok(wallet) => payments.balance().await.map(|balance| (wallet, balance)),
            Err(error) => Err(error),
        };
        match checked {
            Ok((wallet, (balance, ether))) => {
                let chain = network.chain_id();
                let detail = format!(
                    "{network}, chain {chain} answers; wallet {wallet}: {balance}, {ether}\n{bounds}"
                );
                (Some(true), detail)
            }
            // A command that only looks does not ask for the passphrase.
            Err(error @ PaymentError::Key { .. }) => {
                (Some(true), format!("{network}; {error}\n{bounds}"))
            }
            Err(error) => (Some(false), format!("{network}; {error}\n{bounds}")),
        }
    }
}

/// A task that ends when this is dropped.
pub struct Reconciling(AbortHandle);

impl Drop for Reconciling {
    fn drop(&mut self) {
        self.0.abort();
    }
}
